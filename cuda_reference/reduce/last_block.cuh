// Sums that blocks leave for the last one of them, and which one that is.

#pragma once

// How many blocks of the launch are done: 0 before it and after it.
__device__ unsigned blocks_done;

// The sums of the blocks.
template <typename T, int BLOCKS> __device__ T block_sums[BLOCKS];

// Leaves the sum of a block to the last one.
template <typename T, int BLOCKS> static __device__ void leave_sum(int block, T sum)
{
    block_sums<T, BLOCKS>[block] = sum;
}

// The sum that a block has left.
template <typename T, int BLOCKS> static __device__ T left_sum(int block)
{
    return block_sums<T, BLOCKS>[block];
}

// Whether this block is the last of the launch to come here. It sees what thread 0 of each wrote before that.
// The first fence is between that and the count, so that nobody sees the count alone; the last block has one
// between the count and what it reads next. atomicInc starts again from 0 after blocks - 1, for the next launch.
static __device__ bool is_last_block(unsigned blocks)
{
    __shared__ bool last;
    if (threadIdx.x == 0) {
        __threadfence();
        last = atomicInc(&blocks_done, blocks - 1) == blocks - 1;
        if (last)
            __threadfence();
    }
    __syncthreads();
    return last;
}
