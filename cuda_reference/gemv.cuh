// A matrix times a few vectors: what the gemv of SGEMM and that of HGEMM share.
#pragma once

#include "reduce/last_block.cuh"

// WIDTH neighbours, read at once.
template <typename T, int WIDTH> struct __align__(sizeof(T) * WIDTH) Neighbours {
    T at[WIDTH];
};

// The same for all threads: K and the rows or columns of the matrix ("lines"), and how the blocks share them.
// THREADS: of a block. of_columns: the vectors are columns of C, else rows. interleaved: they are columns of a
// row-major B. of_warps: shared memory for the sums that warps leave, as many as all threads have.
template <typename In, typename Sum, typename Out, int THREADS, int PLACES> struct Gemv {
    static constexpr int WARPS = THREADS / 32;

    const In *matrix, *vector;
    Out *c;
    int lines, k_extent;
    bool of_columns, interleaved;
    Sum *of_warps;

    // WIDTH neighbours from an offset on, or zeros.
    template <int WIDTH> __device__ static void read(In *to, const In *from, long long offset, bool inside)
    {
        using Piece = Neighbours<In, WIDTH>;
        Piece piece;
#pragma unroll
        for (int w = 0; w < WIDTH; ++w)
            piece.at[w] = In(0.0f);
        if (inside)
            piece = *reinterpret_cast<const Piece *>(from + offset);
#pragma unroll
        for (int w = 0; w < WIDTH; ++w)
            to[w] = piece.at[w];
    }

    // Elements of C that are rows of the matrix times COUNT vectors: threads along x share ROWS of them.
    template <int WIDTH, int COUNT, int ROWS, int AHEAD> __device__ void multiply_rows()
    {
        const int lanes = blockDim.x, tx = threadIdx.x, ty = threadIdx.y;
        const int first = (blockIdx.x * blockDim.y + ty) * ROWS;
        const int step = lanes * WIDTH * AHEAD, iterations = count_iterations(step);
        Sum sums[ROWS * COUNT] = {};
        for (int iteration = 0; iteration < iterations; ++iteration) {
            In xs[ROWS][AHEAD][WIDTH], vs[AHEAD][COUNT * WIDTH];
            const int start = (blockIdx.y * iterations + iteration) * step + tx * WIDTH;
#pragma unroll
            for (int u = 0; u < AHEAD; ++u) {
                const int k = start + u * lanes * WIDTH;
#pragma unroll
                for (int n = 0; n < COUNT; ++n)
                    read<WIDTH>(vs[u] + n * WIDTH, vector,
                                interleaved ? k * COUNT + n * WIDTH : n * k_extent + k, k < k_extent);
            }
#pragma unroll
            for (int r = 0; r < ROWS; ++r)
#pragma unroll
                for (int u = 0; u < AHEAD; ++u) {
                    const int k = start + u * lanes * WIDTH;
                    read<WIDTH>(xs[r][u], matrix, (long long)(first + r) * k_extent + k,
                                first + r < lines && k < k_extent);
                }
#pragma unroll
            for (int r = 0; r < ROWS; ++r)
#pragma unroll
                for (int n = 0; n < COUNT; ++n)
#pragma unroll
                    for (int u = 0; u < AHEAD; ++u)
#pragma unroll
                        for (int w = 0; w < WIDTH; ++w)
                            sums[r * COUNT + n] +=
                                Sum(xs[r][u][w]) * Sum(vs[u][interleaved ? w * COUNT + n : n * WIDTH + w]);
        }
        const int sharing = lanes < 32 ? lanes : 32; // lanes of a warp that have parts of one sum
#pragma unroll
        for (int i = 0; i < ROWS * COUNT; ++i)
            for (int s = sharing / 2; s > 0; s /= 2)
                sums[i] += from_lane(sums[i], s);
        const int of_block = blockDim.y * ROWS;
        if (thread() % sharing == 0)
#pragma unroll
            for (int i = 0; i < ROWS * COUNT; ++i)
                of_warps[tx / 32 * of_block * COUNT + ty * ROWS * COUNT + i] = sums[i];
        finish<COUNT, true>(of_block, lanes < 32 ? 1 : lanes / 32);
    }

    // Elements of C that are columns of the matrix times COUNT vectors: a thread has WIDTH of the columns.
    template <int WIDTH, int COUNT, int AHEAD> __device__ void multiply_columns()
    {
        const int lanes = blockDim.x, tx = threadIdx.x, ty = threadIdx.y;
        const int column = (blockIdx.x * lanes + tx) * WIDTH;
        const int step = blockDim.y * AHEAD, iterations = count_iterations(step);
        Sum sums[COUNT][WIDTH] = {};
        for (int iteration = 0; iteration < iterations; ++iteration) {
            In xs[AHEAD][WIDTH], vs[AHEAD][COUNT];
            const int start = (blockIdx.y * iterations + iteration) * step + ty;
#pragma unroll
            for (int u = 0; u < AHEAD; ++u) {
                const int k = start + u * blockDim.y;
#pragma unroll
                for (int n = 0; n < COUNT; ++n)
                    read<1>(vs[u] + n, vector, n * k_extent + k, k < k_extent);
            }
#pragma unroll
            for (int u = 0; u < AHEAD; ++u) {
                const int k = start + u * blockDim.y;
                read<WIDTH>(xs[u], matrix, (long long)k * lines + column, column < lines && k < k_extent);
            }
#pragma unroll
            for (int n = 0; n < COUNT; ++n)
#pragma unroll
                for (int u = 0; u < AHEAD; ++u)
#pragma unroll
                    for (int w = 0; w < WIDTH; ++w)
                        sums[n][w] += Sum(xs[u][w]) * Sum(vs[u][n]);
        }
        for (int s = 16; s >= lanes; s /= 2)
#pragma unroll
            for (int n = 0; n < COUNT; ++n)
#pragma unroll
                for (int w = 0; w < WIDTH; ++w)
                    sums[n][w] += from_lane(sums[n][w], s);
        const int of_block = lanes * WIDTH;
        if (thread() % 32 < lanes)
#pragma unroll
            for (int n = 0; n < COUNT; ++n)
#pragma unroll
                for (int w = 0; w < WIDTH; ++w)
                    of_warps[(thread() / 32 * COUNT + n) * of_block + tx * WIDTH + w] = sums[n][w];
        finish<COUNT, false>(of_block, WARPS);
    }

    // The sum that the lane so far above has.
    __device__ static Sum from_lane(Sum sum, int distance)
    {
        return Sum(__shfl_down_sync(0xffffffffu, float(sum), distance));
    }

    __device__ static int thread() { return threadIdx.y * blockDim.x + threadIdx.x; }

    __device__ int count_iterations(int step) const
    {
        return (k_extent + step * int(gridDim.y) - 1) / (step * int(gridDim.y));
    }

    // Stores a sum of a block, whose lines are `of_block`. ROWS: sums of a line are neighbours, else those of a
    // vector.
    template <int COUNT, bool ROWS> __device__ void store(int of_block, int sum, Sum total)
    {
        const int line = blockIdx.x * of_block + (ROWS ? sum / COUNT : sum % of_block);
        const int n = ROWS ? sum % COUNT : sum / of_block;
        if (line < lines)
            c[of_columns ? line * COUNT + n : n * lines + line] = Out(total);
    }

    // Adds up the sums that the warps have left for `of_block` lines and, in the last block along y, those of
    // the parts of K. Both are added in their order.
    template <int COUNT, bool ROWS> __device__ void finish(int of_block, int groups)
    {
        const int t = thread(), parts = gridDim.y, in_block = of_block * COUNT;
        __syncthreads();
        for (int e = t; e < in_block; e += THREADS) {
            Sum total = of_warps[e];
            for (int g = 1; g < groups; ++g)
                total += of_warps[g * in_block + e];
            if (parts > 1)
                leave_sum<float, PLACES, false>(place(blockIdx.y, in_block, e), float(total));
            else
                store<COUNT, ROWS>(of_block, e, total);
        }
        if (parts == 1 || !is_last_block<false>(parts))
            return;
        Sum total = Sum(0.0f);
        for (int part = t / in_block; part < parts; part += THREADS / in_block)
            total += Sum(left_sum<float, PLACES, false>(place(part, in_block, t % in_block)));
        __syncthreads(); // before lanes meet, and shared memory is used again
        for (int s = 16; s >= in_block; s /= 2)
            total += from_lane(total, s);
        if (t % 32 < in_block)
            of_warps[t / 32 * in_block + t % 32] = total;
        __syncthreads();
        if (t < in_block) {
            total = of_warps[t];
            for (int g = 1; g < WARPS; ++g)
                total += of_warps[g * in_block + t];
            store<COUNT, ROWS>(of_block, t, total);
        }
    }

    // Of the sum of an element that a part of K leaves.
    __device__ static int place(int part, int in_block, int element)
    {
        return (part * gridDim.x + blockIdx.x) * in_block + element;
    }
};

static __host__ __device__ constexpr int least(int a, int b)
{
    return a < b ? a : b;
}

static __host__ __device__ constexpr int most(int a, int b)
{
    return a > b ? a : b;
}

// Multiplies with the widest loads that the rows of the matrix take, at most WIDTH elements. ROWS: of a
// thread. UNDER_WAY: its loads.
template <int WIDTH, int COUNT, int ROWS, int UNDER_WAY, int FULL, typename Product>
static __device__ void multiply_as_wide(Product &product, bool by_rows)
{
    const int extent = by_rows ? product.k_extent : product.lines;
    constexpr int MORE = FULL / WIDTH;
    constexpr int OF_ROW = most(1, UNDER_WAY / (ROWS * ((COUNT + 1) / 2))), OF_COLUMNS = most(1, UNDER_WAY / COUNT);
    if constexpr (WIDTH > 1)
        if (extent % WIDTH)
            return multiply_as_wide<WIDTH / 2, COUNT, ROWS, UNDER_WAY, FULL>(product, by_rows);
    if (by_rows)
        product.template multiply_rows<WIDTH, COUNT, ROWS, least(OF_ROW * MORE, most(8, UNDER_WAY))>();
    else
        product.template multiply_columns<WIDTH, COUNT, least(OF_COLUMNS * MORE, most(8, UNDER_WAY))>();
}

// The same for `vectors`, at most COUNT.
template <int WIDTH, int COUNT, int ROWS, int UNDER_WAY, typename Product>
static __device__ void multiply_vectors(Product &product, bool by_rows, int vectors)
{
    if constexpr (COUNT > 1)
        if (vectors < COUNT)
            return multiply_vectors<WIDTH, COUNT - 1, ROWS, UNDER_WAY>(product, by_rows, vectors);
    multiply_as_wide<WIDTH, COUNT, ROWS, UNDER_WAY, WIDTH>(product, by_rows);
}
