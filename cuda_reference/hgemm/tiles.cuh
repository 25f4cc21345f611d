// Tiles in shared memory: how they lie there, and how all threads of a block copy them from and to global
// memory. A block is 32 threads wide, a warp.
#pragma once

#include <cuda_fp16.h>
#include <type_traits>

constexpr int CHUNK = 8; // halves in 16 bytes, the widest access

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
        if (inside > 0)
            value = *reinterpret_cast<const uint4 *>(source);
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

// How the warps of a block share a tile of HEIGHT rows of PIECES pieces: each warp has rows that follow each
// other, and its lanes take neighbouring pieces of DOWN rows at a time.
template <int HEIGHT, int PIECES, int WARPS> struct RowsOfWarp {
    static constexpr int ACROSS = PIECES % 32 == 0 ? 32 : PIECES & -PIECES; // lanes along a row
    static constexpr int DOWN = 32 / ACROSS;
    static constexpr int ROWS = (HEIGHT + WARPS * DOWN - 1) / (WARPS * DOWN) * DOWN; // of a warp
    static constexpr bool EVEN = ROWS * WARPS == HEIGHT;
    const int row = threadIdx.y * ROWS + threadIdx.x / ACROSS; // the lane's first
    const int piece = threadIdx.x % ACROSS;

    // Whether the tile has the row i below the lane's first.
    __device__ bool has(int i) const
    {
        return EVEN || row + i < HEIGHT;
    }
};

// All threads copy the tile at (row, col) of a rows x cols matrix to shared memory by Copy. Elements beyond
// the matrix become zeros.
template <typename Tile, int THREADS, typename Copy>
static __device__ void copy_tile(half *tile, const half *__restrict__ matrix, int row, int col, int rows,
                                 int cols)
{
    constexpr int UNROLL = Copy::UNROLLED ? Tile::ROWS : 1;
    using Share = RowsOfWarp<Tile::ROWS, Tile::COLS / CHUNK, THREADS / 32>;
    const Share share;
    const int r = share.row, c = share.piece * CHUNK;
    const int from = (row + r) * cols + col + c;
#pragma unroll UNROLL
    for (int i = 0; i < Share::ROWS; i += Share::DOWN)
#pragma unroll
        for (int j = 0; j < Tile::COLS; j += Share::ACROSS * CHUNK)
            if (share.has(i))
                Copy::chunk(tile + Tile::offset(r + i, c + j), matrix + (from + i * cols + j),
                            i < rows - row - r ? cols - col - c - j : 0);
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

// COUNT neighbours in a row that are written at once.
template <typename Element, int COUNT> struct alignas(COUNT * sizeof(Element)) Neighbours {
    Element of[COUNT];
};

// Writes neighbours, each rounded where the matrix has another format.
template <typename Result, typename Element, int COUNT>
static __device__ __forceinline__ void write_neighbours(Result *to, const Neighbours<Element, COUNT> &from)
{
    if constexpr (std::is_same_v<Result, Element>) {
        *reinterpret_cast<Neighbours<Element, COUNT> *>(to) = from;
    } else {
        Neighbours<Result, COUNT> rounded;
#pragma unroll
        for (int i = 0; i < COUNT; ++i)
            rounded.of[i] = static_cast<Result>(from.of[i]);
        *reinterpret_cast<Neighbours<Result, COUNT> *>(to) = rounded;
    }
}

// All threads write a tile of HEIGHT x WIDTH elements, in rows of STRIDE, to (row, col) of a rows x cols
// matrix, in pieces of 16 bytes of the tile if rows of the matrix start on 16 bytes, else element by element.
template <int HEIGHT, int WIDTH, int STRIDE, int THREADS, bool ON_16_BYTES, typename Result,
          typename Element>
static __device__ void write_tile(Result *__restrict__ matrix, const Element *tile, int row, int col,
                                  int rows, int cols)
{
    constexpr int PIECE = ON_16_BYTES ? 16 / sizeof(Element) : 1;
    using Piece = Neighbours<Element, PIECE>;
    using Share = RowsOfWarp<HEIGHT, WIDTH / PIECE, THREADS / 32>;
    static_assert(WIDTH % PIECE == 0, "rows must consist of pieces");
    const Share share;
    const int r = share.row, c = share.piece * PIECE;
#pragma unroll 8
    for (int i = 0; i < Share::ROWS; i += Share::DOWN)
#pragma unroll
        for (int j = 0; j < WIDTH; j += Share::ACROSS * PIECE)
            if (share.has(i) && row + r + i < rows && col + c + j < cols)
                write_neighbours(matrix + (row + r + i) * cols + col + c + j,
                                 *reinterpret_cast<const Piece *>(tile + (r + i) * STRIDE + c + j));
}
