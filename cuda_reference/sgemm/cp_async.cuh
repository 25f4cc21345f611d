// Asynchronous copies from global to shared memory, in groups.
#pragma once

// Copies FLOATS neighbouring floats, 1, 2 or 4; zeros if not `inside`, and reads nothing.
template <int FLOATS> __device__ __forceinline__ void copy_async(float *to, const float *from, bool inside)
{
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
    if constexpr (FLOATS == 4)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from),
                     "r"(inside ? 16 : 0)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(address), "l"(from),
                     "n"(4 * FLOATS), "r"(inside ? 4 * FLOATS : 0)
                     : "memory");
}

// Closes a group of copies.
__device__ __forceinline__ void commit_copies()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until at most GROUPS groups are under way.
template <int GROUPS> __device__ __forceinline__ void wait_group()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(GROUPS) : "memory");
}
