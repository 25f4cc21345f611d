// Sums of a tile that programs share: the program with its first K tiles stores them in C, and the next
// programs add theirs there.
#pragma once

// Waits until the same warp of the previous program has left its sums in C, if that program has earlier K
// tiles of the tile. All lanes load the mark: if one lane did it for the others, nvcc would not know that
// they go on together, and would put a WARPSYNC into each iteration of the loop over K tiles, which costs 4 %
// on an H200.
template <int PLACES, int WARPS> static __device__ __forceinline__ void wait_for_sums(bool waits, int program)
{
    if (waits) {
        unsigned *const mark = place_of_marks<PLACES, WARPS>() + (program - 1) * WARPS + threadIdx.x / 32;
        unsigned left;
        do
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(left) : "l"(mark) : "memory");
        while (!__all_sync(0xffffffffu, left != 0));
        asm volatile("{ .reg .pred first;\n"
                     "  setp.eq.u32 first, %1, 0;\n"
                     "  @first st.relaxed.gpu.global.u32 [%0], 0; }" ::"l"(mark), "r"(threadIdx.x % 32) : "memory");
    }
}

// Tells the next program that the sums of this warp are in C, if that program has later K tiles of the tile.
template <int PLACES, int WARPS> static __device__ __forceinline__ void leave_mark(bool leaves, int program)
{
    if (leaves) {
        __syncwarp();
        asm volatile("{ .reg .pred first;\n"
                     "  setp.eq.u32 first, %1, 0;\n"
                     "  @first st.release.gpu.global.u32 [%0], 1; }" ::
                         "l"(place_of_marks<PLACES, WARPS>() + program * WARPS + threadIdx.x / 32),
                     "r"(threadIdx.x % 32) : "memory");
    }
}

// Adds to one element of C: if rows are not multiples of 16 bytes, neighbours may start at any address.
static __device__ __forceinline__ void add_one(float &target, float sum)
{
    atomicAdd(&target, sum);
}

// The same for four neighbours, 16 bytes at a time from sm_90 on: on an H200 four single additions took 1 %
// of the time of a product at 4096. Nothing is read, because L2 adds the sums.
static __device__ __forceinline__ void add_four(float &target, const float &sum)
{
    const float *const sums = &sum;
#if __CUDA_ARCH__ >= 900
    asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(&target), "f"(sums[0]),
                 "f"(sums[1]), "f"(sums[2]), "f"(sums[3]) : "memory");
#else
    for (int e = 0; e < 4; ++e)
        atomicAdd(&target + e, sums[e]);
#endif
}
