// SGEMM by wgmma and TMA: one product of tf32.
//
//   nvcc -arch=sm_90a -cubin tf32.cu
//   before: split_parts.cu of A and B
//   grid min(PROGRAMS, tiles of C), block (128, CONSUMERS + 1)
//   dynamic shared memory: STAGES stages of (BM + BN) * BK floats
//   maps: of A_parts, boxes of BM x BK; of B_parts, of BN x BK
//
// A tf32 is a float32 with 10 fraction bits. Elements are rounded to tf32 and multiplied. Otherwise
// as ../hgemm/persistent.cu.

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "../dependent_launch.cuh"
#include "../sizes.cuh"
#include "split_programs.cuh"

#ifndef BM
#define BM 128 // block tile of C: BM x BN
#define BN 128
#define BK 32        // K tile
#define CONSUMERS 2  // warpgroups that multiply, each BM / CONSUMERS rows of the block tile
#define STAGES 6     // of the pipeline; each holds a K tile
#define PROGRAMS 132 // most blocks of the grid
#define GROUP 16     // rows of tiles in a stripe
#define PROMOTE 0    // of K, after which sums are promoted; 0: when all of it is done
#define TURNS 0      // 1: warpgroups that multiply take turns, K tile by K tile
#endif

using Operands = SplitKTile<BM, BN, BK, 1, float, OnePair>;

extern "C" __global__ void __launch_bounds__((CONSUMERS + 1) * WARPGROUP, 1)
sgemm_tf32(const __grid_constant__ CUtensorMap A_parts_map, const __grid_constant__ CUtensorMap B_parts_map,
             float *__restrict__ C, int M, int N, int K)
{
#ifdef SIZE_M
    fix_sizes<SIZE_M, SIZE_N, SIZE_K>(M, N, K);
#endif
    extern __shared__ __align__(1024) unsigned char shared[];
    __shared__ Ring<Operands, STAGES> ring;
    begin<CONSUMERS>(ring, A_parts_map, B_parts_map);
    overlap_launches();
    multiply_parts<BM, BN, CONSUMERS, GROUP, BK, PROMOTE, TURNS, float>(
        shared_address(shared), ring, A_parts_map, B_parts_map, M, N, K,
        [&](const auto &tile, int row, int col) { store_sums(tile, C, row, col, M, N); });
}
