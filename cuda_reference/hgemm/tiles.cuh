// Tiles in shared memory: how they lie there, and how all threads of a block copy them from and to global
// memory. A block is 32 threads wide, or WIDE.
#pragma once

#include <cuda_fp16.h>
#include <type_traits>

constexpr int CHUNK = 8; // halves in 16 bytes, the widest access

template <int WIDE = 32> static __device__ inline unsigned thread_of_block()
{
    return threadIdx.y * WIDE + threadIdx.x;
}

// A tile of HEIGHT rows of WIDTH halves; each row is followed by PAD halves of padding.
template <int HEIGHT, int WIDTH, int PAD> struct PaddedTile {
    static constexpr int ROWS = HEIGHT, COLS = WIDTH;
    static constexpr int STRIDE = COLS + PAD; // from row to row
    static constexpr int SIZE = ROWS * STRIDE;
    static_assert(STRIDE % CHUNK == 0, "rows must start on 16 bytes");

    static __device__ int offset(int row, int col)
    {
        return row * STRIDE + col;
    }
};

// A chunk of a matrix in registers: the first `inside` halves of it, zeros for the others. ON_16_BYTES: its
// rows start on 16 bytes, so that a chunk lies in it as a whole or not at all.
template <bool ON_16_BYTES> static __device__ uint4 read_chunk(const half *__restrict__ source, int inside)
{
    uint4 value = make_uint4(0, 0, 0, 0);
    if constexpr (ON_16_BYTES) {
        if (inside > 0) // __ldca: ptxas moves other reads of a constant matrix behind barriers
            value = __ldca(reinterpret_cast<const uint4 *>(source));
    } else {
#pragma unroll
        for (int e = 0; e < CHUNK; ++e)
            if (e < inside)
                reinterpret_cast<half *>(&value)[e] = source[e];
    }
    return value;
}

// Copies a chunk to shared memory through registers: as a whole, or element by element.
template <bool ON_16_BYTES> struct PlainCopy {
    static constexpr bool UNROLLED = ON_16_BYTES;

    static __device__ void chunk(half *target, const half *__restrict__ source, int inside)
    {
        *reinterpret_cast<uint4 *>(target) = read_chunk<ON_16_BYTES>(source, inside);
    }
};
using ElementCopy = PlainCopy<false>;

// One thread's share of a tile on its way to shared memory, in registers: a chunk of every STEP-th row.
template <typename Tile, int THREADS, bool ON_16_BYTES> struct TileInRegisters {
    static constexpr int CHUNKS = Tile::COLS / CHUNK; // of a row
    static constexpr int STEP = THREADS / CHUNKS;
    static_assert(THREADS % CHUNKS == 0, "threads must copy whole rows");
    const int r = thread_of_block() / CHUNKS;
    const int c = thread_of_block() % CHUNKS * CHUNK;
    uint4 chunks[(Tile::ROWS + STEP - 1) / STEP];

    // Whether there is a chunk i rows below the first.
    __device__ bool has(int i) const
    {
        return Tile::ROWS % STEP == 0 || r + i < Tile::ROWS;
    }

    // Reads the tile at (row, col) of a rows x cols matrix; what lies beyond the matrix becomes zeros.
    __device__ void read(const half *__restrict__ matrix, int row, int col, int rows, int cols)
    {
        const half *const source = matrix + ((row + r) * cols + col + c);
#pragma unroll
        for (int i = 0; i < Tile::ROWS; i += STEP)
            if (has(i))
                chunks[i / STEP] =
                    read_chunk<ON_16_BYTES>(source + i * cols, i < rows - row - r ? cols - col - c : 0);
    }

    // Writes it to a tile in shared memory.
    __device__ void write(half *tile) const
    {
#pragma unroll
        for (int i = 0; i < Tile::ROWS; i += STEP)
            if (has(i))
                *reinterpret_cast<uint4 *>(tile + Tile::offset(r + i, c)) = chunks[i / STEP];
    }
};

// All threads copy the tile at (row, col) of a rows x cols matrix to shared memory, each one a chunk of every
// STEP-th row, in the manner of Copy; what lies beyond the matrix becomes zeros.
template <typename Tile, int THREADS, typename Copy, int WIDE = 32>
static __device__ void copy_tile(half *tile, const half *__restrict__ matrix, int row, int col, int rows,
                                 int cols)
{
    constexpr int CHUNKS = Tile::COLS / CHUNK; // of a row
    constexpr int STEP = THREADS / CHUNKS;
    constexpr int UNROLL = Copy::UNROLLED ? Tile::ROWS : 1;
    static_assert(THREADS % CHUNKS == 0, "threads must copy whole rows");
    const int r = thread_of_block<WIDE>() / CHUNKS;
    const int c = thread_of_block<WIDE>() % CHUNKS * CHUNK;
    const int from = (row + r) * cols + col + c;
#pragma unroll UNROLL
    for (int i = 0; i < Tile::ROWS; i += STEP)
        if (Tile::ROWS % STEP == 0 || r + i < Tile::ROWS)
            Copy::chunk(tile + Tile::offset(r + i, c), matrix + (from + i * cols),
                        i < rows - row - r ? cols - col - c : 0);
}

// All threads copy both tiles of an iteration, from k0 on: that of A, m x k, from `row`, and behind it that
// of B, which is stored as n x k if B_BY_COLUMNS, else as k x n, from `col`. CopyA: the manner for A.
template <typename TileA, typename TileB, bool B_BY_COLUMNS, int THREADS, typename Copy,
          typename CopyA = Copy>
static __device__ void copy_tiles(half *tiles, const half *__restrict__ A, const half *__restrict__ B,
                                  int row, int col, int k0, int m, int n, int k)
{
    half *const tile_b = tiles + TileA::SIZE;
    copy_tile<TileA, THREADS, CopyA>(tiles, A, row, k0, m, k);
    if constexpr (B_BY_COLUMNS)
        copy_tile<TileB, THREADS, Copy>(tile_b, B, col, k0, n, k);
    else
        copy_tile<TileB, THREADS, Copy>(tile_b, B, k0, col, k, n);
}

// All threads write a tile of HEIGHT x WIDTH elements, in rows of STRIDE, to (row, col) of a rows x cols
// matrix, neighbouring threads neighbouring pieces: of 16 bytes where its rows start on such, else elements.
template <int HEIGHT, int WIDTH, int STRIDE, int THREADS, bool ON_16_BYTES, typename Element>
static __device__ void write_tile(Element *__restrict__ matrix, const Element *tile, int row, int col,
                                  int rows, int cols)
{
    using Piece = std::conditional_t<ON_16_BYTES, uint4, Element>;
    constexpr int PIECE = sizeof(Piece) / sizeof(Element);
    static_assert(WIDTH % PIECE == 0 && HEIGHT * WIDTH % (PIECE * THREADS) == 0,
                  "threads must write whole pieces, as many each");
#pragma unroll 8
    for (int i = 0; i < HEIGHT * WIDTH; i += PIECE * THREADS) {
        const int r = (i + thread_of_block() * PIECE) / WIDTH;
        const int c = (i + thread_of_block() * PIECE) % WIDTH;
        if (row + r < rows && col + c < cols)
            *reinterpret_cast<Piece *>(matrix + (row + r) * cols + col + c) =
                *reinterpret_cast<const Piece *>(tile + r * STRIDE + c);
    }
}
