// Sums of a warp and of a block by warp shuffles.

#pragma once

// Sum over the first `lanes` lanes of a warp, a power of two, in lane 0.
template <typename T> static __device__ T fold_warp(T value, int lanes)
{
#pragma unroll
    for (int s = lanes / 2; s > 0; s /= 2)
        value += __shfl_down_sync(0xffffffffu, value, s);
    return value;
}

// Sum over the threads of the block, in thread 0: a word of shared memory per warp between two folds.
template <int THREADS, typename T> static __device__ T fold_block(T value)
{
    __shared__ T sums[THREADS / 32];
    const int t = threadIdx.x;
    value = fold_warp(value, 32);
    if (t % 32 == 0)
        sums[t / 32] = value;
    __syncthreads();
    if (t < 32)
        value = fold_warp(t < THREADS / 32 ? sums[t] : T(0), THREADS / 32);
    return value;
}
