// The work of a block that computes a tile of C by mma, from tiles of A and B that cp.async copies to shared memory.
#pragma once

#include "cp_async.cuh"

// The copies of one of THREADS threads of a tile of ROWS x COLUMNS, FLOATS neighbours of a row at a time. The tile's
// rows of TARGET_ROW floats lie in shared memory.
template <int THREADS, int ROWS, int COLUMNS, int TARGET_ROW, int FLOATS> struct Copies {
    static constexpr int ACROSS = COLUMNS / FLOATS, COUNT = ROWS * ACROSS / THREADS;
    static_assert(ROWS * ACROSS % THREADS == 0, "threads must share the copies evenly");
    static constexpr bool KEPT = COUNT <= 8; // else where to copy from is computed anew: registers are for sums
    unsigned from[KEPT ? COUNT : 1];         // in the matrix

    static __device__ __forceinline__ int row_of(int i)
    {
        return (i * THREADS + threadIdx.y * 32 + threadIdx.x) / ACROSS;
    }

    static __device__ __forceinline__ int column_of(int i)
    {
        return (i * THREADS + threadIdx.y * 32 + threadIdx.x) % ACROSS * FLOATS;
    }

    // place(row, column): where the matrix has an element of the first tile.
    template <typename Place> __device__ __forceinline__ explicit Copies(Place place)
    {
#pragma unroll
        for (int i = 0; KEPT && i < COUNT; ++i)
            from[i] = place(row_of(i), column_of(i));
    }

    // inside(row, column): whether an element of the tile is to be copied; else it is 0.
    template <typename Place, typename Inside>
    __device__ __forceinline__ void start(float *to, const float *__restrict__ matrix, Place place,
                                          Inside inside) const
    {
#pragma unroll(KEPT ? COUNT : 1)
        for (int i = 0; i < COUNT; ++i) {
            const int row = row_of(i), column = column_of(i);
            const unsigned element = KEPT ? from[KEPT ? i : 0] : place(row, column);
            copy_async<FLOATS>(to + row * TARGET_ROW + column, matrix + element, inside(row, column));
        }
    }
};

// 4 or 2 neighbours of a row of C.
template <int COUNT> static __device__ __forceinline__ void store_neighbours(float *to, const float *sum)
{
    if constexpr (COUNT == 4)
        *reinterpret_cast<float4 *>(to) = make_float4(sum[0], sum[1], sum[2], sum[3]);
    else
        *reinterpret_cast<float2 *>(to) = make_float2(sum[0], sum[1]);
}

// Tile of C: TALL x WIDE, of a warp HIGH x BROAD. K tiles are DEEP. RING of them are in shared memory, those of A
// first. A_LINE, B_LINE: floats of their rows. ALONG_K: the tile of B is in rows along K, as B is; else along N.
// IN_PAIRS: sums of a lane are no more than two neighbours of a row.
template <int TALL, int WIDE, int DEEP, int HIGH, int BROAD, int RING, int A_LINE, int B_LINE, bool ALONG_K,
          bool IN_PAIRS = false>
struct TilesByMma {
    static constexpr int WARPS = TALL / HIGH * (WIDE / BROAD), THREADS = WARPS * 32;
    static constexpr int B_HEIGHT = ALONG_K ? WIDE : DEEP, B_WIDTH = ALONG_K ? DEEP : WIDE; // of a tile of B
    // Sums of a lane that are neighbours in a row.
    static constexpr int NEAR =
        ALONG_K || IN_PAIRS ? 2 : BROAD % 32 == 0 ? 8 : BROAD % 16 == 0 ? 4 : 2;

    // The sums of `terms` products in a block. A_FLOATS, B_FLOATS: neighbours of a row that are copied at once.
    // pitch: floats from a row of C to the next. multiply(sum, a, b): adds the products of a warp's tiles to sums,
    // the first of which is `sum`. finish(sum, row, col): what is stored of a sum.
    template <int A_FLOATS, int B_FLOATS, typename Multiply, typename Finish>
    static __device__ __forceinline__ void multiply(const float *__restrict__ A, const float *__restrict__ B,
                                                    float *__restrict__ C, int M, int N, int K, int terms, int pitch,
                                                    float *shared, const Multiply &multiply, const Finish &finish)
    {
        const int block_row = blockIdx.y * TALL, block_col = blockIdx.x * WIDE;
        const int warp_row = threadIdx.y / (WIDE / BROAD) * HIGH, warp_col = threadIdx.y % (WIDE / BROAD) * BROAD;
        float *const tiles_a = shared, *const tiles_b = shared + RING * TALL * A_LINE;
        // Rows beyond the last of A, and columns beyond the last of B, are the first ones again.
        const auto place_a = [&](int row, int k) { return (block_row + row) % M * K + k; };
        const auto place_b = [&](int row, int col) {
            return ALONG_K ? (block_col + row) % N * K + col : row * N + (block_col + col) % N;
        };
        const Copies<THREADS, TALL, DEEP, A_LINE, A_FLOATS> of_a(place_a);
        const Copies<THREADS, B_HEIGHT, B_WIDTH, B_LINE, B_FLOATS> of_b(place_b);
        int left = terms; // from the next tile to be copied on
        const auto copy_tiles = [&](int stage) {
            of_a.start(tiles_a + stage * TALL * A_LINE, A, place_a, [&](int row, int k) { return k < left; });
            of_b.start(tiles_b + stage * B_HEIGHT * B_LINE, B, place_b,
                       [&](int row, int col) { return (ALONG_K ? col : row) < left; });
            commit_copies();
            A += DEEP;
            B += ALONG_K ? DEEP : DEEP * N;
            left -= DEEP;
        };

        float sums[HIGH * BROAD / 32] = {};
#pragma unroll
        for (int stage = 0; stage < RING - 1; ++stage)
            copy_tiles(stage);
        int stage = 0, refilled = RING - 1;
        for (int k = 0; k < terms; k += DEEP) {
            wait_group<RING - 2>();
            __syncthreads(); // the tile has arrived from all threads; all warps have read the one before
            copy_tiles(refilled);
            multiply(sums[0], tiles_a + stage * TALL * A_LINE + warp_row * A_LINE,
                     tiles_b + stage * B_HEIGHT * B_LINE + (ALONG_K ? warp_col * B_LINE : warp_col));
            refilled = stage;
            stage = stage == RING - 1 ? 0 : stage + 1;
        }

        if (pitch % 8 && gridDim.z == 1)
            write_in_rows(sums, shared, C, block_row, block_col, M, N, pitch, finish);
        else
            write_sums(sums, C, block_row + warp_row, block_col + warp_col, M, pitch, finish);
    }

    static constexpr int FLOATS = NEAR < 4 ? NEAR : 4; // neighbours that a lane stores at once

    // Calls visit(row, column, sums) for FLOATS neighbours of a row of a warp's tile, all of a lane's.
    template <typename Visit> static __device__ __forceinline__ void for_each(float *sums, const Visit &visit)
    {
#pragma unroll
        for (int i = 0; i < HIGH / 8; ++i)
#pragma unroll
            for (int j = 0; j < BROAD / 4; j += FLOATS)
                visit(i * 8 + threadIdx.x / 4, j / NEAR * 4 * NEAR + j % NEAR + threadIdx.x % 4 * NEAR,
                      sums + i * (BROAD / 4) + j);
    }

    // Writes a lane's sums, those of a tile that starts at (row, col) of C.
    template <typename Finish>
    static __device__ __forceinline__ void write_sums(float *sums, float *__restrict__ C, int row, int col, int M,
                                                      int pitch, const Finish &finish)
    {
        for_each(sums, [&](int i, int j, float *sum) {
            const int r = row + i, c = col + j;
            if (r < M && c < pitch) {
#pragma unroll
                for (int f = 0; f < FLOATS; ++f)
                    sum[f] = finish(sum[f], r, c + f);
                store_neighbours<FLOATS>(C + r * pitch + c, sum);
            }
        });
    }

    // Writes them in rows of C, through `rows`, the shared memory of the stages: all threads copy neighbours from
    // there. This is for rows that are not multiples of a sector, because lanes that hold two neighbours touch
    // eight rows with each store.
    template <typename Finish>
    static __device__ __forceinline__ void write_in_rows(float *sums, float *rows, float *__restrict__ C, int block_row,
                                                         int block_col, int M, int N, int pitch, const Finish &finish)
    {
        constexpr int ROW = WIDE + (NEAR == 2 ? 8 : 4); // lanes that store to several rows meet in no bank
        wait_group<0>();
        __syncthreads(); // all warps have read the last tile
        float *const mine = rows + threadIdx.y / (WIDE / BROAD) * HIGH * ROW + threadIdx.y % (WIDE / BROAD) * BROAD;
        for_each(sums, [&](int i, int j, const float *sum) { store_neighbours<FLOATS>(mine + i * ROW + j, sum); });
        __syncthreads();
#pragma unroll 8
        for (int e = threadIdx.y * 32 + threadIdx.x; e < TALL * WIDE; e += THREADS) {
            const int row = block_row + e / WIDE, col = block_col + e % WIDE;
            if (row < M && col < N)
                C[row * pitch + col] = finish(rows[e / WIDE * ROW + e % WIDE], row, col);
        }
    }

    // The sums of a block's part of K: that of blockIdx.z of gridDim.z. C has a matrix of M x N for each part; where
    // these are several, its rows are filled up to multiples of 16 bytes.
    template <typename Multiply>
    static __device__ __forceinline__ void multiply_part(const float *__restrict__ A, const float *__restrict__ B,
                                                         float *__restrict__ C, int M, int N, int K, float *shared,
                                                         const Multiply &multiply_tiles)
    {
        const int tiles = (K + DEEP - 1) / DEEP;
        const int most = (tiles + gridDim.z - 1) / gridDim.z * DEEP, first = most * blockIdx.z;
        const int terms = min(most, K - first);
        const int pitch = gridDim.z > 1 ? (N + 3) / 4 * 4 : N; // of a row of C
        A += first;
        B += ALONG_K ? first : first * N;
        C += blockIdx.z * M * pitch;
        const int b_row = ALONG_K ? K : N; // of B as it is stored
        const auto as_it_is = [](float sum, int, int) { return sum; };
        if (K % 4 == 0 && b_row % 4 == 0)
            multiply<4, 4>(A, B, C, M, N, K, terms, pitch, shared, multiply_tiles, as_it_is);
        else if (b_row % 4 == 0)
            multiply<1, 4>(A, B, C, M, N, K, terms, pitch, shared, multiply_tiles, as_it_is);
        else if (K % 4 == 0)
            multiply<4, 1>(A, B, C, M, N, K, terms, pitch, shared, multiply_tiles, as_it_is);
        else
            multiply<1, 1>(A, B, C, M, N, K, terms, pitch, shared, multiply_tiles, as_it_is);
    }
};
