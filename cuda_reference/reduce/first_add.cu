// Sum of an array: two elements are added while loading.
//
//   nvcc -arch=sm_80 -cubin first_add.cu
//   grid (ceil(N/(2 BLOCK))), block (BLOCK)
//   Y[b] is the sum of block b's 2 BLOCK elements; launched again on Y until one sum is left
//
// Half of the threads would be idle in the first step of the tree; here every thread does that step itself
// before anything is in shared memory, and half as many blocks do the same work. (article 002,
// "Unrolling the Warp", tables of sections 2.1 and 2.2: idle threads removed)

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
reduce_first_add(const DTYPE *__restrict__ X, DTYPE *__restrict__ Y, int N)
{
#ifdef SIZE_N
    fix_sizes<SIZE_N>(N);
#endif
    __shared__ DTYPE tile[BLOCK];
    const int t = threadIdx.x;
    const int i = blockIdx.x * 2 * BLOCK + t;
    tile[t] = element(X, i, N) + element(X, i + BLOCK, N);
    __syncthreads();

#pragma unroll 1
    for (int s = BLOCK / 2; s > 0; s /= 2)
        fold_half(tile, t, s);
    if (t == 0)
        Y[blockIdx.x] = tile[0];
}
