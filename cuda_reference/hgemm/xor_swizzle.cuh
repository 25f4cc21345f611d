// Tiles in shared memory under an XOR swizzle.
#pragma once

#include "tiles.cuh"

// A tile of HEIGHT rows of WIDTH halves: the chunk c of row r lies at chunk c ^ (r % 8). Of rows of 32 halves
// two fill the banks, so they are swizzled alike.
template <int HEIGHT, int WIDTH> struct SwizzledTile {
    static constexpr int ROWS = HEIGHT, COLS = WIDTH;
    static constexpr int SIZE = ROWS * COLS;
    static_assert(COLS == 32 || COLS % 64 == 0, "rows must be half of all banks, or fill them");

    // Where the chunk begins that holds `col`.
    static __device__ unsigned offset(unsigned row, unsigned col)
    {
        return row * COLS + (col / CHUNK ^ (COLS == 32 ? row / 2 % 4 : row % 8)) * CHUNK;
    }
};
