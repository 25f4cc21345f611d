// Sum of an array: the first threads work, at a stride.
//
//   nvcc -arch=sm_80 -cubin interleaved.cu
//   grid (ceil(N/BLOCK)), block (BLOCK)
//   Y[b] is the sum of block b's elements; launched again on Y until one sum is left
//
// In step s thread t adds the pair that begins at element 2s * t. Whole warps fall idle instead of lanes, but
// neighbouring threads are 2s words apart, and up to 32 of them ask one bank of shared memory. (article 002,
// "Unrolling the Warp", tables of sections 2.1 and 2.2: interleaved addressing)

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
reduce_interleaved(const DTYPE *__restrict__ X, DTYPE *__restrict__ Y, int N)
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
    for (int s = 1; s < BLOCK; s *= 2) {
        const int first = 2 * s * t;
        if (first < BLOCK)
            tile[first] += tile[first + s];
        __syncthreads();
    }
    if (t == 0)
        Y[blockIdx.x] = tile[0];
}
