// SGEMM with 16-byte accesses.
//
//   nvcc -arch=sm_80 -cubin vectorized.cu
//   grid (ceil(M/BM), ceil(N/BN)), block (BN/TN, BM/TM)
//
// One float4 moves what took four instructions in thread_tile_2d.cu: reads of A and B from global memory,
// their stores to shared memory, reads of B's fragment, writes of C. A lies in shared memory as in global
// memory, so the TM elements that a thread needs of one column of A are in different rows: they are read one
// by one. (article 003, "choiBLAMS", kernel 5)

#include "../sizes.cuh"
#include "float4_copies.cuh"

#ifndef BM
#define BM 128 // block tile of C: BM x BN
#define BN 128
#define BK 32 // extent of the tiles of A and B along K
#define TM 4  // thread tile of C: TM x TN
#define TN 4
#endif

constexpr int THREADS_X = BN / TN;
constexpr int THREADS_Y = BM / TM;
constexpr int THREADS = THREADS_X * THREADS_Y;
static_assert(BM % TM == 0 && BN % TN == 0, "threads must cover the block tile");
static_assert(TN % 4 == 0, "fragments of B must consist of float4s");

extern "C" __global__ void __launch_bounds__(THREADS)
sgemm_vectorized(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C, int M,
                 int N, int K)
{
#ifdef SIZE_M
    fix_sizes<SIZE_M, SIZE_N, SIZE_K>(M, N, K);
#endif
    __shared__ __align__(16) float tile_a[BM][BK];
    __shared__ __align__(16) float tile_b[BK][BN];

    const int thread = threadIdx.y * THREADS_X + threadIdx.x;
    const int block_row = blockIdx.x * BM;
    const int block_col = blockIdx.y * BN;
    const int thread_row = threadIdx.y * TM;
    const int thread_col = threadIdx.x * TN;

    float acc[TM][TN] = {{0.0f}};
    for (int k0 = 0; k0 < K; k0 += BK) {
        copy_tile4<THREADS>(tile_a, A, thread, block_row, k0, M, K);
        copy_tile4<THREADS>(tile_b, B, thread, k0, block_col, K, N);
        __syncthreads();

#pragma unroll
        for (int k = 0; k < BK; ++k) {
            float a[TM];
            __align__(16) float b[TN];
#pragma unroll
            for (int m = 0; m < TM; ++m)
                a[m] = tile_a[thread_row + m][k];
            read_shared<TN>(b, &tile_b[k][thread_col]);
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
        for (int n = 0; n < TN; n += 4)
            store4(C, block_row + thread_row + m, block_col + thread_col + n, M, N, &acc[m][n]);
}
