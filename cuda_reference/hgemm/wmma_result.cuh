// C from the registers of the warps straight to global memory.
#pragma once

#include "wmma_tiles.cuh"

// Every warp writes its part, at (warp_row, warp_col) of the HEIGHT x WIDTH tile at (row, col) of C, which is
// rows x cols. wmma writes only whole fragments of sums. If these do not divide C, or C is in another format,
// they go through `shared`, and all threads write the elements that C has.
template <int HEIGHT, int WIDTH, int THREADS, typename Warp, typename Result>
static __device__ void store_result(Result *__restrict__ C, const Warp &accumulators, void *shared, int row,
                                    int col, int warp_row, int warp_col, int rows, int cols)
{
    using Sum = typename Warp::Sum;
    if constexpr (std::is_same_v<Result, Sum>)
        if (rows % HEIGHT == 0 && cols % WIDTH == 0) {
            accumulators.store(C + (row + warp_row) * cols + col + warp_col, cols);
            return;
        }
    Sum *const tile = static_cast<Sum *>(shared);
    __syncthreads(); // the tiles of A and B, which lie there, are no longer used
    accumulators.store(tile + warp_row * WIDTH + warp_col, WIDTH);
    __syncthreads();
    write_tile<HEIGHT, WIDTH, WIDTH, THREADS, false>(C, tile, row, col, rows, cols);
}
