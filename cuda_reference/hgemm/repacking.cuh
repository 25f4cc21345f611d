// Copies of matrices to rows that start with a line of L2.
// Has a guard, because a file that joins several twins has this in each of them.
#ifndef REPACKING_CUH
#define REPACKING_CUH

#include <cstdint>

// The work of block number `block`, one of (32, 8) threads. X has rows x columns elements of 16 bits, Y the same
// rows, filled up with zeros to a multiple of 128 bytes. Rows of X may start at any address, so elements are
// loaded one by one. A thread loads as many neighbours as 16 bytes have before it stores them together. The
// first of these loads of a warp also brings the sectors that the others need into L1. A warp takes 512 bytes
// of a row, and a block takes eight rows.
static __device__ __forceinline__ void copy_to_lines(const uint16_t *__restrict__ X, uint16_t *__restrict__ Y,
                                                     int rows, int columns, int block)
{
    constexpr int WARP = 32, WARPS = 8;
    constexpr int VECTOR = 8, WIDE = 64;                              // elements in 16 bytes, and in 128
    const int pieces = (columns + WIDE - 1) / WIDE * (WIDE / VECTOR); // of a row of Y
    const int warps = (pieces + WARP - 1) / WARP;                     // that share a row
    const int row = block / warps * WARPS + threadIdx.y;
    const int piece = block % warps * WARP + threadIdx.x, column = piece * VECTOR;
    if (row >= rows || piece >= pieces)
        return;
    const uint16_t *const from = X + static_cast<size_t>(row) * columns;
    union {
        uint16_t each[VECTOR];
        uint4 all;
    } elements;
#pragma unroll
    for (int i = 0; i < VECTOR; ++i)
        elements.each[i] = column + i < columns ? from[column + i] : 0;
    reinterpret_cast<uint4 *>(Y)[static_cast<size_t>(row) * pieces + piece] = elements.all;
}

#endif
