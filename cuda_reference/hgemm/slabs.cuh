// Slabs of A and B in shared memory: what a block multiplies in a turn, 64 deep, one behind the other.
#pragma once

#include "barriers.cuh"
#include "boxes.cuh"
#include "tiles.cuh"
#include "wgmma.cuh"
#include "xor_swizzle.cuh"

// HEIGHT rows of A and WIDTH columns of B. B_BY_COLUMNS: B is stored as n x k, and its slab has a row per
// column; else as k x n, and its slab is boxes of 64 columns, each with a row per k.
template <int HEIGHT, int WIDTH, bool B_BY_COLUMNS> struct Slabs {
    static constexpr int BYTES_OF_A = HEIGHT * SLAB_ROW, BYTES = BYTES_OF_A + WIDTH * SLAB_ROW;
    static constexpr int WIDTH_OF_BOX = 64;
    static_assert(HEIGHT % 8 == 0 && WIDTH % (B_BY_COLUMNS ? 8 : WIDTH_OF_BOX) == 0,
                  "the swizzle repeats every 8 rows, a box of B has 64 columns");

    // All THREADS threads copy slabs from (row, k0) of A and (k0, col) of B, in the manner of Copy. Of
    // elements only the bits matter here.
    template <int THREADS, typename Copy, typename Element>
    static __device__ void copy(unsigned char *slabs, const Element *__restrict__ A,
                                const Element *__restrict__ B, int row, int col, int k0, int m, int n, int k)
    {
        const half *const a = reinterpret_cast<const half *>(A), *const b = reinterpret_cast<const half *>(B);
        half *const slab_a = reinterpret_cast<half *>(slabs);
        half *const slab_b = slab_a + HEIGHT * SLAB;
        copy_tile<SwizzledTile<HEIGHT, SLAB>, THREADS, Copy, WARPGROUP>(slab_a, a, row, k0, m, k);
        if constexpr (B_BY_COLUMNS)
            copy_tile<SwizzledTile<WIDTH, SLAB>, THREADS, Copy, WARPGROUP>(slab_b, b, col, k0, n, k);
        else
#pragma unroll
            for (int c = 0; c < WIDTH; c += WIDTH_OF_BOX)
                copy_tile<SwizzledTile<SLAB, WIDTH_OF_BOX>, THREADS, Copy, WARPGROUP>(
                    slab_b + c * SLAB, b, k0, col + c, k, n);
    }

    // One thread has the copy engine do it; the barrier is told of BYTES bytes.
    static __device__ __forceinline__ void load(unsigned slabs, const CUtensorMap &A_map,
                                                const CUtensorMap &B_map, int row, int col, int k0,
                                                unsigned barrier)
    {
        load_box(slabs, A_map, row, k0, barrier);
        if constexpr (B_BY_COLUMNS)
            load_box(slabs + BYTES_OF_A, B_map, col, k0, barrier);
        else
#pragma unroll
            for (int c = 0; c < WIDTH; c += WIDTH_OF_BOX)
                load_box(slabs + BYTES_OF_A + c * SLAB_ROW, B_map, k0, col + c, barrier);
    }

    // The same in a cluster of BLOCKS blocks that multiply with the same B: each loads its part of that for
    // all of them. Each is told of BYTES bytes.
    template <int BLOCKS>
    static __device__ __forceinline__ void load_shared(unsigned slabs, const CUtensorMap &A_map,
                                                       const CUtensorMap &B_map, int row, int col, int k0,
                                                       unsigned barrier, unsigned block)
    {
        constexpr int SHARE = WIDTH / BLOCKS;
        constexpr unsigned short ALL = (1 << BLOCKS) - 1;
        static_assert(B_BY_COLUMNS ? SHARE % 8 == 0 : SHARE % WIDTH_OF_BOX == 0, "shares must be boxes");
        const int from = block * SHARE;
        load_box(slabs, A_map, row, k0, barrier);
        if constexpr (B_BY_COLUMNS)
            load_box_for(ALL, slabs + BYTES_OF_A + from * SLAB_ROW, B_map, col + from, k0, barrier);
        else
#pragma unroll
            for (int c = 0; c < SHARE; c += WIDTH_OF_BOX)
                load_box_for(ALL, slabs + BYTES_OF_A + (from + c) * SLAB_ROW, B_map, k0, col + from + c,
                             barrier);
    }
};
