// SGEMM with 16-byte accesses and A transposed in shared memory.
//
//   nvcc -arch=sm_80 -cubin vectorized.cu
//   grid (ceil(N/BN), ceil(M/BM)), block (BM/TM * BN/TN)
//
// One float4 moves what took four instructions: global reads of A and B, shared reads of both fragments,
// writes of C.
// A thread needs TM elements of one column of A. They become neighbours, and so a float4, when the tile of A
// is stored transposed: the float4 read along K is spread over four rows of tile_a.
// float4 needs 16-byte alignment, which a row has only if its length is a multiple of 4; other matrices are
// read and written element by element. (article 003, kernel 5, for 4x4 results per thread; the series of
// article 000 uses 8x8)

#ifndef BM
#define BM 128 // block tile of C: BM x BN
#define BN 128
#define BK 8 // extent of the tiles of A and B along K
#define TM 8 // thread tile of C: TM x TN
#define TN 8
#endif

constexpr int THREADS = (BM / TM) * (BN / TN);
static_assert(BM % TM == 0 && BN % TN == 0, "threads must cover the block tile");
static_assert(TM % 4 == 0 && TN % 4 == 0 && BK % 4 == 0 && BN % 4 == 0, "tiles must consist of float4s");
static_assert(BM * BK / 4 % THREADS == 0 && BK * BN / 4 % THREADS == 0,
              "threads must share the copies evenly");

// Elements (row, col) to (row, col + 3) of a row-major matrix, zeros where they lie beyond it. col is a
// multiple of 4.
static __device__ float4 load4(const float *__restrict__ matrix, int row, int col, int rows, int cols)
{
    float value[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    if (row < rows) {
        const float *source = matrix + row * cols + col;
        if (cols % 4 == 0) {
            if (col < cols)
                return *reinterpret_cast<const float4 *>(source);
        } else {
#pragma unroll
            for (int e = 0; e < 4; ++e)
                if (col + e < cols)
                    value[e] = source[e];
        }
    }
    return make_float4(value[0], value[1], value[2], value[3]);
}

// The counterpart of load4: writes those of the four elements that lie in the matrix.
static __device__ void store4(float *__restrict__ matrix, int row, int col, int rows, int cols,
                              const float *value)
{
    if (row < rows) {
        float *target = matrix + row * cols + col;
        if (cols % 4 == 0) {
            if (col < cols)
                *reinterpret_cast<float4 *>(target) = make_float4(value[0], value[1], value[2], value[3]);
        } else {
#pragma unroll
            for (int e = 0; e < 4; ++e)
                if (col + e < cols)
                    target[e] = value[e];
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
sgemm_vectorized(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C, int M,
                 int N, int K)
{
    __shared__ __align__(16) float tile_a[BK][BM]; // transposed
    __shared__ __align__(16) float tile_b[BK][BN];

    const int block_row = blockIdx.y * BM;
    const int block_col = blockIdx.x * BN;
    const int thread_row = threadIdx.x / (BN / TN) * TM;
    const int thread_col = threadIdx.x % (BN / TN) * TN;

    float acc[TM][TN] = {{0.0f}};
    for (int k0 = 0; k0 < K; k0 += BK) {
#pragma unroll
        for (int i = 0; i < BM * BK / 4 / THREADS; ++i) {
            const int row = (i * THREADS + threadIdx.x) / (BK / 4);
            const int k = (i * THREADS + threadIdx.x) % (BK / 4) * 4;
            const float4 tmp = load4(A, block_row + row, k0 + k, M, K);
            tile_a[k][row] = tmp.x;
            tile_a[k + 1][row] = tmp.y;
            tile_a[k + 2][row] = tmp.z;
            tile_a[k + 3][row] = tmp.w;
        }
#pragma unroll
        for (int i = 0; i < BK * BN / 4 / THREADS; ++i) {
            const int k = (i * THREADS + threadIdx.x) / (BN / 4);
            const int col = (i * THREADS + threadIdx.x) % (BN / 4) * 4;
            *reinterpret_cast<float4 *>(&tile_b[k][col]) = load4(B, k0 + k, block_col + col, K, N);
        }
        __syncthreads();

#pragma unroll
        for (int k = 0; k < BK; ++k) {
            __align__(16) float a[TM], b[TN];
#pragma unroll
            for (int m = 0; m < TM; m += 4)
                *reinterpret_cast<float4 *>(&a[m]) =
                    *reinterpret_cast<const float4 *>(&tile_a[k][thread_row + m]);
#pragma unroll
            for (int n = 0; n < TN; n += 4)
                *reinterpret_cast<float4 *>(&b[n]) =
                    *reinterpret_cast<const float4 *>(&tile_b[k][thread_col + n]);
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
