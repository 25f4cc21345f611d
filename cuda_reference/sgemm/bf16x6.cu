// SGEMM by wgmma and TMA: six products of bfloat16 parts, their sums promoted to float32.
//
//   nvcc -arch=sm_90a -cubin bf16x6.cu
//   before: split_parts.cu of A and B
//   grid (min(PROGRAMS / parts of K, tiles of C), 1, parts of K), block (128, CONSUMERS + 1)
//   dynamic shared memory: STAGES stages of three parts of (BM + BN) * BK elements
//   maps: of A_parts, boxes of BM x BK; of B_parts, of BN x BK
//   C: a matrix of M x N for each part of K. If there are several, their rows are padded to multiples of
//   16 bytes, and split_k_sum.cu adds them up
//
// A float32 is the sum of three bfloat16: 24 bits. Of the nine products of parts six matter. A K tile has all
// parts of its elements: they are loaded once, and multiplied six times. Tensor cores truncate their sums. So
// after at most PROMOTE elements along K these are added to sums in float32, and begin from 0 again.
// Otherwise as ../hgemm/persistent.cu.

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
#define STAGES 2     // of the pipeline; each holds a K tile
#define PROGRAMS 132 // most blocks of the grid
#define GROUP 16     // rows of tiles in a stripe
#define PROMOTE 64   // of K, after which sums are promoted
#define TURNS 1      // 1: warpgroups that multiply take turns, K tile by K tile
#define SPLITS 1     // parts of K, at most
#endif

using Operands = SplitKTile<BM, BN, BK, 3, __nv_bfloat16, SixPairs>;

extern "C" __global__ void __launch_bounds__((CONSUMERS + 1) * WARPGROUP, 1)
sgemm_bf16x6(const __grid_constant__ CUtensorMap A_parts_map, const __grid_constant__ CUtensorMap B_parts_map,
             float *__restrict__ C, int M, int N, int K)
{
#ifdef SIZE_M
    fix_sizes<SIZE_M, SIZE_N, SIZE_K>(M, N, K);
#endif
    extern __shared__ __align__(1024) unsigned char shared[];
    __shared__ Ring<Operands, STAGES> ring;
    begin<CONSUMERS>(ring, A_parts_map, B_parts_map);
    overlap_launches();
    const int pitch = gridDim.z > 1 ? (N + 3) / 4 * 4 : N; // of a row of C
    float *const part = C + static_cast<size_t>(blockIdx.z) * M * pitch;
    multiply_parts<BM, BN, CONSUMERS, GROUP, BK, PROMOTE, TURNS, __nv_bfloat16>(
        shared_address(shared), ring, A_parts_map, B_parts_map, M, N, K,
        [&](const auto &tile, int row, int col) { store_sums(tile, part, row, col, M, pitch); }, blockIdx.z,
        gridDim.z);
}
