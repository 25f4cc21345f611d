// SGEMM with a TM x TN tile of results per thread.
//
//   nvcc -arch=sm_80 -cubin thread_tile_2d.cu
//   grid (ceil(M/BM), ceil(N/BN)), block (BN/TN, BM/TM)
//
// For each k a thread reads TM elements of A and TN of B from shared memory for TM * TN FMA: the reads per
// FMA fall from 2 to 1/TM + 1/TN. The copy into shared memory runs over the tile in row-major order,
// neighbouring threads taking neighbouring elements. (article 003, kernel 4, with 4x4 results; the series of
// article 000 uses 8x8)

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
static_assert(BM * BK % THREADS == 0 && BK * BN % THREADS == 0, "threads must share the copies evenly");

extern "C" __global__ void __launch_bounds__(THREADS)
sgemm_thread_tile_2d(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C, int M,
                     int N, int K)
{
    __shared__ float tile_a[BM][BK];
    __shared__ float tile_b[BK][BN];

    const int thread = threadIdx.y * THREADS_X + threadIdx.x;
    const int block_row = blockIdx.x * BM;
    const int block_col = blockIdx.y * BN;
    const int thread_row = threadIdx.y * TM;
    const int thread_col = threadIdx.x * TN;

    float acc[TM][TN] = {{0.0f}};
    for (int k0 = 0; k0 < K; k0 += BK) {
#pragma unroll
        for (int i = 0; i < BM * BK / THREADS; ++i) {
            const int row = (i * THREADS + thread) / BK;
            const int k = (i * THREADS + thread) % BK;
            tile_a[row][k] = block_row + row < M && k0 + k < K ? A[(block_row + row) * K + k0 + k] : 0.0f;
        }
#pragma unroll
        for (int i = 0; i < BK * BN / THREADS; ++i) {
            const int k = (i * THREADS + thread) / BN;
            const int col = (i * THREADS + thread) % BN;
            tile_b[k][col] = k0 + k < K && block_col + col < N ? B[(k0 + k) * N + block_col + col] : 0.0f;
        }
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
