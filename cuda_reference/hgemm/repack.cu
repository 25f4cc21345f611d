// A matrix copied so that its rows start on multiples of 16 bytes: the launch before repacked.cu.
//
//   nvcc -arch=sm_80 -cubin repack.cu
//   grid ceil(ROWS / 8) * ceil(COLUMNS / 256), block (32, 8)
//
// Y has rows of COLUMNS elements, filled with zeros up to a multiple of 8. Rows of X start anywhere, so
// elements are loaded one by one; a thread loads eight neighbours before it stores them as 16 bytes. The first
// of these loads of a warp brings the sectors into L1 that the others need, too. A warp takes 256 neighbours
// of a row, a block those of eight rows.
// Elements have 16 bits of whatever format.

#include <cstdint>

extern "C" __global__ void __launch_bounds__(256)
hgemm_repack(const uint16_t *__restrict__ X, uint16_t *__restrict__ Y, int ROWS, int COLUMNS)
{
    constexpr int WARP = 32, WARPS = 8;
    constexpr int VECTOR = 8; // elements in 16 bytes
#ifdef SIZE_ROWS
    ROWS = SIZE_ROWS, COLUMNS = SIZE_COLUMNS;
#endif
    const int pieces = (COLUMNS + VECTOR - 1) / VECTOR; // of a row of Y
    const int warps = (pieces + WARP - 1) / WARP;       // that share a row
    const int row = blockIdx.x / warps * WARPS + threadIdx.y;
    const int piece = blockIdx.x % warps * WARP + threadIdx.x, column = piece * VECTOR;
    if (row >= ROWS || piece >= pieces)
        return;
    const uint16_t *const from = X + static_cast<size_t>(row) * COLUMNS;
    union {
        uint16_t each[VECTOR];
        uint4 all;
    } elements;
#pragma unroll
    for (int i = 0; i < VECTOR; ++i)
        elements.each[i] = column + i < COLUMNS ? from[column + i] : 0;
    reinterpret_cast<uint4 *>(Y)[static_cast<size_t>(row) * pieces + piece] = elements.all;
}
