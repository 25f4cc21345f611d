// SGEMM with a tile of C per warp whose lanes are two by two, so that shared memory is read without waste.
//
//   nvcc -arch=sm_80 -cubin lane_quads.cu
//   grid (ceil(N/BN), ceil(M/BM)), block (BM/WM * BN/WN * 32)
//
// Only the place of a lane in a sub-tile differs from warp_tiling.cu. A warp that reads 16 bytes per lane
// takes one wavefront for each half of the warp if pairs of lanes read the same, else one for each quarter.
// Lanes in rows read the same of A but not of B. Here lanes are in pairs of rows, lane 1 below lane 0 and
// lane 2 to the right of it: 0 and 1 read the same of B, 0 and 2 the same of A.
// The code exists twice, for rows that float4s can take and for others, and the kernel chooses once.

#include "../sizes.cuh"
#include "tiles_in_registers.cuh"
#include "warp_tiles.cuh"

#ifndef BM
#define BM 128 // block tile of C: BM x BN
#define BN 128
#define BK 8  // extent of the tiles of A and B along K
#define WM 32 // warp tile of C: WM x WN
#define WN 64
#define WMITER 2 // sub-tiles of a warp tile: WMITER x WNITER
#define WNITER 2
#define TM 4 // thread tile of C in each sub-tile: TM x TN
#define TN 4
#endif

using Tiles = WarpTiles<BM, BN, WM, WN, WMITER, WNITER, TM, TN>;
static_assert(Tiles::LANES_M % 2 == 0, "lanes must stand in pairs of rows");

template <bool ALIGNED>
static __device__ __forceinline__ void multiply(const float *__restrict__ A, const float *__restrict__ B,
                                                float *__restrict__ C, int M, int N, int K,
                                                float (&tile_a)[BK][BM], float (&tile_b)[BK][BN])
{
    const int block_row = blockIdx.y * BM;
    const int block_col = blockIdx.x * BN;
    const int lane = threadIdx.x % 32;
    const int lane_row = lane / (2 * Tiles::LANES_N) * 2 + lane % 2;
    const int lane_col = lane % (2 * Tiles::LANES_N) / 2;
    const Tiles part(threadIdx.x / 32, lane_row, lane_col);
    float thread_results[WMITER * TM][WNITER * TN] = {{0.0f}};

    TilesInRegisters<Tiles::THREADS, BM, BN, BK, ALIGNED> copies(block_row, block_col, 0, M, N, K);
    for (int k_left = K; k_left > 0; k_left -= BK) {
        copies.read(A, B, N, K, k_left);
        copies.store(tile_a, tile_b);
        __syncthreads();

#pragma unroll
        for (int k = 0; k < BK; ++k) {
            __align__(16) float reg_a[WMITER * TM], reg_b[WNITER * TN];
            part.read_fragments(reg_a, reg_b, tile_a[k], tile_b[k]);
#pragma unroll
            for (int sub_row = 0; sub_row < WMITER; ++sub_row)
#pragma unroll
                for (int sub_col = 0; sub_col < WNITER; ++sub_col)
#pragma unroll
                    for (int m = 0; m < TM; ++m)
#pragma unroll
                        for (int n = 0; n < TN; ++n)
                            thread_results[sub_row * TM + m][sub_col * TN + n] +=
                                reg_a[sub_row * TM + m] * reg_b[sub_col * TN + n];
        }
        __syncthreads();
    }
    part.write_results<ALIGNED>(thread_results, C, block_row, block_col, M, N);
}

extern "C" __global__ void __launch_bounds__(Tiles::THREADS, 2)
sgemm_lane_quads(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C, int M,
                 int N, int K)
{
#ifdef SIZE_M
    fix_sizes<SIZE_M, SIZE_N, SIZE_K>(M, N, K);
#endif
    __shared__ __align__(16) float tile_a[BK][BM]; // transposed
    __shared__ __align__(16) float tile_b[BK][BN];
    if (K % 4 == 0 && N % 4 == 0)
        multiply<true>(A, B, C, M, N, K, tile_a, tile_b);
    else
        multiply<false>(A, B, C, M, N, K, tile_a, tile_b);
}
