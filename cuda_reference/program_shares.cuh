// Programs, which are blocks that compute tile after tile, share tiles slab by slab: what each has of them, and the
// marks by which one knows what another one has left.
#pragma once

// A mark for each warp: 1 where its sums are there. All are 0 before a launch and after it.
template <int PLACES, int WARPS> static __device__ unsigned *place_of_marks()
{
    static unsigned streamed_marks[PLACES * WARPS];
    return streamed_marks;
}

// The first of the slabs that a program has, of all that are shared: `each` of them, and one more for the first
// `extra` programs.
static __device__ inline int first_slab_of(int program, int each, int extra)
{
    return program * each + min(program, extra);
}
