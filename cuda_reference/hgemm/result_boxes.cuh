// A warpgroup's tile of C goes out through shared memory, in boxes that TMA copies to C. A box has 64 rows of
// 128 bytes, or of 64 or 32 if a row of the tile is not a multiple of 128 bytes. Its swizzle has as many bytes
// as its rows.
#pragma once

#include "boxes.cuh"
#include "warpgroup_tile.cuh"

// Four 8 x 8 matrices of 16-bit elements to shared memory, a register of each: the lane gives the address of
// row lane % 8 of matrix lane / 8. It has elements 2t and 2t + 1 of row g of each matrix, with t = lane % 4
// and g = lane / 4: as wgmma leaves its sums.
static __device__ inline void store_matrices(unsigned address, const unsigned (&value)[4])
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
                 "r"(value[0]), "r"(value[1]), "r"(value[2]), "r"(value[3])
                 : "memory");
}

// The same, with the matrices transposed: the lane gives the address of column lane % 8 of matrix lane / 8.
static __device__ inline void store_transposed_matrices(unsigned address, const unsigned (&value)[4])
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
                 "r"(value[0]), "r"(value[1]), "r"(value[2]), "r"(value[3])
                 : "memory");
}

// Two of them.
static __device__ inline void store_transposed_matrices(unsigned address, const unsigned (&value)[2])
{
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(address),
                 "r"(value[0]), "r"(value[1])
                 : "memory");
}

// So many bytes from shared memory.
static __device__ __forceinline__ void read_shared(unsigned short &value, unsigned from)
{
    asm volatile("ld.shared.u16 %0, [%1];" : "=h"(value) : "r"(from) : "memory");
}

static __device__ __forceinline__ void read_shared(unsigned &value, unsigned from)
{
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(from) : "memory");
}

static __device__ __forceinline__ void read_shared(uint2 &value, unsigned from)
{
    asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(value.x), "=r"(value.y) : "r"(from) : "memory");
}

// The threads of a warpgroup copy a box from `source` in shared memory to (row, col) of a rows x cols matrix,
// as far as it has it: for rows that the copy engine does not take. A box has HEIGHT rows of ROW bytes, under
// the swizzle of as many. Piece: what a thread copies at once; a row of the matrix is a multiple of it. A
// thread reads several pieces before it writes the first, because a read takes as long as several writes.
template <int HEIGHT, int ROW, typename Piece, typename Element>
static __device__ __forceinline__ void copy_box(Element *matrix, int row, int col, int rows, int cols,
                                                unsigned source)
{
    constexpr int ACROSS = ROW / sizeof(Piece), DOWN = 128 / ACROSS; // threads along a row, rows at a time
    constexpr int TURNS = HEIGHT / DOWN;
    constexpr int TOGETHER = TURNS % 8 == 0 ? 8 : TURNS % 4 == 0 ? 4 : TURNS % 2 == 0 ? 2 : 1;
    const int byte = threadIdx.x % ACROSS * sizeof(Piece), c = col + byte / int(sizeof(Element));
    for (int turn = 0; turn < TURNS; turn += TOGETHER) {
        Piece pieces[TOGETHER];
        for (int i = 0; i < TOGETHER; ++i) {
            const int r = (turn + i) * DOWN + threadIdx.x / ACROSS;
            read_shared(pieces[i], source + r * ROW + (byte ^ r / (128 / ROW) % (ROW / 16) * 16));
        }
        for (int i = 0; i < TOGETHER; ++i) {
            const int r = row + (turn + i) * DOWN + threadIdx.x / ACROSS;
            if (r < rows && c < cols)
                *reinterpret_cast<Piece *>(matrix + r * cols + c) = pieces[i];
        }
    }
}

// HEIGHT x WIDTH elements in boxes, those of the same rows one after the other. MOST: the number of boxes
// that shared memory has room for; they take turns.
template <int HEIGHT, int WIDTH, typename Result, int MOST> struct ResultBoxes {
    static constexpr int LENGTH = WIDTH * sizeof(Result); // bytes of a row of the tile, and of a box:
    static constexpr int ROW = LENGTH % 128 == 0 ? 128 : LENGTH % 64 == 0 ? 64 : 32;
    static constexpr int COLS = ROW / sizeof(Result);
    static constexpr int ROWS = 64;
    static constexpr int BOX = ROWS * ROW; // bytes
    static constexpr int ACROSS = WIDTH / COLS, COUNT = HEIGHT / ROWS * ACROSS;
    static constexpr int PLACES = COUNT < MOST ? COUNT : MOST, BYTES = PLACES * BOX;
    static_assert(WIDTH % COLS == 0, "boxes must cover the tile");

    // The number that is combined by XOR with the number of 16 bytes in a row.
    static __device__ unsigned swizzle(unsigned row)
    {
        return row / (128 / ROW) % (ROW / 16);
    }

    // Where a box lies in the tile.
    static __device__ constexpr int row_of(int number)
    {
        return number / ACROSS * ROWS;
    }

    static __device__ constexpr int col_of(int number)
    {
        return number % ACROSS * COLS;
    }

    // The warpgroup writes 64 x COLS of its sums to a place: those of rows 64 * part and on, and columns
    // COLS * box and on.
    template <typename Tile>
    static __device__ __forceinline__ void write(unsigned place, const Tile &tile, int number)
    {
        const int part = number / ACROSS, box = number % ACROSS;
        if constexpr (sizeof(Result) == 2)
            write_matrices(place, tile, part, box);
        else
            write_pairs(place, tile, part, box);
    }

    // 16 rows and 16 columns of a warp at once: matrices of rows 0 to 7 and 8 to 15, twice.
    template <typename Tile>
    static __device__ __forceinline__ void write_matrices(unsigned place, const Tile &tile, int part, int box)
    {
        const unsigned row = threadIdx.x / 32 * 16 + threadIdx.x % 16;
        const unsigned chunk = threadIdx.x % 32 / 16;
#pragma unroll
        for (int j = 0; j < COLS / 16; ++j) {
            unsigned value[4];
#pragma unroll
            for (int matrix = 0; matrix < 4; ++matrix) {
                const int column = box * (COLS / 8) + 2 * j + matrix / 2; // in steps of 8
                const auto both = tile.template pair<Result>(part, column, matrix % 2);
                value[matrix] = reinterpret_cast<const unsigned &>(both);
            }
            store_matrices(place + row * ROW + ((j * 2 + chunk) ^ swizzle(row)) * 16, value);
        }
    }

    // stmatrix cannot store floats, so every lane writes its own pairs.
    template <typename Tile>
    static __device__ __forceinline__ void write_pairs(unsigned place, const Tile &tile, int part, int box)
    {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const unsigned row = h * 8 + Tile::row();
#pragma unroll
            for (int j = 0; j < COLS / 8; ++j) {
                const unsigned chunk = j * 2 + threadIdx.x % 4 / 2;
                const float2 both = tile.template pair<Result>(part, box * (COLS / 8) + j, h);
                asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(
                                 place + row * ROW + (chunk ^ swizzle(row)) * 16 + threadIdx.x % 2 * 8),
                             "f"(both.x), "f"(both.y)
                             : "memory");
            }
        }
    }
};

// Rows of a box that divide so many rows of C: as many as there can be up to 64, but first multiples of 16,
// which stmatrix stores at once. Boxes of 8 rows would be too many, so there is one box instead.
static constexpr __host__ __device__ int rows_of_box(int rows)
{
    constexpr int most_first[] = {64, 48, 32, 56, 40, 24, 16};
    for (int each : most_first)
        if (rows % each == 0)
            return each;
    return rows;
}

// The same of a tile whose sums are those of C's transpose: HEIGHT columns and WIDTH rows of C. A box has 64
// columns, the rows of a wgmma, and some rows of C.
template <int HEIGHT, int WIDTH, typename Result, int MOST> struct TransposedBoxes {
    static constexpr int COLS = 64, ROW = ROW_BYTES;
    static constexpr int ROWS = rows_of_box(WIDTH);
    static constexpr int BOX = ROWS * ROW_BYTES; // bytes
    static constexpr int DOWN = WIDTH / ROWS, COUNT = HEIGHT / COLS * DOWN;
    static constexpr int PLACES = COUNT < MOST ? COUNT : MOST, BYTES = PLACES * BOX;
    static_assert(sizeof(Result) == 2, "stmatrix transposes elements of 16 bits");

    static __device__ constexpr int row_of(int number)
    {
        return number % DOWN * ROWS;
    }

    static __device__ constexpr int col_of(int number)
    {
        return number / DOWN * COLS;
    }

    template <typename Tile>
    static __device__ __forceinline__ void write(unsigned place, const Tile &tile, int number)
    {
        const int part = number / DOWN, box = number % DOWN;
        const unsigned chunk = threadIdx.x / 32 * 2 + threadIdx.x % 16 / 8;
#pragma unroll
        for (int j = 0; j < ROWS / 16; ++j) {
            const unsigned row = j * 16 + threadIdx.x % 32 / 16 * 8 + threadIdx.x % 8;
            write_columns<4>(place + row * ROW_BYTES + (chunk ^ row % 8) * 16, tile, part,
                             box * (ROWS / 8) + 2 * j);
        }
        if constexpr (ROWS % 16 != 0) {
            const unsigned row = ROWS - 8 + threadIdx.x % 8;
            write_columns<2>(place + row * ROW_BYTES + (chunk ^ row % 8) * 16, tile, part,
                             box * (ROWS / 8) + ROWS / 8 - 1);
        }
    }

    // Matrices of a warp, two of 8 columns of the sums each. first: which 8 columns.
    template <int MATRICES, typename Tile>
    static __device__ __forceinline__ void write_columns(unsigned to, const Tile &tile, int part, int first)
    {
        unsigned value[MATRICES];
#pragma unroll
        for (int matrix = 0; matrix < MATRICES; ++matrix) {
            const auto both = tile.template pair<Result>(part, first + matrix / 2, matrix % 2);
            value[matrix] = reinterpret_cast<const unsigned &>(both);
        }
        store_transposed_matrices(to, value);
    }
};

// A warpgroup's tile of C goes to (row, col), box after box: as soon as one is in shared memory the copy
// engine stores it, and the warpgroup writes the next. The place of the next box must have been read before:
// the thread that stores waits for that, and the others wait for this thread.
template <typename Boxes, typename Tile>
static __device__ __forceinline__ void store_through(unsigned places, const Tile &tile,
                                                     const CUtensorMap &map, int row, int col)
{
    constexpr int PLACES = Boxes::PLACES;
    if constexpr (Boxes::COUNT % PLACES != 0) { // the first place has been used out of turn
        if (threadIdx.x == 0)
            wait_until_stores_have_read();
        sync_warpgroup(1 + threadIdx.y);
    }
#pragma unroll
    for (int number = 0; number < Boxes::COUNT; ++number) {
        const unsigned place = places + number % PLACES * Boxes::BOX;
        if constexpr (PLACES == 1) {
            if (threadIdx.x == 0)
                wait_until_stores_have_read();
            sync_warpgroup(1 + threadIdx.y);
        }
        Boxes::write(place, tile, number);
        fence_async_proxy();
        if (PLACES > 1 && threadIdx.x == 0)
            wait_until_stores_have_read<PLACES < 2 ? 0 : PLACES - 2>(); // of the place that comes next
        sync_warpgroup(1 + threadIdx.y);
        if (threadIdx.x == 0) {
            store_box(map, row + Boxes::row_of(number), col + Boxes::col_of(number), place);
            commit_stores();
        }
    }
}

// The same of a matrix whose rows the copy engine does not take: the threads of the warpgroup copy each box. The
// barrier of the next box says that all have done so.
template <typename Boxes, typename Tile, typename Result>
static __device__ __forceinline__ void copy_through(unsigned places, const Tile &tile, Result *matrix, int row,
                                                    int col, int rows, int cols)
{
    constexpr int PLACES = Boxes::PLACES;
    if constexpr (PLACES > 1 && Boxes::COUNT % PLACES != 0)
        sync_warpgroup(1 + threadIdx.y);
#pragma unroll
    for (int number = 0; number < Boxes::COUNT; ++number) {
        const unsigned place = places + number % PLACES * Boxes::BOX;
        if constexpr (PLACES == 1)
            sync_warpgroup(1 + threadIdx.y);
        Boxes::write(place, tile, number);
        sync_warpgroup(1 + threadIdx.y);
        const int r = row + Boxes::row_of(number), c = col + Boxes::col_of(number);
        const int bytes = cols * sizeof(Result); // of a row
        if (bytes % 8 == 0)
            copy_box<Boxes::ROWS, Boxes::ROW, uint2>(matrix, r, c, rows, cols, place);
        else if (bytes % 4 == 0)
            copy_box<Boxes::ROWS, Boxes::ROW, unsigned>(matrix, r, c, rows, cols, place);
        else if constexpr (sizeof(Result) == 2)
            copy_box<Boxes::ROWS, Boxes::ROW, unsigned short>(matrix, r, c, rows, cols, place);
    }
}
