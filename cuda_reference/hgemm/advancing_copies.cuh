// Copies of the tiles along K, one after the other, with few instructions for each.
#pragma once

#include "async_copies.cuh"

// One thread's share of copying tiles: chunks STEP rows apart. Along K a tile has its rows if K_DOWN, else
// its columns; the other way it starts at `start` of the `size` rows or columns that the matrix has. Rows or
// columns beyond these are copies of the last one: they add only to elements of C that are not written.
template <typename Tile, int THREADS, bool K_DOWN, bool ON_16_BYTES> struct AdvancingCopies {
    static constexpr int STEP = THREADS / (Tile::COLS / CHUNK);
    static constexpr int COUNT = (Tile::ROWS + STEP - 1) / STEP;
    // Steps until r % 8 is the same.
    static constexpr int PERIOD = STEP % 8 == 0 ? 1 : STEP % 4 == 0 ? 2 : STEP % 2 == 0 ? 4 : 8;
    static constexpr int UNROLL = AsyncCopy<ON_16_BYTES>::UNROLLED ? COUNT : 1;
    static_assert(THREADS % (Tile::COLS / CHUNK) == 0, "threads must start whole rows");
    const half *source; // of the next tile along K, the other way at 0
    const int start, size, width;

    // Starts the copies of a tile with `extent` k, zeros behind them, and goes on to the next tile. WHOLE:
    // there is no need for zeros.
    template <bool WHOLE> __device__ void copy(half *tile, int extent)
    {
        const unsigned thread = threadIdx.y * 32 + threadIdx.x;
        const int row = thread / (Tile::COLS / CHUNK);
        const int col = thread % (Tile::COLS / CHUNK) * CHUNK;
#pragma unroll UNROLL
        for (int i = 0; i < COUNT; ++i) {
            if (Tile::ROWS % STEP != 0 && row + i * STEP >= Tile::ROWS)
                continue;
            const int across = K_DOWN && !ON_16_BYTES ? start + col
                               : K_DOWN               ? min(start + col, size - CHUNK)
                                                      : min(start + row + i * STEP, size - 1);
            const unsigned from = K_DOWN ? (row + i * STEP) * width + across : across * width + col;
            const int along = WHOLE ? CHUNK : K_DOWN ? (row + i * STEP < extent) * CHUNK : extent - col;
            const int inside = K_DOWN && !ON_16_BYTES ? min(along, size - start - col) : along;
            half *const to =
                tile + Tile::offset(row + i % PERIOD * STEP, col) + i / PERIOD * PERIOD * STEP * Tile::COLS;
            AsyncCopy<ON_16_BYTES>::chunk(to, source + from, inside);
        }
        source += K_DOWN ? extent * width : extent;
    }
};
