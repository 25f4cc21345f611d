// Sums that blocks leave for the last one of them, and which one that is. Both ways to leave a sum need the same
// FENCED in all functions of a kernel.

#pragma once

// Where blocks leave their sums where a fence says that they are there.
template <typename T, int BLOCKS> static __device__ T *place_of_sums()
{
    static T block_sums[BLOCKS];
    return block_sums;
}

// Where they leave them otherwise: a word has a sum in its lower half, and 1 in the upper half where it is there.
// Who sees one half sees the other. All are 0 before a launch, and after it.
template <int BLOCKS> static __device__ volatile unsigned long long *place_of_words()
{
    static unsigned long long block_words[BLOCKS];
    return block_words;
}

// Leaves the sum of a block for the last one.
template <typename T, int BLOCKS, bool FENCED> static __device__ void leave_sum(int block, T sum)
{
    if (FENCED)
        place_of_sums<T, BLOCKS>()[block] = sum;
    else
        place_of_words<BLOCKS>()[block] = 1ull << 32 | reinterpret_cast<unsigned &>(sum);
}

// The sum that a block has left, for the last one.
template <typename T, int BLOCKS, bool FENCED> static __device__ T left_sum(int block)
{
    if (FENCED)
        return place_of_sums<T, BLOCKS>()[block];
    unsigned long long word;
    do
        word = place_of_words<BLOCKS>()[block];
    while (word >> 32 == 0);
    place_of_words<BLOCKS>()[block] = 0;
    unsigned sum = unsigned(word);
    return reinterpret_cast<T &>(sum);
}

// Whether this block is the one that adds up the sums. FENCED: of all blocks the one that comes here last, which then
// sees what thread 0 of each wrote before. Of two fences the first is between that and the count, so that
// nobody sees the count alone, the other between the count and what the last block reads next. `done` is 0 before a
// launch and after it: atomicInc goes on with 0 after blocks - 1. Otherwise the last along y, which waits for each sum.
template <bool FENCED> static __device__ bool is_last_block(unsigned blocks)
{
    if (!FENCED)
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
