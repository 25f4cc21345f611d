// Sum of an array: the last 64 sums are one warp's work.
//
//   nvcc -arch=sm_80 -cubin unrolled_warp.cu
//   grid (ceil(N/(2 BLOCK))), block (BLOCK)
//   Y[b] is the sum of block b's 2 BLOCK elements; launched again on Y until one sum is left
//
// The lanes of one warp need no barrier of the block among themselves, but they need __syncwarp, since Volta
// lets them run apart: fold_last_warp in fold.cuh. VOLATILE 1 is the article's form, the idiom of older
// tutorials: volatile memory and no synchronisation, which is right only if the warp happens to run in
// lockstep. (article 002, "Unrolling the Warp", section 2.1: last warp unrolled)

#include "../sizes.cuh"
#include "fold.cuh"

#ifndef BLOCK
#define BLOCK 256 // threads per block, a power of two from 64 to 1024
#endif
#ifndef VOLATILE
#define VOLATILE 0
#endif
#ifndef DTYPE
#define DTYPE int
#endif

static_assert(BLOCK >= 64 && (BLOCK & (BLOCK - 1)) == 0, "threads must be a power of two from 64 on");

extern "C" __global__ void __launch_bounds__(BLOCK)
reduce_unrolled_warp(const DTYPE *__restrict__ X, DTYPE *__restrict__ Y, int N)
{
#ifdef SIZE_N
    fix_sizes<SIZE_N>(N);
#endif
    __shared__ Word<DTYPE, VOLATILE>::type tile[BLOCK];
    const int t = threadIdx.x;
    const int i = blockIdx.x * 2 * BLOCK + t;
    tile[t] = element(X, i, N) + element(X, i + BLOCK, N);
    __syncthreads();

#pragma unroll 1
    for (int s = BLOCK / 2; s > 32; s /= 2)
        fold_half(tile, t, s);
    if (t < 32)
        fold_last_warp(tile, t);
    if (t == 0)
        Y[blockIdx.x] = tile[0];
}
