// SGEMM with a tile of C per warp, between the block tile and the thread tiles.
//
//   nvcc -arch=sm_80 -cubin warp_tiling.cu
//   grid (ceil(N/BN), ceil(M/BM)), block (BM/WM * BN/WN * 32)
//
// A warp owns WM x WN of the block's BM x BN elements and works on them in WMITER x WNITER sub-tiles of WSUBM
// x WSUBN, in which each lane has TM x TN. The fragments of a whole k, WMITER * TM of A and WNITER * TN of B,
// are in registers before the FMA start, so all sub-tiles reuse them; and the lanes of a warp read
// neighbouring parts of the tiles. Copies, transposed A and float4 accesses are those of transposed.cu.
// (article 000, "Warp Tiling", which names the sizes but prints no values; its program has WMITER 2 and
// WNITER 1 here)

#include "../sizes.cuh"
#include "float4_copies.cuh"

#ifndef BM
#define BM 64 // block tile of C: BM x BN
#define BN 64
#define BK 8  // extent of the tiles of A and B along K
#define WM 32 // warp tile of C: WM x WN
#define WN 32
#define WMITER 1 // sub-tiles of a warp tile: WMITER x WNITER
#define WNITER 2
#define TM 4 // thread tile of C in each sub-tile: TM x TN
#define TN 4
#endif

constexpr int WARPSIZE = 32;
constexpr int WSUBM = WM / WMITER;
constexpr int WSUBN = WN / WNITER;
constexpr int THREADS = (BM / WM) * (BN / WN) * WARPSIZE;
static_assert(BM % WM == 0 && BN % WN == 0, "warps must cover the block tile");
static_assert((WSUBM / TM) * (WSUBN / TN) == WARPSIZE, "a warp's lanes must cover a sub-tile");
static_assert(TM % 4 == 0 && TN % 4 == 0, "fragments must consist of float4s");

extern "C" __global__ void __launch_bounds__(THREADS)
sgemm_warp_tiling(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C, int M,
                  int N, int K)
{
#ifdef SIZE_M
    fix_sizes<SIZE_M, SIZE_N, SIZE_K>(M, N, K);
#endif
    __shared__ __align__(16) float tile_a[BK][BM]; // transposed
    __shared__ __align__(16) float tile_b[BK][BN];

    const int block_row = blockIdx.y * BM;
    const int block_col = blockIdx.x * BN;

    // Where the warp's tile starts in the block's, and the lane's in each sub-tile.
    const int warp_idx = threadIdx.x / WARPSIZE;
    const int warp_row = warp_idx / (BN / WN) * WM;
    const int warp_col = warp_idx % (BN / WN) * WN;
    const int thread_idx_in_warp = threadIdx.x % WARPSIZE;
    const int thread_row_in_warp = thread_idx_in_warp / (WSUBN / TN) * TM;
    const int thread_col_in_warp = thread_idx_in_warp % (WSUBN / TN) * TN;

    float thread_results[WMITER * TM][WNITER * TN] = {{0.0f}};
    for (int k0 = 0; k0 < K; k0 += BK) {
        copy_transposed4<THREADS>(tile_a, A, threadIdx.x, block_row, k0, M, K);
        copy_tile4<THREADS>(tile_b, B, threadIdx.x, k0, block_col, K, N);
        __syncthreads();

#pragma unroll
        for (int k = 0; k < BK; ++k) {
            __align__(16) float reg_a[WMITER * TM], reg_b[WNITER * TN];
#pragma unroll
            for (int sub_row = 0; sub_row < WMITER; ++sub_row)
                read_shared<TM>(&reg_a[sub_row * TM],
                                &tile_a[k][warp_row + sub_row * WSUBM + thread_row_in_warp]);
#pragma unroll
            for (int sub_col = 0; sub_col < WNITER; ++sub_col)
                read_shared<TN>(&reg_b[sub_col * TN],
                                &tile_b[k][warp_col + sub_col * WSUBN + thread_col_in_warp]);
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

#pragma unroll
    for (int sub_row = 0; sub_row < WMITER; ++sub_row)
#pragma unroll
        for (int sub_col = 0; sub_col < WNITER; ++sub_col)
#pragma unroll
            for (int m = 0; m < TM; ++m)
#pragma unroll
                for (int n = 0; n < TN; n += 4) {
                    const int row = block_row + warp_row + sub_row * WSUBM + thread_row_in_warp + m;
                    const int col = block_col + warp_col + sub_col * WSUBN + thread_col_in_warp + n;
                    const float *result = &thread_results[sub_row * TM + m][sub_col * TN + n];
                    store4(C, row, col, M, N, result);
                }
}
