// The loop over tiles of multistage.cu, which split_k.cu has too.
#pragma once

#include "cp_async.cuh"
#include "warp_tiles.cuh"

// C of a block: the sums of the first `terms` products. Tiles are WarpTiles; DEPTH, STAGE_COUNT, PAD and
// BY_ROWS are BK, STAGES, PADDING and ROWS_FIRST of multistage.cu. B_FLOATS of B are copied at a time, 4, 2
// or 1, and N is a multiple of it; with 4 of B, 4 of C are written at a time. IN_ROWS: C goes through shared
// memory, see write_results_in_rows, if its rows are not multiples of 16 bytes. pitch: floats from a row of C
// to the next. shared: memory for STAGE_COUNT tiles of A, then of B.
template <class Tiles, int DEPTH, int STAGE_COUNT, int PAD, bool BY_ROWS, int B_FLOATS, bool IN_ROWS = false>
static __device__ __forceinline__ void
multiply_multistage(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C, int M,
                    int N, int K, int terms, int pitch, float *shared)
{
    constexpr int HEIGHT = Tiles::ROWS, WIDTH = Tiles::COLS, THREADS = Tiles::THREADS;
    constexpr int LANE_ROWS = Tiles::SUB_M / Tiles::LANES_M, LANE_COLS = Tiles::SUB_N / Tiles::LANES_N;
    constexpr int A_ROW = HEIGHT + PAD;  // floats of a row of the transposed tile of A
    constexpr int A_STEP = THREADS / DEPTH; // rows of A that all threads copy at once
    static_assert(Tiles::LANES_M % 2 == 0, "lanes must stand in pairs of rows");
    static_assert(LANE_ROWS % 2 == 0 && LANE_COLS % 4 == 0 && WIDTH % 4 == 0 && A_ROW % 4 == 0,
                  "fragments must consist of float2s and float4s");
    static_assert(THREADS % DEPTH == 0 && HEIGHT % A_STEP == 0, "threads must share the copies of A evenly");
    static_assert(DEPTH % 2 == 0 && STAGE_COUNT >= 2,
                  "fragments must alternate; a tile must be copied while another is read");
    const int block_row = blockIdx.y * HEIGHT;
    const int block_col = blockIdx.x * WIDTH;
    const int lane = threadIdx.x % 32;
    const int lane_row = lane / (2 * Tiles::LANES_N) * 2 + lane % 2;
    const int lane_col = lane % (2 * Tiles::LANES_N) / 2;
    const Tiles part(threadIdx.x / 32, lane_row, lane_col);
    float thread_results[Tiles::THREAD_ROWS][Tiles::THREAD_COLS] = {{0.0f}};

    // What the thread copies: of A column a_k of rows A_STEP apart, of B rows B_STEP apart. In each of these it
    // has B_COPIES copies, more than one if a row has more copies than there are threads.
    constexpr int B_ROW = WIDTH / B_FLOATS; // copies of a row
    constexpr int B_COPIES = B_ROW > THREADS ? B_ROW / THREADS : 1;
    constexpr int B_STEP = THREADS * B_COPIES / B_ROW;
    static_assert(THREADS * B_COPIES % B_ROW == 0 && DEPTH % B_STEP == 0,
                  "threads must share the copies of B evenly");
    const int a_row = threadIdx.x / DEPTH, a_k = threadIdx.x % DEPTH;
    const int b_k = threadIdx.x / B_ROW, b_col = threadIdx.x % B_ROW * B_FLOATS;
    float *tiles_a = shared, *tiles_b = shared + STAGE_COUNT * DEPTH * A_ROW;
    unsigned from_a[HEIGHT / A_STEP];
#pragma unroll
    for (int i = 0; i < HEIGHT / A_STEP; ++i)
        from_a[i] = (block_row + a_row + i * A_STEP) % M * K + a_k;
    unsigned from_b[B_COPIES];
#pragma unroll
    for (int c = 0; c < B_COPIES; ++c)
        from_b[c] = b_k * N + (block_col + b_col + c * THREADS * B_FLOATS) % N;

    int k_left = terms; // from the next tile to be copied on
    auto copy_tile = [&](int stage) {
#pragma unroll
        for (int i = 0; i < HEIGHT / A_STEP; ++i)
            copy_async<1>(tiles_a + (stage * DEPTH + a_k) * A_ROW + a_row + i * A_STEP, A + from_a[i],
                          a_k < k_left);
#pragma unroll
        for (int i = 0; i < DEPTH / B_STEP; ++i)
#pragma unroll
            for (int c = 0; c < B_COPIES; ++c)
                copy_async<B_FLOATS>(tiles_b + (stage * DEPTH + b_k + i * B_STEP) * WIDTH + b_col +
                                         c * THREADS * B_FLOATS,
                                     B + (from_b[c] + i * B_STEP * N), b_k + i * B_STEP < k_left);
        commit_copies();
        A += DEPTH;
        B += DEPTH * N;
        k_left -= DEPTH;
    };

    __align__(16) float reg_a[2][Tiles::THREAD_ROWS], reg_b[2][Tiles::THREAD_COLS]; // of even k and of odd
    auto read_fragments = [&](int stage, int k) {
        part.read_fragments(reg_a[k % 2], reg_b[k % 2], tiles_a + (stage * DEPTH + k) * A_ROW,
                            tiles_b + (stage * DEPTH + k) * WIDTH);
    };
    auto multiply_k = [&](int k) {
        if constexpr (BY_ROWS)
            part.multiply_rows_first(thread_results, reg_a[k % 2], reg_b[k % 2]);
        else
            part.multiply_columns_first(thread_results, reg_a[k % 2], reg_b[k % 2]);
    };

#pragma unroll
    for (int tile = 0; tile < STAGE_COUNT - 1; ++tile)
        copy_tile(tile);
    wait_group<STAGE_COUNT - 2>();
    __syncthreads();
    read_fragments(0, 0);

    constexpr int UNROLLED = BY_ROWS ? 1 : STAGE_COUNT; // stages unrolled
    int tiles = (terms + DEPTH - 1) / DEPTH;             // still to be multiplied
    while (tiles > 0) {
#pragma unroll UNROLLED
        for (int stage = 0; stage < STAGE_COUNT; ++stage) {
            if (tiles-- == 0)
                break;
            const int next = stage == STAGE_COUNT - 1 ? 0 : stage + 1;
#pragma unroll
            for (int k = 0; k < DEPTH - 1; ++k) {
                read_fragments(stage, k + 1);
                multiply_k(k);
            }
            copy_tile(stage == 0 ? STAGE_COUNT - 1 : stage - 1);
            wait_group<STAGE_COUNT - 2>();
            __syncthreads();
            read_fragments(next, 0);
            multiply_k(DEPTH - 1);
        }
    }

    if (IN_ROWS && pitch % 4) {
        wait_group<0>(); // copies of zeros, too
        __syncthreads();
        part.write_results_in_rows(shared, block_row, block_col, thread_results, C, block_row, block_col, M, N,
                                   pitch);
    } else
        part.template write_results<B_FLOATS == 4>(thread_results, C, block_row, block_col, M, pitch);
}
