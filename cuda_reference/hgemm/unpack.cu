// A matrix copied from rows that start with a line of L2 to where it belongs: the launch after
// repacked.cu.
//
//   nvcc -arch=sm_80 -cubin unpack.cu
//   grid ceil(ROWS * COLUMNS / (8 * 256)), block 256
//
// X has rows of COLUMNS elements, padded to a multiple of 64. Rows of Y may start at any address, but Y
// itself is aligned. So its elements are taken eight by eight, across rows, and stored as 16 bytes. They may
// end in the next row, so they are loaded one by one. The first of these loads of a warp also brings the
// sectors that the others need into L1. One thread stores the remaining elements, fewer than eight. Elements
// have 16 bits in any format.

#include <cstdint>

#include "../dependent_launch.cuh"

extern "C" __global__ void __launch_bounds__(256)
hgemm_unpack(const uint16_t *__restrict__ X, uint16_t *__restrict__ Y, int ROWS, int COLUMNS)
{
    overlap_launches();
    constexpr int THREADS = 256;
    constexpr int VECTOR = 8; // elements in 16 bytes
    constexpr int WIDE = 64;  // in 128 bytes
#ifdef SIZE_ROWS
    ROWS = SIZE_ROWS, COLUMNS = SIZE_COLUMNS;
#endif
    const unsigned columns = COLUMNS, pitch = (columns + WIDE - 1) / WIDE * WIDE;
    const unsigned elements = ROWS * columns, first = (blockIdx.x * THREADS + threadIdx.x) * VECTOR;
    if (first >= elements)
        return;
    unsigned row = first / columns, column = first % columns;
    const auto next = [&] {
        const uint16_t element = X[static_cast<size_t>(row) * pitch + column];
        if (++column == columns)
            ++row, column = 0;
        return element;
    };
    if (first + VECTOR <= elements) {
        union {
            uint16_t each[VECTOR];
            uint4 all;
        } eight;
#pragma unroll
        for (int i = 0; i < VECTOR; ++i)
            eight.each[i] = next();
        *reinterpret_cast<uint4 *>(Y + first) = eight.all;
    } else {
        for (unsigned i = first; i < elements; ++i)
            Y[i] = next();
    }
}
