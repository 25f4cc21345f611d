// A lane's part of a tile of C per warp, as warp_tiling.cu has it: WARP_M x WARP_N of the block's BLOCK_M x
// BLOCK_N elements in ITER_M x ITER_N sub-tiles. The lane has THREAD_M x THREAD_N of each sub-tile.
#pragma once

#include "float4.cuh"

template <int BLOCK_M, int BLOCK_N, int WARP_M, int WARP_N, int ITER_M, int ITER_N, int THREAD_M,
          int THREAD_N>
struct WarpTiles {
    static constexpr int SUB_M = WARP_M / ITER_M, SUB_N = WARP_N / ITER_N;
    static constexpr int LANES_M = SUB_M / THREAD_M, LANES_N = SUB_N / THREAD_N;
    static constexpr int ROWS = BLOCK_M, COLS = BLOCK_N; // of the block tile
    static constexpr int THREAD_ROWS = ITER_M * THREAD_M, THREAD_COLS = ITER_N * THREAD_N; // a lane's
    static constexpr int THREADS = (BLOCK_M / WARP_M) * (BLOCK_N / WARP_N) * 32;
    static_assert(BLOCK_M % WARP_M == 0 && BLOCK_N % WARP_N == 0, "warps must cover the block tile");
    static_assert(LANES_M * LANES_N == 32, "a warp's lanes must cover a sub-tile");
    static_assert(THREAD_N % 4 == 0, "a lane's neighbours in a row must be float4s");

    const int row, col; // where the lane's elements start in the block tile

    // warp: which of the block's. lane_row, lane_col: where the lane stands in a sub-tile.
    __device__ __forceinline__ WarpTiles(int warp, int lane_row, int lane_col)
        : row(warp / (BLOCK_N / WARP_N) * WARP_M + lane_row * THREAD_M),
          col(warp % (BLOCK_N / WARP_N) * WARP_N + lane_col * THREAD_N)
    {
    }

    // The fragments of one k: a row of the transposed tile of A and one of the tile of B.
    __device__ __forceinline__ void read_fragments(float (&reg_a)[ITER_M * THREAD_M],
                                                   float (&reg_b)[ITER_N * THREAD_N], const float *row_of_a,
                                                   const float *row_of_b) const
    {
#pragma unroll
        for (int sub_row = 0; sub_row < ITER_M; ++sub_row)
            read_shared<THREAD_M>(&reg_a[sub_row * THREAD_M], row_of_a + row + sub_row * SUB_M);
#pragma unroll
        for (int sub_col = 0; sub_col < ITER_N; ++sub_col)
            read_shared<THREAD_N>(&reg_b[sub_col * THREAD_N], row_of_b + col + sub_col * SUB_N);
    }

    // The FMA of one k, through rows before columns.
    __device__ __forceinline__ void
    multiply_rows_first(float (&results)[ITER_M * THREAD_M][ITER_N * THREAD_N],
                        const float (&reg_a)[ITER_M * THREAD_M],
                        const float (&reg_b)[ITER_N * THREAD_N]) const
    {
#pragma unroll
        for (int m = 0; m < THREAD_M; ++m)
#pragma unroll
            for (int sub_row = 0; sub_row < ITER_M; ++sub_row)
#pragma unroll
                for (int n = 0; n < THREAD_N; ++n)
#pragma unroll
                    for (int sub_col = 0; sub_col < ITER_N; ++sub_col)
                        results[sub_row * THREAD_M + m][sub_col * THREAD_N + n] +=
                            reg_a[sub_row * THREAD_M + m] * reg_b[sub_col * THREAD_N + n];
    }

    // The same, through columns before rows.
    __device__ __forceinline__ void
    multiply_columns_first(float (&results)[ITER_M * THREAD_M][ITER_N * THREAD_N],
                           const float (&reg_a)[ITER_M * THREAD_M],
                           const float (&reg_b)[ITER_N * THREAD_N]) const
    {
#pragma unroll
        for (int n = 0; n < THREAD_N; ++n)
#pragma unroll
            for (int m = 0; m < THREAD_M; ++m)
#pragma unroll
                for (int sub_row = 0; sub_row < ITER_M; ++sub_row)
#pragma unroll
                    for (int sub_col = 0; sub_col < ITER_N; ++sub_col)
                        results[sub_row * THREAD_M + m][sub_col * THREAD_N + n] +=
                            reg_a[sub_row * THREAD_M + m] * reg_b[sub_col * THREAD_N + n];
    }

    // The same, down one column and up the next.
    static __device__ __forceinline__ void
    multiply_in_serpentines(float (&results)[ITER_M * THREAD_M][ITER_N * THREAD_N],
                            const float (&reg_a)[ITER_M * THREAD_M],
                            const float (&reg_b)[ITER_N * THREAD_N])
    {
#pragma unroll
        for (int sub_col = 0; sub_col < ITER_N; ++sub_col)
#pragma unroll
            for (int n = 0; n < THREAD_N; ++n)
#pragma unroll
                for (int m = 0; m < THREAD_M; ++m)
#pragma unroll
                    for (int sub_row = 0; sub_row < ITER_M; ++sub_row) {
                        const bool up = n % 2 == 1;
                        const int row = (up ? ITER_M - 1 - sub_row : sub_row) * THREAD_M +
                                        (up ? THREAD_M - 1 - m : m);
                        results[row][sub_col * THREAD_N + n] += reg_a[row] * reg_b[sub_col * THREAD_N + n];
                    }
    }

    // Calls visit(row, column, values) for four neighbours of a row of the block tile, all of a thread's.
    template <typename Visit>
    __device__ __forceinline__ void
    for_each_four(const float (&results)[ITER_M * THREAD_M][ITER_N * THREAD_N], Visit visit) const
    {
#pragma unroll
        for (int sub_row = 0; sub_row < ITER_M; ++sub_row)
#pragma unroll
            for (int sub_col = 0; sub_col < ITER_N; ++sub_col)
#pragma unroll
                for (int m = 0; m < THREAD_M; ++m)
#pragma unroll
                    for (int n = 0; n < THREAD_N; n += 4)
                        visit(row + sub_row * SUB_M + m, col + sub_col * SUB_N + n,
                              &results[sub_row * THREAD_M + m][sub_col * THREAD_N + n]);
    }

    // ALIGNED promises N % 4 == 0.
    template <bool ALIGNED>
    __device__ __forceinline__ void
    write_results(const float (&results)[ITER_M * THREAD_M][ITER_N * THREAD_N], float *__restrict__ C,
                  int block_row, int block_col, int M, int N) const
    {
        for_each_four(results, [&](int r, int c, const float *values) {
            store4<ALIGNED>(C, block_row + r, block_col + c, M, N, values);
        });
    }

    // Calls visit(index, value) for each element of C, whose rows are `pitch` floats apart, of what starts at row
    // first_row and column first_col or later.
    template <typename Visit>
    __device__ __forceinline__ void
    for_each_from(int first_row, int first_col,
                  const float (&results)[ITER_M * THREAD_M][ITER_N * THREAD_N], int block_row, int block_col,
                  int M, int N, int pitch, Visit visit) const
    {
#pragma unroll
        for (int m = 0; m < THREAD_ROWS; ++m) {
            const int to_row = block_row + row + m / THREAD_M * SUB_M + m % THREAD_M;
            if (to_row >= first_row && to_row < M)
#pragma unroll
                for (int n = 0; n < THREAD_COLS; ++n) {
                    const int to_col = block_col + col + n / THREAD_N * SUB_N + n % THREAD_N;
                    if (to_col >= first_col && to_col < N)
                        visit(to_row * pitch + to_col, results[m][n]);
                }
        }
    }

    // Writes these one by one.
    __device__ __forceinline__ void
    write_results_from(int first_row, int first_col,
                       const float (&results)[ITER_M * THREAD_M][ITER_N * THREAD_N], float *__restrict__ C,
                       int block_row, int block_col, int M, int N, int pitch) const
    {
        for_each_from(first_row, first_col, results, block_row, block_col, M, N, pitch,
                      [&](int index, float value) { C[index] = value; });
    }

    // Writes them in rows of C: lanes store their elements to `rows`, ROWS_FLOATS of shared memory that is
    // not used any more, and all threads copy them from there, neighbouring threads neighbouring elements.
    // This is for rows that are not multiples of 16 bytes, because lanes that hold four neighbours touch
    // eight rows with each store. Rows of more than two lines are rotated, so that stores begin with lines of
    // 32 floats: one store has both ends of the row. Low tiles are not, because that costs registers.
    static constexpr int ROW = BLOCK_N + 4; // floats: lanes that store to two rows meet in no bank
    static constexpr int ROWS_FLOATS = BLOCK_M * ROW;
    static constexpr int LINE = 32; // floats of a line of memory
    static constexpr bool ROTATED = BLOCK_M > 40 && BLOCK_N > 2 * LINE && BLOCK_N % LINE == 0;

    __device__ __forceinline__ void
    write_results_in_rows(float *rows, int first_row, int first_col,
                          const float (&results)[ITER_M * THREAD_M][ITER_N * THREAD_N], float *__restrict__ C,
                          int block_row, int block_col, int M, int N, int pitch) const
    {
#pragma unroll
        for (int m = 0; m < THREAD_ROWS; ++m)
#pragma unroll
            for (int n = 0; n < THREAD_COLS; n += 4)
                *reinterpret_cast<float4 *>(rows + (row + m / THREAD_M * SUB_M + m % THREAD_M) * ROW + col +
                                            n / THREAD_N * SUB_N + n % THREAD_N) =
                    make_float4(results[m][n], results[m][n + 1], results[m][n + 2], results[m][n + 3]);
        __syncthreads();
#pragma unroll 8
        for (int e = threadIdx.x; e < BLOCK_M * BLOCK_N; e += THREADS) {
            const int in_tile = e / BLOCK_N, to_row = block_row + in_tile, begin = to_row * pitch + block_col;
            const int shift = ROTATED ? (e % BLOCK_N + BLOCK_N - begin % LINE) % BLOCK_N : e % BLOCK_N;
            const int to_col = block_col + shift;
            if (to_col >= first_col && to_col < N && to_row >= first_row && to_row < M)
                C[begin + shift] = rows[in_tile * ROW + shift];
        }
    }
};
