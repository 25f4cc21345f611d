// SGEMM with several tiles under way by cp.async: no register and no thread holds what is on its way.
//
//   nvcc -arch=sm_80 -cubin multistage.cu
//   grid (ceil(N/BN), ceil(M/BM)), block (BM/WM * BN/WN * 32)
//   dynamic shared memory: STAGES * BK * (BM + PADDING + BN) floats, the tiles of A, then those of B
//
// The multistage buffer holds STAGES tiles: one is multiplied, the next have been asked for. A turn
// multiplies all k of a tile but the last, asks for the tile STAGES - 1 further on, whose stage nobody has
// read since the last barrier, waits until the next tile is there, passes the one barrier, and reads the next
// tile's first fragments before the FMA of the last k.
// Every tile is a group of copies, also those beyond K, which are zeros without a read of global memory: so
// wait_group can always leave STAGES - 2, and the last turns are like all others.
// B comes in pieces of 16 bytes where N % 4 == 0. A is transposed on the way, and cp.async moves bytes as
// they lie: it comes in single floats, to rows PADDING longer than BM. Rows of A and columns of B beyond the
// last are copies of the last: they add only to elements of C that are not written.
// The order of a thread's FMA and whether the stages are unrolled, ROWS_FIRST, go by measurement. Lanes stand
// in pairs of rows as in lane_quads.cu, fragments are double buffered as in pipelined.cu.

#include "../sizes.cuh"
#include "cp_async.cuh"
#include "warp_tiles.cuh"

#ifndef BM
#define BM 128 // block tile of C: BM x BN
#define BN 256
#define BK 8  // extent of the tiles of A and B along K
#define WM 64 // warp tile of C: WM x WN
#define WN 64
#define WMITER 2 // sub-tiles of a warp tile: WMITER x WNITER
#define WNITER 4
#define TM 4 // thread tile of C in each sub-tile: TM x TN
#define TN 4
#define STAGES 4     // tiles of A and of B in shared memory
#define PADDING 4    // floats that pad the rows of the tiles of A
#define ROWS_FIRST 0 // FMA go through rows before columns; else columns first, and stages are unrolled
#endif

using Tiles = WarpTiles<BM, BN, WM, WN, WMITER, WNITER, TM, TN>;
constexpr int THREADS = Tiles::THREADS;
constexpr int A_ROW = BM + PADDING;  // floats of a row of the transposed tile of A
constexpr int A_STEP = THREADS / BK; // rows of A that all threads copy at once
static_assert(Tiles::LANES_M % 2 == 0, "lanes must stand in pairs of rows");
static_assert(TM % 2 == 0 && TN % 4 == 0 && BN % 4 == 0 && A_ROW % 4 == 0,
              "fragments must consist of float2s and float4s");
static_assert(THREADS % BK == 0 && BM % A_STEP == 0, "threads must share the copies of A evenly");
static_assert(BK % 2 == 0 && STAGES >= 2,
              "fragments must alternate; a tile must be copied while another is read");

// B_FLOATS: floats per copy of B, 4 if N % 4 == 0, else 1.
template <int B_FLOATS>
static __device__ __forceinline__ void multiply(const float *__restrict__ A, const float *__restrict__ B,
                                                float *__restrict__ C, int M, int N, int K, float *shared)
{
    const int block_row = blockIdx.y * BM;
    const int block_col = blockIdx.x * BN;
    const int lane = threadIdx.x % 32;
    const int lane_row = lane / (2 * Tiles::LANES_N) * 2 + lane % 2;
    const int lane_col = lane % (2 * Tiles::LANES_N) / 2;
    const Tiles part(threadIdx.x / 32, lane_row, lane_col);
    float thread_results[WMITER * TM][WNITER * TN] = {{0.0f}};

    // What the thread copies: of A column a_k of rows A_STEP apart, of B rows B_STEP apart.
    constexpr int B_STEP = THREADS / (BN / B_FLOATS);
    static_assert(THREADS % (BN / B_FLOATS) == 0 && BK % B_STEP == 0,
                  "threads must share the copies of B evenly");
    const int a_row = threadIdx.x / BK, a_k = threadIdx.x % BK;
    const int b_k = threadIdx.x / (BN / B_FLOATS), b_col = threadIdx.x % (BN / B_FLOATS) * B_FLOATS;
    float *tiles_a = shared, *tiles_b = shared + STAGES * BK * A_ROW;
    unsigned from_a[BM / A_STEP];
#pragma unroll
    for (int i = 0; i < BM / A_STEP; ++i)
        from_a[i] = min(block_row + a_row + i * A_STEP, M - 1) * K + a_k;
    const unsigned from_b = b_k * N + min(block_col + b_col, N - B_FLOATS);

    int k_left = K; // from the next tile to be copied on
    auto copy_tile = [&](int stage) {
#pragma unroll
        for (int i = 0; i < BM / A_STEP; ++i)
            copy_async<1>(tiles_a + (stage * BK + a_k) * A_ROW + a_row + i * A_STEP, A + from_a[i],
                          a_k < k_left);
#pragma unroll
        for (int i = 0; i < BK / B_STEP; ++i)
            copy_async<B_FLOATS>(tiles_b + (stage * BK + b_k + i * B_STEP) * BN + b_col,
                                 B + (from_b + i * B_STEP * N), b_k + i * B_STEP < k_left);
        commit_copies();
        A += BK;
        B += BK * N;
        k_left -= BK;
    };

    __align__(16) float reg_a[2][WMITER * TM], reg_b[2][WNITER * TN]; // of even k and of odd
    auto read_fragments = [&](int stage, int k) {
        part.read_fragments(reg_a[k % 2], reg_b[k % 2], tiles_a + (stage * BK + k) * A_ROW,
                            tiles_b + (stage * BK + k) * BN);
    };
    auto multiply_k = [&](int k) {
        if constexpr (ROWS_FIRST)
            part.multiply_rows_first(thread_results, reg_a[k % 2], reg_b[k % 2]);
        else
            part.multiply_columns_first(thread_results, reg_a[k % 2], reg_b[k % 2]);
    };

#pragma unroll
    for (int tile = 0; tile < STAGES - 1; ++tile)
        copy_tile(tile);
    wait_group<STAGES - 2>();
    __syncthreads();
    read_fragments(0, 0);

    constexpr int TURNS = ROWS_FIRST ? 1 : STAGES; // stages unrolled
    int tiles = (K + BK - 1) / BK;                                  // still to be multiplied
    while (tiles > 0) {
#pragma unroll TURNS
        for (int stage = 0; stage < STAGES; ++stage) {
            if (tiles-- == 0)
                break;
            const int next = stage == STAGES - 1 ? 0 : stage + 1;
#pragma unroll
            for (int k = 0; k < BK - 1; ++k) {
                read_fragments(stage, k + 1);
                multiply_k(k);
            }
            copy_tile(stage == 0 ? STAGES - 1 : stage - 1);
            wait_group<STAGES - 2>();
            __syncthreads();
            read_fragments(next, 0);
            multiply_k(BK - 1);
        }
    }

    part.write_results<B_FLOATS == 4>(thread_results, C, block_row, block_col, M, N);
}

extern "C" __global__ void __launch_bounds__(THREADS)
sgemm_multistage(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C, int M,
                 int N, int K)
{
#ifdef SIZE_M
    fix_sizes<SIZE_M, SIZE_N, SIZE_K>(M, N, K);
#endif
    extern __shared__ __align__(16) float shared[];
    if (N % 4 == 0)
        multiply<4>(A, B, C, M, N, K, shared);
    else
        multiply<1>(A, B, C, M, N, K, shared);
}
