// Products of parts by wgmma: a K tile has all parts of its elements, one behind the other.
#pragma once

// The descriptor of part of a K tile at an address, in rows of ROW bytes under the swizzle of as many: 128, or
// 64.
template <int ROW> static __device__ inline unsigned long long describe_rows(unsigned address)
{
    return (address & 0x3ffff) >> 4 | 1ull << 16 | static_cast<unsigned long long>(ROW / 2) << 32 |
           static_cast<unsigned long long>(ROW == 128 ? 1 : 2) << 62;
}
