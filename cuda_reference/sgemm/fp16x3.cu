// SGEMM by wgmma and TMA: three products of float16 parts of scaled rows and columns.
//
//   nvcc -arch=sm_90a -cubin fp16x3.cu
//   before: split_scaled.cu of A and B
//   grid min(PROGRAMS, tiles of C), block (128, CONSUMERS + 1)
//   dynamic shared memory: STAGES stages of two parts of (BM + BN) * BK elements
//   maps: of A_parts, boxes of BM x BK; of B_parts, of BN x BK
//
// As bf16x6.cu, with parts of half. A_scales and B_scales are the powers of two that rows of A and columns of
// B were divided by.

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "../dependent_launch.cuh"
#include "../sizes.cuh"
#include "split_programs.cuh"

#ifndef BM
#define BM 128 // block tile of C: BM x BN
#define BN 128
#define BK 64        // K tile
#define CONSUMERS 2  // warpgroups that multiply, each BM / CONSUMERS rows of the block tile
#define STAGES 3     // of the pipeline; each holds a K tile
#define PROGRAMS 132 // most blocks of the grid
#define GROUP 16     // rows of tiles in a stripe
#define PROMOTE 64   // of K, after which sums are promoted
#define TURNS 1      // 1: warpgroups that multiply take turns, K tile by K tile
#endif

using Operands = SplitKTile<BM, BN, BK, 2, half, ThreePairs>;

extern "C" __global__ void __launch_bounds__((CONSUMERS + 1) * WARPGROUP, 1)
sgemm_fp16x3(const __grid_constant__ CUtensorMap A_parts_map, const float *__restrict__ A_scales,
             const __grid_constant__ CUtensorMap B_parts_map, const float *__restrict__ B_scales,
             float *__restrict__ C, int M, int N, int K)
{
#ifdef SIZE_M
    fix_sizes<SIZE_M, SIZE_N, SIZE_K>(M, N, K);
#endif
    extern __shared__ __align__(1024) unsigned char shared[];
    __shared__ Ring<Operands, STAGES> ring;
    begin<CONSUMERS>(ring, A_parts_map, B_parts_map);
    overlap_launches();
    multiply_parts<BM, BN, CONSUMERS, GROUP, BK, PROMOTE, TURNS, half>(
        shared_address(shared), ring, A_parts_map, B_parts_map, M, N, K,
        [&](const auto &tile, int row, int col) {
            store_scaled(tile, C, row, col, M, N, A_scales, B_scales);
        });
}
