// Products of parts by wgmma: a K tile has all parts of its elements, one behind the other.
#pragma once

// The descriptor of part of a K tile at an address, in rows of ROW bytes under the swizzle of as many: 128, or
// 64. All lanes take the address from the first lane. So nvcc knows that it is the same for all, and computes
// in uniform registers, from which wgmma takes descriptors.
template <int ROW> static __device__ inline unsigned long long describe_rows(unsigned address)
{
    address = __shfl_sync(0xffffffff, address, 0);
    return (address & 0x3ffff) >> 4 | 1ull << 16 | static_cast<unsigned long long>(ROW / 2) << 32 |
           static_cast<unsigned long long>(ROW == 128 ? 1 : 2) << 62;
}

// The same so many bytes further. The lower half of a descriptor has the address in units of 16 bytes, and
// does not overflow.
static __device__ inline unsigned long long further(unsigned long long descriptor, unsigned bytes)
{
    return descriptor >> 32 << 32 | (static_cast<unsigned>(descriptor) + bytes / 16);
}
