// Copies of tiles to shared memory in two steps, with registers between.
#pragma once

// Four neighbouring elements of a row of `cols`, the first `inside` of them, zeros for the rest. ALIGNED
// promises cols % 4 == 0; then all four are inside or none.
template <bool ALIGNED> __device__ __forceinline__ float4 load4(const float *source, int inside, int cols)
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

// A tile of A, HEIGHT x DEPTH, and one of B, DEPTH x WIDTH, on their way through registers: a thread reads
// four elements each of rows A_STEP apart in A and B_STEP apart in B, and stores them later. ALIGNED promises
// rows of A and B that float4s can take.
template <int THREADS, int HEIGHT, int WIDTH, int DEPTH, bool ALIGNED> struct TilesInRegisters {
    static constexpr int A_STEP = THREADS / (DEPTH / 4), B_STEP = THREADS / (WIDTH / 4);
    static constexpr bool IDLE = B_STEP > DEPTH; // some threads copy nothing of B
    static constexpr int A_COPIES = HEIGHT / A_STEP, B_COPIES = IDLE ? 1 : DEPTH / B_STEP;
    static_assert(THREADS % (DEPTH / 4) == 0 && THREADS % (WIDTH / 4) == 0, "threads must start whole rows");
    static_assert(HEIGHT % A_STEP == 0 && (IDLE || DEPTH % B_STEP == 0),
                  "threads must share the copies evenly");

    const int a_row = threadIdx.x / (DEPTH / 4), a_k = threadIdx.x % (DEPTH / 4) * 4;
    const int b_k = threadIdx.x / (WIDTH / 4), b_col = threadIdx.x % (WIDTH / 4) * 4;
    const int rows_left, cols_left;
    int from_a, from_b;
    float4 copied_a[A_COPIES], copied_b[B_COPIES];

    __device__ __forceinline__ TilesInRegisters(int block_row, int block_col, int M, int N, int K)
        : rows_left(M - (block_row + a_row)), cols_left(N - (block_col + b_col)),
          from_a((block_row + a_row) * K + a_k), from_b(b_k * N + block_col + b_col)
    {
    }

    // The next tiles, from where `k_left` of K is left.
    __device__ __forceinline__ void read(const float *__restrict__ A, const float *__restrict__ B, int N,
                                         int K, int k_left)
    {
#pragma unroll
        for (int i = 0; i < A_COPIES; ++i)
            copied_a[i] = load4<ALIGNED>(A + from_a + i * A_STEP * K,
                                         i * A_STEP < rows_left ? k_left - a_k : 0, K);
#pragma unroll
        for (int i = 0; i < B_COPIES; ++i)
            copied_b[i] = load4<ALIGNED>(B + from_b + i * B_STEP * N,
                                         b_k + i * B_STEP < (IDLE ? min(k_left, DEPTH) : k_left) ? cols_left : 0, N);
        from_a += DEPTH;
        from_b += DEPTH * N;
    }

    // To shared memory, A transposed, where its rows are PADDED long.
    template <int PADDED>
    __device__ __forceinline__ void store(float (&tile_a)[DEPTH][PADDED], float (&tile_b)[DEPTH][WIDTH]) const
    {
#pragma unroll
        for (int i = 0; i < A_COPIES; ++i) {
            tile_a[a_k][a_row + i * A_STEP] = copied_a[i].x;
            tile_a[a_k + 1][a_row + i * A_STEP] = copied_a[i].y;
            tile_a[a_k + 2][a_row + i * A_STEP] = copied_a[i].z;
            tile_a[a_k + 3][a_row + i * A_STEP] = copied_a[i].w;
        }
#pragma unroll
        for (int i = 0; i < B_COPIES; ++i)
            if (!IDLE || b_k < DEPTH)
                *reinterpret_cast<float4 *>(&tile_b[b_k + i * B_STEP][b_col]) = copied_b[i];
    }
};
