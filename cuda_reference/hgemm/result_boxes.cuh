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

// HEIGHT x WIDTH elements in boxes, those of the same rows side by side.
template <int HEIGHT, int WIDTH, typename Result> struct ResultBoxes {
    static constexpr int COLS = SLAB_ROW / sizeof(Result); // of a box
    static constexpr int ROWS = 64;
    static constexpr int BOX = ROWS * SLAB_ROW; // bytes
    static constexpr int BYTES = HEIGHT * WIDTH * sizeof(Result);
    static_assert(WIDTH % COLS == 0, "boxes must cover the tile");

    // The warpgroup writes its tile into the boxes at an address.
    template <typename Tile> static __device__ __forceinline__ void write(unsigned boxes, const Tile &tile)
    {
#pragma unroll
        for (int part = 0; part < HEIGHT / ROWS; ++part)
            if constexpr (sizeof(Result) == 2)
                write_matrices(boxes + part * (WIDTH / COLS) * BOX, tile, part);
            else
                write_pairs(boxes + part * (WIDTH / COLS) * BOX, tile, part);
    }

    // 16 rows and 16 columns of a warp at once: matrices of rows 0 to 7 and 8 to 15, twice.
    template <typename Tile>
    static __device__ __forceinline__ void write_matrices(unsigned boxes, const Tile &tile, int part)
    {
        const unsigned row = threadIdx.x / 32 * 16 + threadIdx.x % 16;
        const unsigned chunk = threadIdx.x % 32 / 16;
#pragma unroll
        for (int j = 0; j < WIDTH / 16; ++j) {
            unsigned value[4];
#pragma unroll
            for (int matrix = 0; matrix < 4; ++matrix) {
                const auto both = tile.template pair<Result>(part, 2 * j + matrix / 2, matrix % 2);
                value[matrix] = reinterpret_cast<const unsigned &>(both);
            }
            const unsigned swizzled = (j % 4 * 2 + chunk) ^ row % 8;
            store_matrices(boxes + j / 4 * BOX + row * SLAB_ROW + swizzled * 16, value);
        }
    }

    // Floats are no business of stmatrix: every lane writes its own pairs.
    template <typename Tile>
    static __device__ __forceinline__ void write_pairs(unsigned boxes, const Tile &tile, int part)
    {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const unsigned row = h * 8 + Tile::row();
#pragma unroll
            for (int j = 0; j < WIDTH / 8; ++j) {
                const unsigned chunk = j % 4 * 2 + threadIdx.x % 4 / 2;
                const float2 both = tile.template pair<Result>(part, j, h);
                asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(
                                 boxes + j / 4 * BOX + row * SLAB_ROW + (chunk ^ row % 8) * 16 +
                                 threadIdx.x % 2 * 8),
                             "f"(both.x), "f"(both.y)
                             : "memory");
            }
        }
    }

    // One thread starts to store the boxes at an address to (row, col) of C.
    static __device__ __forceinline__ void store(unsigned boxes, const CUtensorMap &map, int row, int col)
    {
#pragma unroll
        for (int r = 0; r < HEIGHT; r += ROWS)
#pragma unroll
            for (int c = 0; c < WIDTH; c += COLS)
                store_box(map, row + r, col + c, boxes + (r / ROWS * (WIDTH / COLS) + c / COLS) * BOX);
        commit_stores();
    }
};

// A warpgroup's tile of C goes to (row, col) through its boxes. It waits only until the boxes of the tile
// before have been read, and for the stores of none.
template <typename Boxes, typename Tile>
static __device__ __forceinline__ void store_through(unsigned boxes, const Tile &tile, const CUtensorMap &map,
                                                     int row, int col)
{
    const unsigned id = 1 + threadIdx.y;
    if (threadIdx.x == 0)
        wait_until_stores_have_read();
    sync_warpgroup(id);
    Boxes::write(boxes, tile);
    fence_async_proxy();
    sync_warpgroup(id);
    if (threadIdx.x == 0)
        Boxes::store(boxes, map, row, col);
}
