// Sum of an array: lanes hand their sums to each other.
//
//   nvcc -arch=sm_80 -cubin shuffle.cu
//   grid (ceil(N/(2 BLOCK))), block (BLOCK)
//   Y[b] is the sum of block b's 2 BLOCK elements; launched again on Y until one sum is left
//
// A warp shuffle moves a value from lane to lane without shared memory and without a barrier. Two levels, in
// shuffle.cuh: every warp folds its 32 values, lane 0 leaves the sum in shared memory, and after the only
// barrier the sums of the warps are folded. (beyond article 002,
// "Unrolling the Warp")

#include "../sizes.cuh"
#include "fold.cuh"
#include "shuffle.cuh"

#ifndef BLOCK
#define BLOCK 256 // threads per block, a power of two from 32 to 1024
#endif
#ifndef DTYPE
#define DTYPE int
#endif

static_assert(BLOCK >= 32 && (BLOCK & (BLOCK - 1)) == 0, "threads must be a power of two from 32 on");

extern "C" __global__ void __launch_bounds__(BLOCK)
reduce_shuffle(const DTYPE *__restrict__ X, DTYPE *__restrict__ Y, int N)
{
#ifdef SIZE_N
    fix_sizes<SIZE_N>(N);
#endif
    const int i = blockIdx.x * 2 * BLOCK + threadIdx.x;
    const DTYPE total = fold_block<BLOCK>(element(X, i, N) + element(X, i + BLOCK, N));
    if (threadIdx.x == 0)
        Y[blockIdx.x] = total;
}
