// SGEMM with 16-byte accesses and A transposed in shared memory.
//
//   nvcc -arch=sm_80 -cubin transposed.cu
//   grid (ceil(N/BN), ceil(M/BM)), block (BM/TM * BN/TN)
//
// A thread needs TM elements of one column of A. They become neighbours, and so float4s, when the tile of A
// is stored transposed: the float4 read along K is spread over four rows of tile_a. Then four reads of a
// thread bring 8 elements of A and 8 of B for 64 FMA. The stores cost more, because the threads of a warp
// store to a few banks. With DIAGONAL 1 they do not: rows of A's tile are shifted against each other, without
// padding, as article 004, "Why does padding resolve bank conflicts?", says of fp32. (the step before that of
// article 000, "Warp Tiling", which calls it vectorized accesses)

#include "../sizes.cuh"
#include "float4_copies.cuh"

#ifndef BM
#define BM 128 // block tile of C: BM x BN
#define BN 128
#define BK 8 // extent of the tiles of A and B along K
#define TM 8 // thread tile of C: TM x TN
#define TN 8
#define DIAGONAL 0 // whether each row of A's tile begins four floats after the row above it
#endif

constexpr int THREADS = (BM / TM) * (BN / TN);
static_assert(BM % TM == 0 && BN % TN == 0, "threads must cover the block tile");
static_assert(TM % 4 == 0 && TN % 4 == 0, "fragments must consist of float4s");

extern "C" __global__ void __launch_bounds__(THREADS)
sgemm_transposed(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C, int M,
                 int N, int K)
{
#ifdef SIZE_M
    fix_sizes<SIZE_M, SIZE_N, SIZE_K>(M, N, K);
#endif
    __shared__ __align__(16) float tile_a[BK][BM]; // transposed
    __shared__ __align__(16) float tile_b[BK][BN];

    const int block_row = blockIdx.y * BM;
    const int block_col = blockIdx.x * BN;
    const int thread_row = threadIdx.x / (BN / TN) * TM;
    const int thread_col = threadIdx.x % (BN / TN) * TN;

    float acc[TM][TN] = {{0.0f}};
    for (int k0 = 0; k0 < K; k0 += BK) {
        copy_transposed4<THREADS, DIAGONAL>(tile_a, A, threadIdx.x, block_row, k0, M, K);
        copy_tile4<THREADS>(tile_b, B, threadIdx.x, k0, block_col, K, N);
        __syncthreads();

#pragma unroll
        for (int k = 0; k < BK; ++k) {
            __align__(16) float a[TM], b[TN];
#pragma unroll
            for (int m = 0; m < TM; m += 4)
                read_shared<4>(a + m, &tile_a[k][place_in_row<BM, DIAGONAL>(k, thread_row + m)]);
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
