// Copies of matrices to rows that start with a line of L2, or to whole tiles.
// Twins that include this may stand in one file, with this in each: so a guard.
#ifndef REPACKING_CUH
#define REPACKING_CUH

#include <cstdint>

// The work of block number `block`, one of (32, 8) threads. X has rows x columns elements, Y height x pitch, of
// which the others become zeros. Rows of Y are multiples of 16 bytes. Rows of X start anywhere, so elements are
// loaded one by one; a thread loads as many neighbours as 16 bytes have before it stores them together. The first
// of these loads of a warp brings the sectors into L1 that the others need, too. A warp takes 512 bytes of a row,
// a block those of eight rows.
template <typename Element>
static __device__ __forceinline__ void copy_to_aligned_rows(const Element *__restrict__ X,
                                                            Element *__restrict__ Y, int rows, int columns,
                                                            int height, int pitch, int block)
{
    constexpr int WARP = 32, WARPS = 8;
    constexpr int VECTOR = 16 / sizeof(Element);
    const int pieces = pitch / VECTOR;            // of a row of Y
    const int warps = (pieces + WARP - 1) / WARP; // that share a row
    const int row = block / warps * WARPS + threadIdx.y;
    const int piece = block % warps * WARP + threadIdx.x, column = piece * VECTOR;
    if (row >= height || piece >= pieces)
        return;
    const Element *const from = X + static_cast<size_t>(row) * columns;
    union {
        Element each[VECTOR];
        uint4 all;
    } elements;
#pragma unroll
    for (int i = 0; i < VECTOR; ++i)
        elements.each[i] = row < rows && column + i < columns ? from[column + i] : 0;
    reinterpret_cast<uint4 *>(Y)[static_cast<size_t>(row) * pieces + piece] = elements.all;
}

// The same where Y has the rows of X, filled up to a multiple of 128 bytes.
template <typename Element>
static __device__ __forceinline__ void copy_to_aligned_rows(const Element *__restrict__ X,
                                                            Element *__restrict__ Y, int rows, int columns,
                                                            int block)
{
    constexpr int WIDE = 128 / sizeof(Element);
    copy_to_aligned_rows(X, Y, rows, columns, rows, (columns + WIDE - 1) / WIDE * WIDE, block);
}

#endif
