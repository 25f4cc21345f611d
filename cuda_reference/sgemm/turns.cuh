// Warpgroups that multiply take turns: each starts its products of a K tile when the one before has started its
// own. While one adds up sums the others multiply, because they are at different places of a K tile.
#pragma once

// Waits for the turn of the warpgroup threadIdx.y of WARPGROUPS.
template <int WARPGROUPS> static __device__ __forceinline__ void wait_for_turn()
{
    if constexpr (WARPGROUPS > 1)
        asm volatile("bar.sync %0, 256;" ::"r"(1 + threadIdx.y) : "memory");
}

// Passes the turn to the next warpgroup.
template <int WARPGROUPS> static __device__ __forceinline__ void pass_turn()
{
    if constexpr (WARPGROUPS > 1)
        asm volatile("bar.arrive %0, 256;" ::"r"(1 + (threadIdx.y + 1) % WARPGROUPS) : "memory");
}

// The first turn is that of the first warpgroup: the last warpgroup passes it.
template <int WARPGROUPS> static __device__ __forceinline__ void begin_turns()
{
    if (threadIdx.y + 1 == WARPGROUPS)
        pass_turn<WARPGROUPS>();
}

// No warpgroup takes the last turn that was passed.
template <int WARPGROUPS> static __device__ __forceinline__ void end_turns()
{
    if (threadIdx.y == 0)
        wait_for_turn<WARPGROUPS>();
}
