// Sum of an array: a sum per thread first, then one fold over the threads.
//
//   nvcc -arch=sm_80 -cubin cross_thread.cu
//   grid (ceil(N/(ITEMS BLOCK))), block (BLOCK)
//   Y[b] is the sum of block b's share; launched again on Y until one sum is left
//
// Every thread adds ITEMS elements that lie a grid apart and keeps the sum in a register; what crosses
// threads happens once per ITEMS elements. This is what TVM makes of `rfactor` and a reduction axis bound to
// threads.

#include "../sizes.cuh"
#include "shuffle.cuh"

#ifndef BLOCK
#define BLOCK 256 // threads per block, a power of two from 32 to 1024
#endif
#ifndef ITEMS
#define ITEMS 8 // elements each thread adds by itself
#endif
#ifndef DTYPE
#define DTYPE int
#endif

static_assert(BLOCK >= 32 && (BLOCK & (BLOCK - 1)) == 0, "threads must be a power of two from 32 on");

extern "C" __global__ void __launch_bounds__(BLOCK)
reduce_cross_thread(const DTYPE *__restrict__ X, DTYPE *__restrict__ Y, int N)
{
#ifdef SIZE_N
    fix_sizes<SIZE_N>(N);
#endif
    DTYPE total = 0;
#pragma unroll
    for (int item = 0; item < ITEMS; ++item) {
        const int i = (item * gridDim.x + blockIdx.x) * BLOCK + threadIdx.x;
        if (i < N)
            total += X[i];
    }
    total = fold_block<BLOCK>(total);
    if (threadIdx.x == 0)
        Y[blockIdx.x] = total;
}
