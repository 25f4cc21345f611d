// Stream-K: programs, which are persistent blocks, share tiles of C along K. Here are the share of each, and
// the marks that say that a program has left its sums.
#pragma once

// A mark for each warp: 1 where its sums are there. All are 0 before a launch and after it.
template <int PLACES, int WARPS> static __device__ unsigned *place_of_marks()
{
    static unsigned streamed_marks[PLACES * WARPS];
    return streamed_marks;
}

// Where the share of a program starts among all units of K that are shared, K tiles or pairs of them. A share
// has `each` of them, and those of the first `extra` programs one more.
static __device__ inline int share_start(int program, int each, int extra)
{
    return program * each + min(program, extra);
}
