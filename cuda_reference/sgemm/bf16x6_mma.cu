// SGEMM by mma: fragments are split into three parts of bfloat16 in registers, and six products added.
//
//   nvcc -arch=sm_80 -cubin bf16x6_mma.cu
//   grid (ceil(N/BN), ceil(M/BM), parts), block (32, BM/WM * BN/WN)
//   dynamic shared memory: STAGES * (BM * (BK + 8) + BK * (BN + 4)) floats, with NT STAGES * (BM + BN) * (BK + 8),
//   the tiles of A, then those of B
//   C: a matrix of M x N for each part, where parts are several with rows filled up to multiples of 16 bytes;
//   split_k_sum.cu adds them up
//
// A float32 is the sum of three bfloat16: 24 bits. Of the nine products of parts six matter. Tiles are copied as
// float32 by cp.async, and each warp splits what it reads: there is no launch before. Tensor cores cut their sums
// off, so after BK of K these are added to sums in float32, and begin from 0 again.
// SPLITS, the most parts, goes to the launch: 0 leaves their number to the shape.

#include "../dependent_launch.cuh"
#include "../sizes.cuh"
#include "cp_async.cuh"
#include "split_fragments.cuh"

#ifndef BM
#define BM 64 // block tile of C: BM x BN
#define BN 64
#define BK 32 // K tile, after which sums are promoted
#define WM 32 // warp tile of C: WM x WN
#define WN 32
#define STAGES 4 // tiles of A and of B in shared memory
#define SPLITS 0 // parts of K
#endif
#ifndef NT
#define NT 0 // B is stored K x N; 1: N x K
#endif

constexpr int WARPS = BM / WM * (BN / WN), THREADS = WARPS * 32;
constexpr int B_HEIGHT = NT ? BN : BK, B_WIDTH = NT ? BK : BN; // of a tile of B
// Floats of rows of tiles. What pads them keeps lanes of a fragment in different banks.
constexpr int A_ROW = BK + 8, B_ROW = NT ? BK + 8 : BN + 4;
constexpr int NEAR = NT ? 2 : WN % 32 == 0 ? 8 : WN % 16 == 0 ? 4 : 2; // sums of a lane that are neighbours in a row

// The copies of a thread of a tile of ROWS x COLUMNS, FLOATS neighbours of a row at a time. The tile's rows of
// TARGET_ROW floats lie in shared memory.
template <int ROWS, int COLUMNS, int TARGET_ROW, int FLOATS> struct Copies {
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

// C of a block: the sums of `terms` products. A_FLOATS, B_FLOATS: neighbours of a row that are copied at once.
// pitch: floats from a row of C to the next.
template <int A_FLOATS, int B_FLOATS>
static __device__ __forceinline__ void multiply_block(const float *__restrict__ A, const float *__restrict__ B,
                                                      float *__restrict__ C, int M, int N, int K, int terms,
                                                      int pitch, float *shared)
{
    const int block_row = blockIdx.y * BM, block_col = blockIdx.x * BN;
    const int warp_row = threadIdx.y / (BN / WN) * WM, warp_col = threadIdx.y % (BN / WN) * WN;
    float *const tiles_a = shared, *const tiles_b = shared + STAGES * BM * A_ROW;
    // Rows beyond the last of A, and columns beyond the last of B, are the first ones again.
    const auto place_a = [&](int row, int k) { return (block_row + row) % M * K + k; };
    const auto place_b = [&](int row, int col) {
        return NT ? (block_col + row) % N * K + col : row * N + (block_col + col) % N;
    };
    const Copies<BM, BK, A_ROW, A_FLOATS> of_a(place_a);
    const Copies<B_HEIGHT, B_WIDTH, B_ROW, B_FLOATS> of_b(place_b);
    int left = terms; // from the next tile to be copied on
    const auto copy_tiles = [&](int stage) {
        of_a.start(tiles_a + stage * BM * A_ROW, A, place_a, [&](int row, int k) { return k < left; });
        of_b.start(tiles_b + stage * B_HEIGHT * B_ROW, B, place_b,
                   [&](int row, int col) { return (NT ? col : row) < left; });
        commit_copies();
        A += BK;
        B += NT ? BK : BK * N;
        left -= BK;
    };

    float sums[WM * WN / 32] = {};
#pragma unroll
    for (int stage = 0; stage < STAGES - 1; ++stage)
        copy_tiles(stage);
    int stage = 0, refilled = STAGES - 1;
    for (int k = 0; k < terms; k += BK) {
        wait_group<STAGES - 2>();
        __syncthreads(); // the tile has arrived from all threads; all warps have read the one before
        copy_tiles(refilled);
        multiply_split_tiles<WM, WN, BK, A_ROW, B_ROW, NT>(sums[0], tiles_a + stage * BM * A_ROW + warp_row * A_ROW,
                                                           tiles_b + stage * B_HEIGHT * B_ROW +
                                                               (NT ? warp_col * B_ROW : warp_col));
        refilled = stage;
        stage = stage == STAGES - 1 ? 0 : stage + 1;
    }

    const int row = block_row + warp_row + threadIdx.x / 4, col = block_col + warp_col + threadIdx.x % 4 * NEAR;
    constexpr int FLOATS = NEAR < 4 ? NEAR : 4;
#pragma unroll
    for (int i = 0; i < WM / 8; ++i)
#pragma unroll
        for (int j = 0; j < WN / 4; ++j) {
            const int c = col + j / NEAR * 4 * NEAR + j % NEAR;
            float *const to = C + (row + i * 8) * pitch + c;
            const float *const sum = sums + i * (WN / 4) + j;
            if (pitch % 4 == 0) {
                if (j % FLOATS == 0 && row + i * 8 < M && c < pitch)
                    store_neighbours<FLOATS>(to, sum);
            } else if (row + i * 8 < M && c < pitch)
                *to = *sum;
        }
}

extern "C" __global__ void __launch_bounds__(THREADS)
sgemm_bf16x6_mma(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C, int M, int N, int K)
{
    overlap_launches();
#ifdef SIZE_M
    fix_sizes<SIZE_M, SIZE_N, SIZE_K>(M, N, K);
#endif
    const int tiles = (K + BK - 1) / BK;
    const int most = (tiles + gridDim.z - 1) / gridDim.z * BK, first = most * blockIdx.z;
    const int terms = min(most, K - first);
    const int pitch = gridDim.z > 1 ? (N + 3) / 4 * 4 : N; // of a row of C
    extern __shared__ __align__(16) float shared[];
    A += first;
    B += NT ? first : first * N;
    C += blockIdx.z * M * pitch;
    const int b_row = NT ? K : N; // of B as it is stored
    if (K % 4 == 0 && b_row % 4 == 0)
        multiply_block<4, 4>(A, B, C, M, N, K, terms, pitch, shared);
    else if (b_row % 4 == 0)
        multiply_block<1, 4>(A, B, C, M, N, K, terms, pitch, shared);
    else if (K % 4 == 0)
        multiply_block<4, 1>(A, B, C, M, N, K, terms, pitch, shared);
    else
        multiply_block<1, 1>(A, B, C, M, N, K, terms, pitch, shared);
}
