// SGEMM whose blocks share a tile of C along K: each leaves the sums of a part of K.
//
//   nvcc -arch=sm_80 -cubin split_k.cu
//   grid (ceil(N/BN), ceil(M/BM), parts), block (BM/WM * BN/WN * 32)
//   dynamic shared memory: with ASYNCHRONOUS STAGES * BK * (BM + PADDING + BN) floats, the tiles of A, then those
//   of B; at least BM * (BN + 4), for C, where N % 4 != 0, or ALWAYS and M >= BM, unless that is too much
//   C: a matrix of M x N for each part. If there are several, their rows are padded to multiples of 16 bytes,
//   and split_k_sum.cu adds them up
//
// multistage.cu, or with ASYNCHRONOUS 0 serpentine.cu, with a part of K for each block along z. Each part has
// the same number of whole tiles, and the last may have less. With one part C is that of multistage.cu, and
// there is nothing to add up. If rows of C are not multiples of 16 bytes, C is written through shared memory, row
// by row. So is any C that is as high as a tile if few warps have large tiles (ALWAYS). The launch takes SPLITS, the
// most parts: if it is 0, the shape decides.

#include "../dependent_launch.cuh"
#include "../sizes.cuh"
#include "double_buffering.cuh"
#include "multistage.cuh"

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
#define SPLITS 0       // parts of K
#define ASYNCHRONOUS 1 // tiles come by cp.async; 0: through registers, STAGES and ROWS_FIRST say nothing
#endif

using Tiles = WarpTiles<BM, BN, WM, WN, WMITER, WNITER, TM, TN>;
constexpr int BESIDE = ASYNCHRONOUS ? 0 : 2 * BK * (BM + PADDING + BN); // floats of the tiles of A and B
constexpr bool IN_ROWS = 4 * (Tiles::ROWS_FLOATS + BESIDE) <= 99 << 10; // bytes that a block has on sm_86
constexpr bool ALWAYS = IN_ROWS && Tiles::THREAD_ROWS * Tiles::THREAD_COLS >= 128 && BN >= 128; // few warps

extern "C" __global__ void __launch_bounds__(Tiles::THREADS)
sgemm_split_k(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C, int M, int N,
              int K)
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
#if ASYNCHRONOUS
    A += first;
    B += first * N;
    C += blockIdx.z * M * pitch;
    if (N % 2 != 0)
        multiply_multistage<Tiles, BK, STAGES, PADDING, ROWS_FIRST, 1, IN_ROWS>(A, B, C, M, N, K, terms, pitch,
                                                                                shared);
    else if (N % 4 != 0)
        multiply_multistage<Tiles, BK, STAGES, PADDING, ROWS_FIRST, 2, IN_ROWS>(A, B, C, M, N, K, terms, pitch,
                                                                                shared);
    else
        multiply_multistage<Tiles, BK, STAGES, PADDING, ROWS_FIRST, 4>(A, B, C, M, N, K, terms, pitch, shared);
#else
    __shared__ __align__(16) float tile_a[2][BK][BM + PADDING]; // transposed
    __shared__ __align__(16) float tile_b[2][BK][BN];
    auto multiply = [](auto &results, const auto &reg_a, const auto &reg_b) {
        Tiles::multiply_in_serpentines(results, reg_a, reg_b);
    };
    float *const rows = (ALWAYS && M >= BM) || (IN_ROWS && N % 4 != 0) ? shared : nullptr;
    if (N % 4 == 0 && K % 4 == 0)
        multiply_double_buffered<Tiles, true>(A, B, C, M, N, K, first, terms, pitch, tile_a, tile_b, multiply, rows);
    else
        multiply_double_buffered<Tiles, false>(A, B, C, M, N, K, first, terms, pitch, tile_a, tile_b, multiply, rows);
#endif
}
