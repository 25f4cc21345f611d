// Asynchronous copies: cp.async starts a copy from global to shared memory, and the thread goes on.
#pragma once

#include "tiles.cuh"

// As ElementCopy, but this only starts the copy of a chunk, and no register is in between. With 0 bytes of
// source cp.async writes zeros. L2::128B makes L2 fetch the bytes beside the chunk, which the next tile along
// K needs. If rows do not start on 16 bytes, copies are not asynchronous. UNROLL: whether a thread's copies
// of a tile are issued all at once.
template <bool ON_16_BYTES, bool UNROLL = ON_16_BYTES> struct AsyncCopy {
    static constexpr bool UNROLLED = UNROLL;

    static __device__ void chunk(half *target, const half *__restrict__ source, int inside)
    {
        if constexpr (ON_16_BYTES)
            asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(
                             static_cast<unsigned>(__cvta_generic_to_shared(target))),
                         "l"(source), "r"(inside > 0 ? 16 : 0)
                         : "memory");
        else
            ElementCopy::chunk(target, source, inside);
    }
};

// Ends a group of copies.
static __device__ inline void commit_copies()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until the thread's copies have arrived, except for the latest `pending` groups, or MOST if that is
// less. The instruction takes a constant. If `pending` is a constant, this function becomes one wait.
template <int MOST = 7> static __device__ void wait_for_copies(int pending)
{
    if constexpr (MOST > 0)
        if (pending < MOST)
            return wait_for_copies<MOST - 1>(pending);
    asm volatile("cp.async.wait_group %0;" ::"n"(MOST) : "memory");
}
