// SGEMM with a TM x TN tile of results per thread.
//
//   nvcc -arch=sm_80 -cubin thread_tile_2d.cu
//   grid (ceil(M/BM), ceil(N/BN)), block (BN/TN, BM/TM)
//
// For each k a thread reads TM elements of A and TN of B from shared memory for TM * TN FMA: the reads per
// FMA fall from 2 to 1/TM + 1/TN. (article 003, "choiBLAMS", kernel 4, with 4x4 results; the series of
// article 000, "Warp Tiling", has 8x8)
// The copies into shared memory run over a tile in row-major order, neighbouring threads taking neighbouring
// elements, as in that series. With COPY_OWN they are the other article's: a thread brings elements of the
// rows of A and the columns of B of its own results, so that neighbours read B at a stride of TN.

#include "../sizes.cuh"
#include "tile_copies.cuh"

#ifndef BM
#define BM 128 // block tile of C: BM x BN
#define BN 128
#define BK 32 // extent of the tiles of A and B along K
#define TM 4  // thread tile of C: TM x TN
#define TN 4
#define COPY_OWN 0 // 1: a thread copies for its own results, 0: neighbours copy neighbouring elements
#endif

constexpr int THREADS_X = BN / TN;
constexpr int THREADS_Y = BM / TM;
constexpr int THREADS = THREADS_X * THREADS_Y;
static_assert(BM % TM == 0 && BN % TN == 0, "threads must cover the block tile");
static_assert(!COPY_OWN || (BK == THREADS_X && BK == THREADS_Y), "as many threads each way as BK");

extern "C" __global__ void __launch_bounds__(THREADS)
sgemm_thread_tile_2d(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C, int M,
                     int N, int K)
{
#ifdef SIZE_M
    fix_sizes<SIZE_M, SIZE_N, SIZE_K>(M, N, K);
#endif
    __shared__ float tile_a[BM][BK];
    __shared__ float tile_b[BK][BN];

    const int thread = threadIdx.y * THREADS_X + threadIdx.x;
    const int block_row = blockIdx.x * BM;
    const int block_col = blockIdx.y * BN;
    const int thread_row = threadIdx.y * TM;
    const int thread_col = threadIdx.x * TN;

    float acc[TM][TN] = {{0.0f}};
    for (int k0 = 0; k0 < K; k0 += BK) {
#if COPY_OWN
#pragma unroll
        for (int m = 0; m < TM; ++m)
            tile_a[thread_row + m][threadIdx.x] =
                load(A, block_row + thread_row + m, k0 + threadIdx.x, M, K);
        copy_neighbours<TN>(&tile_b[threadIdx.y][thread_col], B, k0 + threadIdx.y, block_col + thread_col, K,
                            N);
#else
        copy_tile<THREADS>(tile_a, A, thread, block_row, k0, M, K);
        copy_tile<THREADS>(tile_b, B, thread, k0, block_col, K, N);
#endif
        __syncthreads();

#pragma unroll
        for (int k = 0; k < BK; ++k) {
            float a[TM], b[TN];
#pragma unroll
            for (int m = 0; m < TM; ++m)
                a[m] = tile_a[thread_row + m][k];
#pragma unroll
            for (int n = 0; n < TN; ++n)
                b[n] = tile_b[k][thread_col + n];
#pragma unroll
            for (int m = 0; m < TM; ++m)
#pragma unroll
                for (int n = 0; n < TN; ++n)
                    acc[m][n] += a[m] * b[n];
        }
        __syncthreads();
    }

#pragma unroll
    for (int m = 0; m < TM; ++m)
#pragma unroll
        for (int n = 0; n < TN; ++n) {
            const int row = block_row + thread_row + m;
            const int col = block_col + thread_col + n;
            if (row < M && col < N)
                C[row * N + col] = acc[m][n];
        }
}
