// C from the registers of the warps straight to global memory.
#pragma once

#include "wmma_tiles.cuh"

// Every warp writes its part, at (warp_row, warp_col) of the HEIGHT x WIDTH tile at (row, col) of C, which is
// rows x cols. wmma writes whole fragments: where such tiles do not divide C, they go through `shared`, and
// all threads write the elements that C has.
template <int HEIGHT, int WIDTH, int THREADS, typename Warp, typename Element>
static __device__ void store_result(Element *__restrict__ C, const Warp &accumulators, void *shared, int row,
                                    int col, int warp_row, int warp_col, int rows, int cols)
{
    if (rows % HEIGHT == 0 && cols % WIDTH == 0) {
        accumulators.store(C + (row + warp_row) * cols + col + warp_col, cols);
    } else {
        Element *const tile = static_cast<Element *>(shared);
        __syncthreads(); // the tiles of A and B, which lie there, are no longer used
        accumulators.store(tile + warp_row * WIDTH + warp_col, WIDTH);
        __syncthreads();
        write_tile<HEIGHT, WIDTH, WIDTH, THREADS, false>(C, tile, row, col, rows, cols);
    }
}
