// Tiles in the registers of a warp, made of wmma's fragments: tiles of 16x16. Only wmma knows which lane of a
// fragment has which element.
#pragma once

#include <mma.h>
#include <type_traits>

#include "tiles.cuh"

using namespace nvcuda;

constexpr int FRAGMENT = 16; // edge of the tiles that a warp multiplies at once

// What a warp multiplies in a step of 16 along K: HEIGHT rows of A and WIDTH columns of B. B_BY_COLUMNS: rows
// of B in memory are its columns.
template <int HEIGHT, int WIDTH, bool B_BY_COLUMNS> struct Operands {
    using LayoutB = std::conditional_t<B_BY_COLUMNS, wmma::col_major, wmma::row_major>;
    wmma::fragment<wmma::matrix_a, FRAGMENT, FRAGMENT, FRAGMENT, half, wmma::row_major> a[HEIGHT / FRAGMENT];
    wmma::fragment<wmma::matrix_b, FRAGMENT, FRAGMENT, FRAGMENT, half, LayoutB> b[WIDTH / FRAGMENT];

    // Reads those of step `step` of tiles in memory, whose rows are stride_a and stride_b elements apart.
    __device__ void load(const half *tile_a, int stride_a, const half *tile_b, int stride_b, int step)
    {
        const int down = B_BY_COLUMNS ? 1 : stride_b; // from k to k in B
        const int across = B_BY_COLUMNS ? stride_b : 1;
#pragma unroll
        for (int i = 0; i < HEIGHT / FRAGMENT; ++i)
            wmma::load_matrix_sync(a[i], tile_a + i * FRAGMENT * stride_a + step * FRAGMENT, stride_a);
#pragma unroll
        for (int j = 0; j < WIDTH / FRAGMENT; ++j)
            wmma::load_matrix_sync(b[j], tile_b + j * FRAGMENT * across + step * FRAGMENT * down, stride_b);
    }
};

// A warp's tile of C, HEIGHT x WIDTH; zeros to begin with.
template <int HEIGHT, int WIDTH, typename Element> struct Accumulators {
    using Sum = Element;
    static_assert(HEIGHT % FRAGMENT == 0 && WIDTH % FRAGMENT == 0, "tiles must consist of fragments");
    wmma::fragment<wmma::accumulator, FRAGMENT, FRAGMENT, FRAGMENT, Element> c[HEIGHT / FRAGMENT]
                                                                            [WIDTH / FRAGMENT];

    __device__ Accumulators()
    {
#pragma unroll
        for (int i = 0; i < HEIGHT / FRAGMENT; ++i)
#pragma unroll
            for (int j = 0; j < WIDTH / FRAGMENT; ++j)
                wmma::fill_fragment(c[i][j], static_cast<Element>(0.0f));
    }

    // Adds a step's product: every fragment of A with every one of B.
    template <bool B_BY_COLUMNS> __device__ void add(const Operands<HEIGHT, WIDTH, B_BY_COLUMNS> &step)
    {
#pragma unroll
        for (int i = 0; i < HEIGHT / FRAGMENT; ++i)
#pragma unroll
            for (int j = 0; j < WIDTH / FRAGMENT; ++j)
                wmma::mma_sync(c[i][j], step.a[i], step.b[j], c[i][j]);
    }

    // Writes the tile to memory, in rows of `stride` elements.
    __device__ void store(Element *target, int stride) const
    {
#pragma unroll
        for (int i = 0; i < HEIGHT / FRAGMENT; ++i)
#pragma unroll
            for (int j = 0; j < WIDTH / FRAGMENT; ++j)
                wmma::store_matrix_sync(target + i * FRAGMENT * stride + j * FRAGMENT, c[i][j], stride,
                                        wmma::mem_row_major);
    }
};
