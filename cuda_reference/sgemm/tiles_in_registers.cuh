// Copies of tiles to shared memory in two steps, with registers between.
#pragma once

// The first `inside` of COUNT neighbouring elements, zeros for the rest. ALIGNED promises that a float4 can take
// them; then all are inside or none.
template <int COUNT, bool ALIGNED>
__device__ __forceinline__ void load_inside(float (&value)[COUNT], const float *source, int inside)
{
    if constexpr (ALIGNED)
        *reinterpret_cast<float4 *>(value) =
            inside > 0 ? *reinterpret_cast<const float4 *>(source) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    else
#pragma unroll
        for (int e = 0; e < COUNT; ++e)
            value[e] = e < inside ? source[e] : 0.0f;
}

template <int COUNT> __device__ __forceinline__ void store_floats(float *to, const float (&value)[COUNT])
{
    if constexpr (COUNT == 4)
        *reinterpret_cast<float4 *>(to) = *reinterpret_cast<const float4 *>(value);
    else
        *to = value[0];
}

// A tile of A, HEIGHT x DEPTH, and one of B, DEPTH x WIDTH, on their way through registers: a thread reads COUNT
// neighbours at a time, neighbouring threads neighbouring ones, and stores them later. ALIGNED promises rows of A
// and B that float4s can take, and COUNT is 4; else it is 1, where threads share rows evenly so.
// row, col: where the tile of C starts; first: the k of the first tiles. ENDS_WITH_C: the last tiles of C start
// early enough, see tile_starts.cuh, so that nothing lies beyond a matrix that is no smaller than a tile.
// Then a thread tests no row, and its rows are at fixed distances, so that one address is enough.
template <int THREADS, int HEIGHT, int WIDTH, int DEPTH, bool ALIGNED, bool ENDS_WITH_C = false>
struct TilesInRegisters {
    static constexpr int ROWS_OF_B = THREADS / WIDTH; // copied at once, float by float
    static constexpr bool EVEN =
        THREADS % DEPTH == 0 && (WIDTH % THREADS == 0 || (THREADS % WIDTH == 0 && (ROWS_OF_B > DEPTH ||
                                                                                  DEPTH % ROWS_OF_B == 0)));
    static constexpr int COUNT = ALIGNED || !EVEN ? 4 : 1;
    static constexpr int A_LANES = DEPTH / COUNT, B_LANES = WIDTH / COUNT; // threads for a row
    static constexpr int A_STEP = THREADS / A_LANES;                       // rows that all threads copy at once
    static constexpr int B_STEP = THREADS >= B_LANES ? THREADS / B_LANES : 1;
    static constexpr int B_TURNS = THREADS >= B_LANES ? 1 : B_LANES / THREADS; // for one row of B
    static constexpr bool WHOLE_ROWS = THREADS % B_LANES == 0 || B_LANES % THREADS == 0; // of B, by all threads
    static constexpr bool IDLE = WHOLE_ROWS && B_STEP > DEPTH; // some threads copy nothing of B
    static constexpr int A_COPIES = (HEIGHT + A_STEP - 1) / A_STEP; // the last may go beyond the tile
    static constexpr int B_COPIES = IDLE ? 1 : WHOLE_ROWS ? DEPTH / B_STEP * B_TURNS : DEPTH * B_LANES / THREADS;
    static_assert(THREADS % A_LANES == 0, "threads must start whole rows of A");
    static_assert(IDLE || (WHOLE_ROWS ? DEPTH % B_STEP == 0 : DEPTH * B_LANES % THREADS == 0),
                  "threads must share the copies of B evenly");

    const int a_row = threadIdx.x / A_LANES, a_k = threadIdx.x % A_LANES * COUNT;
    const int b_k = WHOLE_ROWS ? threadIdx.x / B_LANES : 0, b_col = WHOLE_ROWS ? threadIdx.x % B_LANES * COUNT : 0;
    const int rows_left, cols_left; // from the thread's first on
    int from_a, from_b;
    __align__(4 * COUNT) float copied_a[A_COPIES][COUNT], copied_b[B_COPIES][COUNT];

    __device__ __forceinline__ TilesInRegisters(int row, int col, int first, int M, int N, int K)
        : rows_left(ENDS_WITH_C && M >= HEIGHT ? (HEIGHT % A_STEP ? HEIGHT - a_row : HEIGHT) : M - (row + a_row)),
          cols_left(ENDS_WITH_C && N >= WIDTH ? WIDTH : N - (col + b_col)),
          from_a((row + a_row) * K + first + a_k), from_b((first + b_k) * N + col + b_col)
    {
    }

    // Of copy i of B: how far from the thread's first.
    static __device__ int b_row(int i)
    {
        return WHOLE_ROWS ? i / B_TURNS * B_STEP : (i * THREADS + threadIdx.x) / B_LANES;
    }
    static __device__ int b_shift(int i)
    {
        return (WHOLE_ROWS ? i % B_TURNS * THREADS : (i * THREADS + threadIdx.x) % B_LANES) * COUNT;
    }

    // The next tiles, from where `k_left` of K is left.
    __device__ __forceinline__ void read(const float *__restrict__ A, const float *__restrict__ B, int N,
                                         int K, int k_left)
    {
#pragma unroll
        for (int i = 0; i < A_COPIES; ++i)
            load_inside<COUNT, ALIGNED>(copied_a[i], A + from_a + i * A_STEP * K,
                                        i * A_STEP < rows_left ? k_left - a_k : 0);
#pragma unroll
        for (int i = 0; i < B_COPIES; ++i)
            load_inside<COUNT, ALIGNED>(
                copied_b[i], B + from_b + b_row(i) * N + b_shift(i),
                b_k + b_row(i) < (IDLE ? min(k_left, DEPTH) : k_left) ? cols_left - b_shift(i) : 0);
        from_a += DEPTH;
        from_b += DEPTH * N;
    }

    // To shared memory, A transposed, where its rows are PADDED long.
    template <int PADDED>
    __device__ __forceinline__ void store(float (&tile_a)[DEPTH][PADDED], float (&tile_b)[DEPTH][WIDTH]) const
    {
#pragma unroll
        for (int i = 0; i < A_COPIES; ++i)
            if ((i + 1) * A_STEP <= HEIGHT || a_row + i * A_STEP < HEIGHT)
#pragma unroll
                for (int e = 0; e < COUNT; ++e)
                    tile_a[a_k + e][a_row + i * A_STEP] = copied_a[i][e];
#pragma unroll
        for (int i = 0; i < B_COPIES; ++i)
            if (!IDLE || b_k < DEPTH)
                store_floats(&tile_b[b_k + b_row(i)][b_col + b_shift(i)], copied_b[i]);
    }
};
