// Sums that blocks leave for the last one of them, and which one that is. With FENCE a fence and a counter say that
// sums are there, else marks do.

#pragma once

#include "shuffle.cuh"

// Where blocks leave their sums with FENCE.
template <typename T, int BLOCKS> static __device__ T *place_of_sums()
{
    static T block_sums[BLOCKS];
    return block_sums;
}

// Where they leave them else. A word has a sum in its lower half, and a mark in the upper one: 1 where the sum is
// there. A thread that sees one half also sees the other. All words are 0 before a launch and after it.
template <int BLOCKS> static __device__ volatile unsigned long long *place_of_words()
{
    static unsigned long long block_words[BLOCKS];
    return block_words;
}

// Leaves the sum of a block for the last one.
template <typename T, int BLOCKS, bool FENCE> static __device__ void leave_sum(int block, T sum)
{
    if (FENCE)
        place_of_sums<T, BLOCKS>()[block] = sum;
    else
        place_of_words<BLOCKS>()[block] = 1ull << 32 | reinterpret_cast<unsigned &>(sum);
}

// The sum that a block has left, for the last one.
template <typename T, int BLOCKS, bool FENCE> static __device__ T left_sum(int block)
{
    if (FENCE)
        return place_of_sums<T, BLOCKS>()[block];
    unsigned long long word;
    do
        word = place_of_words<BLOCKS>()[block];
    while (word >> 32 == 0);
    place_of_words<BLOCKS>()[block] = 0;
    unsigned sum = unsigned(word);
    return reinterpret_cast<T &>(sum);
}

// Whether this block adds up the sums: the last along y, which waits for each sum. With FENCE it is the one that
// comes here last, and sees what thread 0 of each block wrote before. The first fence is between that and the
// count, so that no thread sees the count without the sum. The second is between the count and the next
// reads. `done` is 0 before a launch and after it: atomicInc goes on with 0 after blocks - 1.
template <bool FENCE> static __device__ bool is_last_block(unsigned blocks)
{
    if (!FENCE)
        return blockIdx.y == blocks - 1;
    static unsigned done;
    __shared__ bool last;
    if (threadIdx.x == 0) {
        __threadfence();
        last = atomicInc(&done, blocks - 1) == blocks - 1;
        if (last)
            __threadfence();
    }
    __syncthreads();
    return last;
}

// The sum of all blocks to Y[0]. total: of this block, in thread 0. BLOCKS: of the largest grid.
template <int THREADS, int BLOCKS, bool FENCE, typename T>
static __device__ inline void store_sum_of_blocks(T total, T *Y)
{
    if (gridDim.y > 1) {
        if (threadIdx.x == 0)
            leave_sum<T, BLOCKS, FENCE>(blockIdx.y, total);
        if (!is_last_block<FENCE>(gridDim.y))
            return;
        total = 0;
        for (int b = threadIdx.x; b < gridDim.y; b += THREADS)
            total += left_sum<T, BLOCKS, FENCE>(b);
        __syncthreads(); // before shared memory is used again
        total = fold_block<THREADS>(total);
    }
    if (threadIdx.x == 0)
        Y[0] = total;
}
