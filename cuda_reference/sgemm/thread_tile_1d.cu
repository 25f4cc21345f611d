// SGEMM with several results per thread, in a row or in a column of C.
//
//   nvcc -arch=sm_80 -cubin thread_tile_1d.cu
//   grid (ceil(M/BM), ceil(N/BN)), block (BN/TN, BM/TM)
//
// A thread has TN neighbours of one row. The element of A that they share stays in a register for TN FMA: 1
// + TN shared reads per TN FMA, not 2 * TN. A thread brings the elements of B for its own columns. It reads
// them one by one: with TN 4 a read of a warp touches 16 sectors, not 4. It stores them at once, 16 bytes
// without a bank conflict. (article 003, "choiBLAMS", 1D Blocktiling)
// With TN 1 it has TM neighbours of one column, and the element of B stays in a register. (the step of that
// name in the series of article 000, "Warp Tiling", with 64x64x8 tiles and TM 8)

#include "../sizes.cuh"
#include "tile_copies.cuh"

#ifndef BM
#define BM 32 // block tile of C: BM x BN
#define BN 128
#define BK 32 // extent of the tiles of A and B along K
#define TM 1  // results of a thread: TM x TN, one of both 1
#define TN 4
#endif

constexpr int THREADS_X = BN / TN;
constexpr int THREADS_Y = BM / TM;
static_assert(TM == 1 || TN == 1, "a thread must have a row or a column");
static_assert(BM % TM == 0 && BN % TN == 0, "threads must cover the block tile");
static_assert(BM * BK == THREADS_X * THREADS_Y && BK == THREADS_Y, "threads must share the copies evenly");

extern "C" __global__ void __launch_bounds__(THREADS_X *THREADS_Y)
sgemm_thread_tile_1d(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C, int M,
                     int N, int K)
{
#ifdef SIZE_M
    fix_sizes<SIZE_M, SIZE_N, SIZE_K>(M, N, K);
#endif
    __shared__ float tile_a[BM][BK];
    __shared__ float tile_b[BK][BN];

    const int ty = threadIdx.y;
    const int tx = threadIdx.x;
    const int a_row = BK == THREADS_X ? ty : (ty * THREADS_X + tx) / BK;
    const int a_k = BK == THREADS_X ? tx : (ty * THREADS_X + tx) % BK;
    const int block_row = blockIdx.x * BM;
    const int m = block_row + ty * TM;
    const int n = (blockIdx.y * THREADS_X + tx) * TN;

    float acc[TM * TN] = {0.0f};
    for (int k0 = 0; k0 < K; k0 += BK) {
        tile_a[a_row][a_k] = load(A, block_row + a_row, k0 + a_k, M, K);
        copy_neighbours<TN>(&tile_b[ty][tx * TN], B, k0 + ty, n, K, N);
        __syncthreads();

#pragma unroll
        for (int k = 0; k < BK; ++k) {
            if constexpr (TM == 1) {
                const float a = tile_a[ty][k];
#pragma unroll
                for (int l = 0; l < TN; ++l)
                    acc[l] += a * tile_b[k][tx * TN + l];
            } else {
                const float b = tile_b[k][tx];
#pragma unroll
                for (int l = 0; l < TM; ++l)
                    acc[l] += tile_a[ty * TM + l][k] * b;
            }
        }
        __syncthreads();
    }

#pragma unroll
    for (int l = 0; l < TM * TN; ++l) {
        const int row = m + l / TN;
        const int col = n + l % TN;
        if (row < M && col < N)
            C[row * N + col] = acc[l];
    }
}
