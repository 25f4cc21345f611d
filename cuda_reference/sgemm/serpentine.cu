// SGEMM with double buffering at two levels, and a thread's products in serpentine order.
//
//   nvcc -arch=sm_80 -cubin serpentine.cu
//   grid (ceil(N/BN), ceil(M/BM)), block (BM/WM * BN/WN * 32)
//
// Everything is as in pipelined.cu, except for the order of the FMA of one k: they go down one column and up
// the next. So the last FMA of a column and the first of the next column read the same element of A, and each
// FMA shares one of its factors with the FMA before.

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
sgemm_serpentine(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C, int M, int N,
                int K)
{
#ifdef SIZE_M
    fix_sizes<SIZE_M, SIZE_N, SIZE_K>(M, N, K);
#endif
    __shared__ __align__(16) float tile_a[2][BK][BM + PADDING]; // transposed
    __shared__ __align__(16) float tile_b[2][BK][BN];
    auto multiply = [](float (&results)[WMITER * TM][WNITER * TN], const float (&reg_a)[WMITER * TM],
                       const float (&reg_b)[WNITER * TN]) {
        Tiles::multiply_in_serpentines(results, reg_a, reg_b);
    };
    if (K % 4 == 0 && N % 4 == 0)
        multiply_double_buffered<Tiles, true>(A, B, C, M, N, K, 0, K, N, tile_a, tile_b, multiply);
    else
        multiply_double_buffered<Tiles, false>(A, B, C, M, N, K, 0, K, N, tile_a, tile_b, multiply);
}
