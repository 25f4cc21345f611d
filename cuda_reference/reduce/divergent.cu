// Sum of an array: a tree in shared memory.
//
//   nvcc -arch=sm_80 -cubin divergent.cu
//   grid (ceil(N/BLOCK)), block (BLOCK)
//   Y[b] is the sum of block b's elements; launched again on Y until one sum is left
//
// In step k every 2^(k+1)th thread adds its neighbour at distance 2^k. The threads that work are spread over
// all warps: every warp goes through every step with fewer and fewer lanes active. Elements beyond N count as
// zero, and no thread leaves before a barrier. (article 002, "Unrolling the Warp", tables of sections 2.1 and
// 2.2: baseline)

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
reduce_divergent(const DTYPE *__restrict__ X, DTYPE *__restrict__ Y, int N)
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
    for (int k = 0; (1 << k) < BLOCK; ++k) {
        if (t % (2 << k) == 0)
            tile[t] += tile[t + (1 << k)];
        __syncthreads();
    }
    if (t == 0)
        Y[blockIdx.x] = tile[0];
}
