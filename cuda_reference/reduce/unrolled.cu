// Sum of an array: all steps unrolled.
//
//   nvcc -arch=sm_80 -cubin unrolled.cu
//   grid (ceil(N/(2 BLOCK))), block (BLOCK)
//   Y[b] is the sum of block b's 2 BLOCK elements; launched again on Y until one sum is left
//
// The block size is known when the kernel is compiled, so the steps that remain before the last warp takes
// over become straight code: no loop counter, no comparison with it. VOLATILE 1 is the article's form,
// without __syncwarp. (article 002, "Unrolling the Warp", section 2.2: completely unrolled) The article's
// listing begins with the level of 512 threads, so that a block of 1024 would lose half of its sums. It leaves
// out levels that a block smaller than 64 does not have; its first 32 threads then read beyond the block's
// elements in shared memory, and here no block is smaller than 64.

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
reduce_unrolled(const DTYPE *__restrict__ X, DTYPE *__restrict__ Y, int N)
{
#ifdef SIZE_N
    fix_sizes<SIZE_N>(N);
#endif
    __shared__ Word<DTYPE, VOLATILE>::type tile[BLOCK];
    const int t = threadIdx.x;
    const int i = blockIdx.x * 2 * BLOCK + t;
    tile[t] = element(X, i, N) + element(X, i + BLOCK, N);
    __syncthreads();

#pragma unroll
    for (int s = BLOCK / 2; s > 32; s /= 2)
        fold_half(tile, t, s);
    if (t < 32)
        fold_last_warp(tile, t);
    if (t == 0)
        Y[blockIdx.x] = tile[0];
}
