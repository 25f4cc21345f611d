// Sums of a tile that programs share: each leaves those of its K tiles, and the one that has the first K tile
// adds them to its own.
#pragma once

#include <cuda_fp16.h>

#include "../program_shares.cuh"

// The place where warps leave sums: 16 bytes of each lane, one after the other, PIECES times.
template <int PLACES, int WARPS, int PIECES> static __device__ uint4 *place_of_parts()
{
    static uint4 streamed_parts[PLACES * WARPS * PIECES * 32];
    return streamed_parts;
}

static __device__ inline void add_words(unsigned &sum, unsigned other, float)
{
    sum = __float_as_uint(__uint_as_float(sum) + __uint_as_float(other));
}

static __device__ inline void add_words(unsigned &sum, unsigned other, half)
{
    const half2 both = __hadd2(reinterpret_cast<half2 &>(sum), reinterpret_cast<half2 &>(other));
    sum = reinterpret_cast<const unsigned &>(both);
}

// Leaves the sums of a warp. The mark is stored when all lanes have stored theirs.
template <int PLACES, int WARPS, int PIECES>
static __device__ __forceinline__ void leave_part(const unsigned *sums, int program)
{
    const int warp = program * WARPS + threadIdx.y * 4 + threadIdx.x / 32;
    uint4 *const part = place_of_parts<PLACES, WARPS, PIECES>() + warp * PIECES * 32 + threadIdx.x % 32;
    for (int v = 0; v < PIECES; ++v)
        part[v * 32] = make_uint4(sums[4 * v], sums[4 * v + 1], sums[4 * v + 2], sums[4 * v + 3]);
    __syncwarp();
    if (threadIdx.x % 32 == 0)
        asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(place_of_marks<PLACES, WARPS>() + warp)
                     : "memory");
}

// Waits for the sums that the same warp of another program leaves, and adds them.
template <int PLACES, int WARPS, int PIECES, typename Sum>
static __device__ __forceinline__ void add_part(unsigned *sums, int program)
{
    const int warp = program * WARPS + threadIdx.y * 4 + threadIdx.x / 32;
    unsigned *const mark = place_of_marks<PLACES, WARPS>() + warp;
    if (threadIdx.x % 32 == 0) {
        unsigned left;
        do
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(left) : "l"(mark) : "memory");
        while (left == 0);
        asm volatile("st.relaxed.gpu.global.u32 [%0], 0;" ::"l"(mark) : "memory");
    }
    __syncwarp();
    const uint4 *const part =
        place_of_parts<PLACES, WARPS, PIECES>() + warp * PIECES * 32 + threadIdx.x % 32;
    for (int v = 0; v < PIECES; ++v) {
        const uint4 other = part[v * 32];
        add_words(sums[4 * v], other.x, Sum());
        add_words(sums[4 * v + 1], other.y, Sum());
        add_words(sums[4 * v + 2], other.z, Sum());
        add_words(sums[4 * v + 3], other.w, Sum());
    }
}

// What a thread does with its sums of a tile when its K tiles are multiplied. leaves: whether the tile's
// first K tile is another program's. end: the K tile behind the tile's, 0 of a tile that is not shared.
template <int PLACES, int WARPS, int PIECES, typename Sum>
static __device__ __forceinline__ void share_sums(Sum &first, bool leaves, int program, int end, int each,
                                                  int extra, int programs)
{
    unsigned *const sums = reinterpret_cast<unsigned *>(&first);
    if (leaves)
        leave_part<PLACES, WARPS, PIECES>(sums, program);
    else
        for (int other = program + 1; other < programs && share_start(other, each, extra) < end; ++other)
            add_part<PLACES, WARPS, PIECES, Sum>(sums, other);
}
