// SGEMM double buffered twice: tiles come to shared memory through registers, fragments to registers, while
// others are multiplied.
//
//   nvcc -arch=sm_80 -cubin pipelined.cu
//   grid (ceil(N/BN), ceil(M/BM)), block (BM/WM * BN/WN * 32)
//
// A turn of the loop over tiles multiplies one tile, stores the next, which is in registers, to the other
// stage in shared memory, reads the one after it from global memory into these registers, and passes one
// barrier: before it all warps have read the last of the present tile, behind it the next one is there. The
// reads have the whole next multiplication to arrive; before the barrier they stay early, while from the head
// of the loop the compiler moves them down among the FMA, to save registers.
// Fragments are read one k ahead: those of k + 1 before the FMA of k, the first of the next tile before the
// last FMA of this one. The last turns read tiles beyond K, zeros without a read of global memory, which
// nobody multiplies: that is cheaper than a second copy of the FMA. Both stages are unrolled: so addresses
// are constants.
// Rows of the tile of A are PADDING longer than BM: the four elements of a float4 go to four rows, and with
// PADDING 4 the stores of a warp meet no bank twice. Lanes stand in pairs of rows as in lane_quads.cu. The
// thread tile is 8 x 16, the largest that registers hold, and its FMA go down one column after the other.
// All of it exists twice, for rows that float4s can take and for others, and the kernel chooses once.

#ifndef BM
#define BM 128 // block tile of C: BM x BN
#define BN 128
#define BK 8  // extent of the tiles of A and B along K
#define WM 64 // warp tile of C: WM x WN
#define WN 64
#define WMITER 2 // sub-tiles of a warp tile: WMITER x WNITER
#define WNITER 4
#define TM 4 // thread tile of C in each sub-tile: TM x TN
#define TN 4
#define PADDING 4 // floats that pad the rows of the tile of A
#endif

constexpr int WARPSIZE = 32;
constexpr int WSUBM = WM / WMITER;
constexpr int WSUBN = WN / WNITER;
constexpr int LANES_N = WSUBN / TN; // along a row of a sub-tile
constexpr int THREADS = (BM / WM) * (BN / WN) * WARPSIZE;
constexpr int A_STEP = THREADS / (BK / 4); // rows that all threads copy at once, four elements each
constexpr int B_STEP = THREADS / (BN / 4);
static_assert(BM % WM == 0 && BN % WN == 0, "warps must cover the block tile");
static_assert((WSUBM / TM) * LANES_N == WARPSIZE, "a warp's lanes must cover a sub-tile");
static_assert(WSUBM / TM % 2 == 0, "lanes must stand in pairs of rows");
static_assert(TM % 4 == 0 && TN % 4 == 0 && BK % 4 == 0 && BN % 4 == 0, "tiles must consist of float4s");
static_assert(THREADS % (BK / 4) == 0 && THREADS % (BN / 4) == 0, "threads must start whole rows");
static_assert(BK % 2 == 0 && PADDING % 4 == 0, "fragments must alternate, rows must be float4s");
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
                                                float (&tile_a)[2][BK][BM + PADDING],
                                                float (&tile_b)[2][BK][BN])
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
    float4 copied_a[BM / A_STEP], copied_b[BK / B_STEP];

    auto read_tile = [&](int k_left) {
#pragma unroll
        for (int i = 0; i < BM / A_STEP; ++i)
            copied_a[i] =
                load4<ALIGNED>(A + from_a + i * A_STEP * K, i * A_STEP < rows_left ? k_left - a_k : 0, K);
#pragma unroll
        for (int i = 0; i < BK / B_STEP; ++i)
            copied_b[i] =
                load4<ALIGNED>(B + from_b + i * B_STEP * N, b_k + i * B_STEP < k_left ? cols_left : 0, N);
        from_a += BK;
        from_b += BK * N;
    };
    auto store_tile = [&](int stage) {
#pragma unroll
        for (int i = 0; i < BM / A_STEP; ++i) {
            tile_a[stage][a_k][a_row + i * A_STEP] = copied_a[i].x; // transposed
            tile_a[stage][a_k + 1][a_row + i * A_STEP] = copied_a[i].y;
            tile_a[stage][a_k + 2][a_row + i * A_STEP] = copied_a[i].z;
            tile_a[stage][a_k + 3][a_row + i * A_STEP] = copied_a[i].w;
        }
#pragma unroll
        for (int i = 0; i < BK / B_STEP; ++i)
            *reinterpret_cast<float4 *>(&tile_b[stage][b_k + i * B_STEP][b_col]) = copied_b[i];
    };

    __align__(16) float reg_a[2][WMITER * TM], reg_b[2][WNITER * TN]; // of even k and of odd
    auto read_fragments = [&](int stage, int k) {
#pragma unroll
        for (int sub_row = 0; sub_row < WMITER; ++sub_row)
#pragma unroll
            for (int m = 0; m < TM; m += 4)
                *reinterpret_cast<float4 *>(&reg_a[k % 2][sub_row * TM + m]) =
                    *reinterpret_cast<const float4 *>(&tile_a[stage][k][row + sub_row * WSUBM + m]);
#pragma unroll
        for (int sub_col = 0; sub_col < WNITER; ++sub_col)
#pragma unroll
            for (int n = 0; n < TN; n += 4)
                *reinterpret_cast<float4 *>(&reg_b[k % 2][sub_col * TN + n]) =
                    *reinterpret_cast<const float4 *>(&tile_b[stage][k][col + sub_col * WSUBN + n]);
    };
    auto multiply_k = [&](int k) {
#pragma unroll
        for (int sub_col = 0; sub_col < WNITER; ++sub_col)
#pragma unroll
            for (int n = 0; n < TN; ++n)
#pragma unroll
                for (int m = 0; m < TM; ++m)
#pragma unroll
                    for (int sub_row = 0; sub_row < WMITER; ++sub_row)
                        thread_results[sub_row * TM + m][sub_col * TN + n] +=
                            reg_a[k % 2][sub_row * TM + m] * reg_b[k % 2][sub_col * TN + n];
    };

    read_tile(K);
    store_tile(0);
    read_tile(K - BK);
    __syncthreads();
    read_fragments(0, 0);
    int k_left = K; // from the tile to be multiplied on
    while (k_left > 0) {
#pragma unroll
        for (int stage = 0; stage < 2; ++stage) {
            if (k_left <= 0)
                break;
            k_left -= BK;
#pragma unroll
            for (int k = 0; k < BK - 1; ++k) {
                read_fragments(stage, k + 1);
                multiply_k(k);
            }
            store_tile(1 - stage);
            read_tile(k_left - BK);
            __syncthreads();
            read_fragments(1 - stage, 0);
            multiply_k(BK - 1);
        }
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
sgemm_pipelined(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C, int M, int N,
                int K)
{
    __shared__ __align__(16) float tile_a[2][BK][BM + PADDING]; // transposed
    __shared__ __align__(16) float tile_b[2][BK][BN];
    if (K % 4 == 0 && N % 4 == 0)
        multiply<true>(A, B, C, M, N, K, tile_a, tile_b);
    else
        multiply<false>(A, B, C, M, N, K, tile_a, tile_b);
}
