// SGEMM with a tile of C per warp whose lanes stand two by two, so that shared memory is read without waste.
//
//   nvcc -arch=sm_80 -cubin lane_quads.cu
//   grid (ceil(N/BN), ceil(M/BM)), block (BM/WM * BN/WN * 32)
//
// Only where a lane stands in a sub-tile is different from warp_tiling.cu. A warp's read of 16 bytes per lane
// takes one wavefront for each half of it where lanes agree in pairs on what they read, else one for each
// quarter. Lanes in rows agree on A but not on B. Here they stand in pairs of rows, lane 1 below lane 0 and
// lane 2 to the right of it: 0 and 1 agree on B, 0 and 2 on A.
// All of it exists twice, for rows that float4s can take and for others, and the kernel chooses once.

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

constexpr int WARPSIZE = 32;
constexpr int WSUBM = WM / WMITER;
constexpr int WSUBN = WN / WNITER;
constexpr int LANES_N = WSUBN / TN; // along a row of a sub-tile
constexpr int THREADS = (BM / WM) * (BN / WN) * WARPSIZE;
constexpr int A_STEP = THREADS / (BK / 4); // rows that all threads copy at once, four elements each
constexpr int B_STEP = THREADS / (BN / 4);
constexpr int A_COPIES = BM / A_STEP; // float4s that a thread copies
constexpr int B_COPIES = BK / B_STEP;
static_assert(BM % WM == 0 && BN % WN == 0, "warps must cover the block tile");
static_assert((WSUBM / TM) * LANES_N == WARPSIZE, "a warp's lanes must cover a sub-tile");
static_assert(WSUBM / TM % 2 == 0, "lanes must stand in pairs of rows");
static_assert(TM % 4 == 0 && TN % 4 == 0 && BK % 4 == 0 && BN % 4 == 0, "tiles must consist of float4s");
static_assert(THREADS % (BK / 4) == 0 && THREADS % (BN / 4) == 0, "threads must start whole rows");
static_assert(BM % A_STEP == 0 && BK % B_STEP == 0, "threads must share the copies evenly");

// Four neighbouring elements of a row of `cols`, the first `inside` of them, zeros for the rest. ALIGNED
// promises cols % 4 == 0; then all four are inside or none.
template <bool ALIGNED> static __device__ float4 load4(const float *source, int inside, int cols)
{
    float value[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    if (ALIGNED || cols % 4 == 0) {
        if (inside > 0)
            return *reinterpret_cast<const float4 *>(source);
    } else {
#pragma unroll
        for (int e = 0; e < 4; ++e)
            if (e < inside)
                value[e] = source[e];
    }
    return make_float4(value[0], value[1], value[2], value[3]);
}

// Writes those of the elements (row, col) to (row, col + 3) of a row-major matrix that lie in it. col is a
// multiple of 4.
template <bool ALIGNED>
static __device__ void store4(float *__restrict__ matrix, int row, int col, int rows, int cols,
                              const float *value)
{
    if (row < rows) {
        float *target = matrix + row * cols + col;
        if (ALIGNED || cols % 4 == 0) {
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

template <bool ALIGNED>
static __device__ __forceinline__ void multiply(const float *__restrict__ A, const float *__restrict__ B,
                                                float *__restrict__ C, int M, int N, int K,
                                                float (&tile_a)[BK][BM], float (&tile_b)[BK][BN])
{
    const int block_row = blockIdx.y * BM;
    const int block_col = blockIdx.x * BN;

    // Where the lane's elements start in the block tile.
    const int warp = threadIdx.x / WARPSIZE;
    const int lane = threadIdx.x % WARPSIZE;
    const int lane_row = lane / (2 * LANES_N) * 2 + lane % 2;
    const int lane_col = lane % (2 * LANES_N) / 2;
    const int row = warp / (BN / WN) * WM + lane_row * TM;
    const int col = warp % (BN / WN) * WN + lane_col * TN;
    float thread_results[WMITER * TM][WNITER * TN] = {{0.0f}};

    // What the thread copies: four elements each of rows A_STEP apart in A, B_STEP apart in B.
    const int a_row = threadIdx.x / (BK / 4), a_k = threadIdx.x % (BK / 4) * 4;
    const int b_k = threadIdx.x / (BN / 4), b_col = threadIdx.x % (BN / 4) * 4;
    const int rows_left = M - (block_row + a_row), cols_left = N - (block_col + b_col);
    int from_a = (block_row + a_row) * K + a_k, from_b = b_k * N + block_col + b_col;

    for (int k_left = K; k_left > 0; k_left -= BK) {
        float4 copied_a[BM / A_STEP], copied_b[BK / B_STEP];
#pragma unroll
        for (int i = 0; i < A_COPIES; ++i)
            copied_a[i] =
                load4<ALIGNED>(A + from_a + i * A_STEP * K, i * A_STEP < rows_left ? k_left - a_k : 0, K);
#pragma unroll
        for (int i = 0; i < B_COPIES; ++i)
            copied_b[i] =
                load4<ALIGNED>(B + from_b + i * B_STEP * N, b_k + i * B_STEP < k_left ? cols_left : 0, N);
        from_a += BK;
        from_b += BK * N;
#pragma unroll
        for (int i = 0; i < A_COPIES; ++i) {
            tile_a[a_k][a_row + i * A_STEP] = copied_a[i].x; // transposed
            tile_a[a_k + 1][a_row + i * A_STEP] = copied_a[i].y;
            tile_a[a_k + 2][a_row + i * A_STEP] = copied_a[i].z;
            tile_a[a_k + 3][a_row + i * A_STEP] = copied_a[i].w;
        }
#pragma unroll
        for (int i = 0; i < B_COPIES; ++i)
            *reinterpret_cast<float4 *>(&tile_b[b_k + i * B_STEP][b_col]) = copied_b[i];
        __syncthreads();

#pragma unroll
        for (int k = 0; k < BK; ++k) {
            __align__(16) float reg_a[WMITER * TM], reg_b[WNITER * TN];
#pragma unroll
            for (int sub_row = 0; sub_row < WMITER; ++sub_row)
#pragma unroll
                for (int m = 0; m < TM; m += 4)
                    *reinterpret_cast<float4 *>(&reg_a[sub_row * TM + m]) =
                        *reinterpret_cast<const float4 *>(&tile_a[k][row + sub_row * WSUBM + m]);
#pragma unroll
            for (int sub_col = 0; sub_col < WNITER; ++sub_col)
#pragma unroll
                for (int n = 0; n < TN; n += 4)
                    *reinterpret_cast<float4 *>(&reg_b[sub_col * TN + n]) =
                        *reinterpret_cast<const float4 *>(&tile_b[k][col + sub_col * WSUBN + n]);
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
                for (int n = 0; n < TN; n += 4)
                    store4<ALIGNED>(C, block_row + row + sub_row * WSUBM + m,
                                    block_col + col + sub_col * WSUBN + n, M, N,
                                    &thread_results[sub_row * TM + m][sub_col * TN + n]);
}

extern "C" __global__ void __launch_bounds__(THREADS, 2)
sgemm_lane_quads(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C, int M,
                 int N, int K)
{
    __shared__ __align__(16) float tile_a[BK][BM]; // transposed
    __shared__ __align__(16) float tile_b[BK][BN];
    if (K % 4 == 0 && N % 4 == 0)
        multiply<true>(A, B, C, M, N, K, tile_a, tile_b);
    else
        multiply<false>(A, B, C, M, N, K, tile_a, tile_b);
}
