// Float32 matrices as sums of parts in 16 bits: the launch before bf16x6.cu.
//
//   nvcc -arch=sm_90a -cubin split_parts.cu
//   grid ceil(M / 8) * ceil(P / 256) + ceil(P / 32) * ceil(N / 64), with NT ceil(M / 8) * ceil(P / 256) +
//   ceil(N / 8) * ceil(P / 256), block (32, 8); P is K, filled up to a multiple of 64
//
// X is M x K and X_2 is K x N, with NT N x K. Y has a row of parts for each row of X. Y_2 has one for each
// column of X_2, or with NT for each row. For each K tile of SPLIT_DEPTH elements a row has all first parts,
// then all second ones. A part is the rest of an element after the parts before, rounded.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "../dependent_launch.cuh"
#include "parts.cuh"

#ifndef SPLIT_DEPTH
#define SPLIT_DEPTH 32 // of a K tile
#define SPLIT_PARTS 3  // of an element
#define SPLIT_TYPE __nv_bfloat16
#endif
#ifndef NT
#define NT 0 // X_2 is K x N; 1: N x K
#endif

constexpr int WARP = 32, WARPS = 8, VECTOR = 8, COLUMNS = 8;

// Eight elements of a row of X, for each thread of block number `block`; `across` blocks take WARPS rows.
static __device__ __forceinline__ void split_row(const float *__restrict__ X, SPLIT_TYPE *__restrict__ Y, int rows,
                                                 int K, int padded, int block, int across)
{
    const int row = block / across * WARPS + threadIdx.y;
    const int first = (block % across * WARP + threadIdx.x) * VECTOR;
    if (row >= rows || first >= padded)
        return;
    float left[VECTOR];
    load_row(left, X + row * K, first, K, 1);
    store_parts<SPLIT_TYPE, SPLIT_PARTS, SPLIT_DEPTH>(left, Y + row * (padded * SPLIT_PARTS), first);
}

extern "C" __global__ void __launch_bounds__(256)
sgemm_split_parts(const float *__restrict__ X, SPLIT_TYPE *__restrict__ Y, const float *__restrict__ X_2,
                  SPLIT_TYPE *__restrict__ Y_2, int M, int N, int K)
{
    overlap_launches();
#ifdef SIZE_M
    M = SIZE_M, N = SIZE_N, K = SIZE_K;
#endif
    const int padded = (K + 63) / 64 * 64;
    const int across = (padded / VECTOR + WARP - 1) / WARP, columns = (N + WARPS * COLUMNS - 1) / (WARPS * COLUMNS);
    const int of_a = (M + WARPS - 1) / WARPS * across; // blocks
    if (blockIdx.x < of_a)
        split_row(X, Y, M, K, padded, blockIdx.x, across);
    else if (NT)
        split_row(X_2, Y_2, N, K, padded, blockIdx.x - of_a, across);
    else {
        const int block = blockIdx.x - of_a;
        const int column = (block % columns * WARPS + threadIdx.y) * COLUMNS + threadIdx.x % COLUMNS;
        const int first = (block / columns * (WARP / COLUMNS) + threadIdx.x / COLUMNS) * VECTOR;
        if (column >= N || first >= padded)
            return;
        float left[VECTOR];
#pragma unroll
        for (int e = 0; e < VECTOR; ++e)
            left[e] = first + e < K ? X_2[(first + e) * N + column] : 0;
        store_parts<SPLIT_TYPE, SPLIT_PARTS, SPLIT_DEPTH>(left, Y_2 + column * (padded * SPLIT_PARTS), first);
    }
}
