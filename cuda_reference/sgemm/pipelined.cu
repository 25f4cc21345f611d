// SGEMM with double buffering at two levels: while a tile is multiplied, the next one comes to shared memory
// through registers, and while fragments are multiplied, the next ones come to registers.
//
//   nvcc -arch=sm_80 -cubin pipelined.cu
//   grid (ceil(N/BN), ceil(M/BM)), block (BM/WM * BN/WN * 32)
//
// What an iteration of the loop over tiles does, and in which order, is in double_buffering.cuh.
// Rows of the tile of A are PADDING longer than BM: the four elements of a float4 go to four rows, and with
// PADDING 4 the stores of a warp have no bank conflicts. Lanes are in pairs of rows as in lane_quads.cu. The
// thread tile is 8 x 16, the largest that registers hold, and its FMA go down one column after the other.
// The code exists twice, for rows that float4s can take and for others, and the kernel chooses once.

#include "../sizes.cuh"
#include "double_buffering.cuh"

#ifndef BM
#define BM 128 // block tile of C: BM x BN
#define BN 128
#define BK 8  // extent of the tiles of A and B along K
#define WM 64 // warp tile of C: WM x WN
#define WN 64
#define WMITER 2 // sub-tiles of a warp tile: WMITER x WNITER
#define WNITER 4
#define TM 4 // thread tile of C in each sub-tile: TM x TN
#define TN 4
#define PADDING 4 // floats that pad the rows of the tile of A
#endif

using Tiles = WarpTiles<BM, BN, WM, WN, WMITER, WNITER, TM, TN>;

extern "C" __global__ void __launch_bounds__(Tiles::THREADS, 2)
sgemm_pipelined(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C, int M, int N,
                int K)
{
#ifdef SIZE_M
    fix_sizes<SIZE_M, SIZE_N, SIZE_K>(M, N, K);
#endif
    __shared__ __align__(16) float tile_a[2][BK][BM + PADDING]; // transposed
    __shared__ __align__(16) float tile_b[2][BK][BN];
    auto multiply = [](float (&results)[WMITER * TM][WNITER * TN], const float (&reg_a)[WMITER * TM],
                       const float (&reg_b)[WNITER * TN]) {
#pragma unroll
        for (int sub_col = 0; sub_col < WNITER; ++sub_col)
#pragma unroll
            for (int n = 0; n < TN; ++n)
#pragma unroll
                for (int m = 0; m < TM; ++m)
#pragma unroll
                    for (int sub_row = 0; sub_row < WMITER; ++sub_row)
                        results[sub_row * TM + m][sub_col * TN + n] +=
                            reg_a[sub_row * TM + m] * reg_b[sub_col * TN + n];
    };
    if (K % 4 == 0 && N % 4 == 0)
        multiply_double_buffered<Tiles, true>(A, B, C, M, N, K, 0, K, N, tile_a, tile_b, multiply);
    else
        multiply_double_buffered<Tiles, false>(A, B, C, M, N, K, 0, K, N, tile_a, tile_b, multiply);
}
