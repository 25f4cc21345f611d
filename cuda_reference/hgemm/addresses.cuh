// Addresses in shared memory as PTX takes them: 32 bits.
#pragma once

#pragma nv_diag_suppress 177 // a kernel calls some of the functions below, not all

static __device__ inline unsigned shared_address(const void *pointer)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

// The same place in the shared memory of another block of the cluster.
static __device__ inline unsigned address_in_block(unsigned address, unsigned block)
{
    unsigned there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(block));
    return there;
}
