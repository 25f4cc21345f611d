// A warpgroup's tile of C on its way out through shared memory: boxes of 64 rows of 128 bytes, under the
// swizzle of 128 bytes, which the copy engine takes to C.
#pragma once

#include "boxes.cuh"
#include "warpgroup_tile.cuh"

// Four 8 x 8 matrices of 16-bit elements to shared memory, a register of each: the lane gives the address of
// row lane % 8 of matrix lane / 8. Of each matrix it has elements 2t and 2t + 1 of row g, with t = lane % 4
// and g = lane / 4: as wgmma leaves its sums.
static __device__ inline void store_matrices(unsigned address, const unsigned (&value)[4])
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
                 "r"(value[0]), "r"(value[1]), "r"(value[2]), "r"(value[3])
                 : "memory");
}

// HEIGHT x WIDTH elements in boxes, those of the same rows one after the other. MOST: for how many of them
// there is shared memory at most; they take turns.
template <int HEIGHT, int WIDTH, typename Result, int MOST> struct ResultBoxes {
    static constexpr int COLS = ROW_BYTES / sizeof(Result); // of a box
    static constexpr int ROWS = 64;
    static constexpr int BOX = ROWS * ROW_BYTES; // bytes
    static constexpr int COUNT = HEIGHT / ROWS * (WIDTH / COLS);
    static constexpr int PLACES = COUNT < MOST ? COUNT : MOST, BYTES = PLACES * BOX;
    static_assert(WIDTH % COLS == 0, "boxes must cover the tile");
    static_assert(COUNT % PLACES == 0, "each tile must begin with the first place");

    // The warpgroup writes 64 x COLS of its sums to a place: those of rows 64 * part and on, and columns
    // COLS * box and on.
    template <typename Tile>
    static __device__ __forceinline__ void write(unsigned place, const Tile &tile, int part, int box)
    {
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
            store_matrices(place + row * ROW_BYTES + ((j * 2 + chunk) ^ row % 8) * 16, value);
        }
    }

    // Floats are no business of stmatrix: every lane writes its own pairs.
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
                                 place + row * ROW_BYTES + (chunk ^ row % 8) * 16 + threadIdx.x % 2 * 8),
                             "f"(both.x), "f"(both.y)
                             : "memory");
            }
        }
    }
};

// A warpgroup's tile of C goes to (row, col), box after box: as soon as one is in shared memory the copy
// engine stores it, and the warpgroup writes the next. Before it does, what stood in its place has been read:
// the thread that stores waits for that, and then for all others.
template <typename Boxes, typename Tile>
static __device__ __forceinline__ void store_through(unsigned places, const Tile &tile,
                                                     const CUtensorMap &map, int row, int col)
{
    constexpr int PLACES = Boxes::PLACES;
#pragma unroll
    for (int number = 0; number < Boxes::COUNT; ++number) {
        const int part = number / (Boxes::COUNT / Tile::PARTS), box = number % (Boxes::COUNT / Tile::PARTS);
        const unsigned place = places + number % PLACES * Boxes::BOX;
        if constexpr (PLACES == 1) {
            if (threadIdx.x == 0)
                wait_until_stores_have_read();
            sync_warpgroup(1 + threadIdx.y);
        }
        Boxes::write(place, tile, part, box);
        fence_async_proxy();
        if (PLACES > 1 && threadIdx.x == 0)
            wait_until_stores_have_read<PLACES < 2 ? 0 : PLACES - 2>(); // of the place that comes next
        sync_warpgroup(1 + threadIdx.y);
        if (threadIdx.x == 0) {
            store_box(map, row + part * Boxes::ROWS, col + box * Boxes::COLS, place);
            commit_stores();
        }
    }
}
