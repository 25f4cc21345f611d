// Sum of an array: lanes hand their sums to each other.
//
//   nvcc -arch=sm_80 -cubin shuffle.cu
//   grid (ceil(N/(2 BLOCK))), block (BLOCK)
//   Y[b] is the sum of block b's 2 BLOCK elements; launched again on Y until one sum is left
//
// A warp shuffle moves a value from lane to lane without shared memory and without a barrier. Two levels:
// every warp folds its 32 values, lane 0 leaves the sum in shared memory, and after the only barrier the sums
// of the warps are folded.

#ifndef BLOCK
#define BLOCK 256 // threads per block, a power of two from 128 to 1024
#endif
#ifndef DTYPE
#define DTYPE int
#endif

// Sum over the first `lanes` lanes of a warp, a power of two, in lane 0.
static __device__ DTYPE fold_warp(DTYPE value, int lanes)
{
#pragma unroll
    for (int s = lanes / 2; s > 0; s /= 2)
        value += __shfl_down_sync(0xffffffffu, value, s);
    return value;
}

// Sum over the threads of the block, in thread 0: a word of shared memory per warp between two folds.
static __device__ DTYPE fold_block(DTYPE value)
{
    __shared__ DTYPE sums[BLOCK / 32];
    const int t = threadIdx.x;
    value = fold_warp(value, 32);
    if (t % 32 == 0)
        sums[t / 32] = value;
    __syncthreads();
    if (t < 32)
        value = fold_warp(t < BLOCK / 32 ? sums[t] : DTYPE(0), BLOCK / 32);
    return value;
}

extern "C" __global__ void __launch_bounds__(BLOCK)
reduce_shuffle(const DTYPE *__restrict__ X, DTYPE *__restrict__ Y, int N)
{
    const int i = blockIdx.x * 2 * BLOCK + threadIdx.x;
    const DTYPE total = fold_block((i < N ? X[i] : DTYPE(0)) + (i + BLOCK < N ? X[i + BLOCK] : DTYPE(0)));
    if (threadIdx.x == 0)
        Y[blockIdx.x] = total;
}
