// Sum of an array: the tile is folded in half.
//
//   nvcc -arch=sm_80 -cubin sequential.cu
//   grid (ceil(N/BLOCK)), block (BLOCK)
//   Y[b] is the sum of block b's elements; launched again on Y until one sum is left
//
// In each step thread t adds element t + s, and s halves. Neighbouring threads touch neighbouring words, so
// no bank is asked twice. (article 002, "Unrolling the Warp", section 1 and tables of sections 2.1 and 2.2:
// bank conflicts removed)

#include "../sizes.cuh"
#include "fold.cuh"

#ifndef BLOCK
#define BLOCK 256 // threads per block, a power of two from 2 to 1024
#endif
#ifndef DTYPE
#define DTYPE int
#endif

static_assert(BLOCK >= 2 && (BLOCK & (BLOCK - 1)) == 0, "threads must be a power of two from 2 on");

extern "C" __global__ void __launch_bounds__(BLOCK)
reduce_sequential(const DTYPE *__restrict__ X, DTYPE *__restrict__ Y, int N)
{
#ifdef SIZE_N
    fix_sizes<SIZE_N>(N);
#endif
    __shared__ DTYPE tile[BLOCK];
    const int t = threadIdx.x;
    const int i = blockIdx.x * BLOCK + t;
    tile[t] = element(X, i, N);
    __syncthreads();

#pragma unroll 1
    for (int s = BLOCK / 2; s > 0; s /= 2) {
        if (t < s)
            tile[t] += tile[t + s];
        __syncthreads();
    }
    if (t == 0)
        Y[blockIdx.x] = tile[0];
}
