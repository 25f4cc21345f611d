// SGEMM with several tiles under way by cp.async: copied data needs no register, and no thread waits for it.
//
//   nvcc -arch=sm_80 -cubin multistage.cu
//   grid (ceil(N/BN), ceil(M/BM)), block (BM/WM * BN/WN * 32)
//   dynamic shared memory: STAGES * BK * (BM + PADDING + BN) floats, the tiles of A, then those of B
//
// The multistage buffer holds STAGES tiles: one is multiplied, and the copies of the next have started. An
// iteration first multiplies all k of a tile except the last. Then it starts the copy of the tile that is
// STAGES - 1 further on. The stage of that tile is free, because it was not read since the last barrier. Then
// the iteration waits for the next tile, passes the one barrier, and reads the next tile's first fragments.
// Last come the FMA of the last k. Every tile is one group of copies, even a tile beyond K, which is filled
// with zeros without a read of global memory. So wait_group always leaves STAGES - 2, and the last iterations
// are like all others. B comes in pieces of 16 bytes if N % 4 == 0, of 8 if N % 2 == 0. A is transposed on
// the way, but cp.async does not rearrange bytes, so A comes in single floats, to rows PADDING longer than
// BM. Beyond the last row of A, and the last column of B, tiles start again at the first. These elements add
// only to elements of C that are not written. They are not all the same element, because many lanes that copy
// one element would be slow. The order of a thread's FMA and whether the stages are unrolled, ROWS_FIRST,
// were chosen by measurement. Lanes are in pairs of rows as in lane_quads.cu, and fragments are double
// buffered as in pipelined.cu.

#include "../sizes.cuh"
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
#endif

using Tiles = WarpTiles<BM, BN, WM, WN, WMITER, WNITER, TM, TN>;

extern "C" __global__ void __launch_bounds__(Tiles::THREADS)
sgemm_multistage(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C, int M,
                 int N, int K)
{
#ifdef SIZE_M
    fix_sizes<SIZE_M, SIZE_N, SIZE_K>(M, N, K);
#endif
    extern __shared__ __align__(16) float shared[];
    if (N % 4 == 0)
        multiply_multistage<Tiles, BK, STAGES, PADDING, ROWS_FIRST, 4>(A, B, C, M, N, K, K, N, shared);
    else if (N % 2 == 0)
        multiply_multistage<Tiles, BK, STAGES, PADDING, ROWS_FIRST, 2>(A, B, C, M, N, K, K, N, shared);
    else
        multiply_multistage<Tiles, BK, STAGES, PADDING, ROWS_FIRST, 1>(A, B, C, M, N, K, K, N, shared);
}
