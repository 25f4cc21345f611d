// The K tile of a block in shared memory: 64 of K, of A and behind it of B. It fills one stage of the
// pipeline.
#pragma once

#include "barriers.cuh"
#include "boxes.cuh"
#include "tiles.cuh"
#include "wgmma.cuh"
#include "xor_swizzle.cuh"

// All THREADS threads copy the tile at (row, col) of a rows x cols matrix to shared memory by Copy, each
// thread a chunk of every STEP-th row. Elements beyond the matrix become zeros.
template <typename Tile, int THREADS, typename Copy>
static __device__ void copy_k_tile(half *tile, const half *__restrict__ matrix, int row, int col, int rows,
                                   int cols)
{
    constexpr int CHUNKS = Tile::COLS / CHUNK; // of a row
    constexpr int STEP = THREADS / CHUNKS;
    constexpr int UNROLL = Copy::UNROLLED ? Tile::ROWS : 1;
    static_assert(THREADS % CHUNKS == 0, "threads must copy whole rows");
    const unsigned thread = threadIdx.y * WARPGROUP + threadIdx.x;
    const int r = thread / CHUNKS;
    const int c = thread % CHUNKS * CHUNK;
    const int from = (row + r) * cols + col + c;
#pragma unroll UNROLL
    for (int i = 0; i < Tile::ROWS; i += STEP)
        if (Tile::ROWS % STEP == 0 || r + i < Tile::ROWS)
            Copy::chunk(tile + Tile::offset(r + i, c), matrix + (from + i * cols),
                        i < rows - row - r ? cols - col - c : 0);
}

constexpr int WIDTH_OF_BOX = 64; // of an operand that has a row for each k
constexpr int MOST_ROWS = 256;   // of a box; more come in boxes of as many rows each

// One thread starts the copy engine, which loads EXTENT rows of A, or columns of B, of a K tile. BY_EXTENT:
// they are rows of the matrix; else there is a row for each k, and boxes have 64 columns. If BLOCKS blocks of
// a cluster need the same, each loads a part for all of them: this one part `block`, for those whose bits are
// set in `blocks`. A part is some of the rows or columns. If boxes of 64 columns cannot be shared evenly, it
// is some k of every box.
template <int EXTENT, bool BY_EXTENT, int BLOCKS = 1>
static __device__ __forceinline__ void load_operand(unsigned to, const CUtensorMap &map, int first, int k0,
                                                    unsigned barrier, unsigned block = 0,
                                                    unsigned short blocks = (1 << BLOCKS) - 1)
{
    constexpr bool BY_K = !BY_EXTENT && EXTENT % (BLOCKS * WIDTH_OF_BOX) != 0;
    constexpr int SHARE = BY_K ? EXTENT : EXTENT / BLOCKS;
    constexpr int STEP = BY_EXTENT ? SHARE / ((SHARE + MOST_ROWS - 1) / MOST_ROWS) : WIDTH_OF_BOX;
    constexpr int K_SHARE = BY_K ? K_TILE / BLOCKS : K_TILE;
    static_assert(SHARE % STEP == 0 && STEP % 8 == 0 && K_SHARE % 8 == 0, "parts must be whole patterns");
    const int from = BLOCKS > 1 && !BY_K ? block * SHARE : 0, k = BY_K ? block * K_SHARE : 0;
#pragma unroll
    for (int c = 0; c < SHARE; c += STEP) {
        const unsigned target = to + (from + c + k) * ROW_BYTES;
        const int row = BY_EXTENT ? first + from + c : k0 + k, col = BY_EXTENT ? k0 : first + from + c;
        if constexpr (BLOCKS == 1)
            load_box(target, map, row, col, barrier);
        else
            load_box_for(blocks, target, map, row, col, barrier);
    }
}

// HEIGHT rows of A and WIDTH columns of B. B_BY_COLUMNS: B is stored as n x k, and its K tile has a row per
// column; else as k x n, and its K tile is boxes of 64 columns, each with a row per k.
template <int HEIGHT, int WIDTH, bool B_BY_COLUMNS> struct KTile {
    static constexpr int BYTES_OF_A = HEIGHT * ROW_BYTES, BYTES = BYTES_OF_A + WIDTH * ROW_BYTES;
    static_assert(HEIGHT % 8 == 0 && WIDTH % (B_BY_COLUMNS ? 8 : WIDTH_OF_BOX) == 0,
                  "the swizzle repeats every 8 rows, a box of B has 64 columns");

    // All THREADS threads copy K tiles from (row, k0) of A and (k0, col) of B, in the manner of Copy. Of
    // elements only the bits matter here.
    template <int THREADS, typename Copy, typename Element>
    static __device__ void copy(unsigned char *stage, const Element *__restrict__ A,
                                const Element *__restrict__ B, int row, int col, int k0, int m, int n, int k)
    {
        const half *const a = reinterpret_cast<const half *>(A), *const b = reinterpret_cast<const half *>(B);
        half *const tile_a = reinterpret_cast<half *>(stage);
        half *const tile_b = tile_a + HEIGHT * K_TILE;
        copy_k_tile<SwizzledTile<HEIGHT, K_TILE>, THREADS, Copy>(tile_a, a, row, k0, m, k);
        if constexpr (B_BY_COLUMNS)
            copy_k_tile<SwizzledTile<WIDTH, K_TILE>, THREADS, Copy>(tile_b, b, col, k0, n, k);
        else
#pragma unroll
            for (int c = 0; c < WIDTH; c += WIDTH_OF_BOX)
                copy_k_tile<SwizzledTile<K_TILE, WIDTH_OF_BOX>, THREADS, Copy>(
                    tile_b + c * K_TILE, b, k0, col + c, k, n);
    }

    // One thread has the copy engine do it; the barrier is told of BYTES bytes.
    static __device__ __forceinline__ void load(unsigned stage, const CUtensorMap &A_map,
                                                const CUtensorMap &B_map, int row, int col, int k0,
                                                unsigned barrier)
    {
        load_operand<HEIGHT, true>(stage, A_map, row, k0, barrier);
        load_operand<WIDTH, B_BY_COLUMNS>(stage + BYTES_OF_A, B_map, col, k0, barrier);
    }

    // The same in a cluster of BLOCKS blocks that multiply with the same B: each loads its part of that for
    // all of them. Each is told of BYTES bytes.
    template <int BLOCKS>
    static __device__ __forceinline__ void load_shared(unsigned stage, const CUtensorMap &A_map,
                                                       const CUtensorMap &B_map, int row, int col, int k0,
                                                       unsigned barrier, unsigned block)
    {
        load_operand<HEIGHT, true>(stage, A_map, row, k0, barrier);
        load_operand<WIDTH, B_BY_COLUMNS, BLOCKS>(stage + BYTES_OF_A, B_map, col, k0, barrier, block);
    }
};
