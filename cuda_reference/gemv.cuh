// A matrix times a few vectors: what the gemv of SGEMM and that of HGEMM share.
#pragma once

#include "reduce/last_block.cuh"

static __host__ __device__ constexpr int least(int a, int b)
{
    return a < b ? a : b;
}

static __host__ __device__ constexpr int most(int a, int b)
{
    return a > b ? a : b;
}

// The largest power of two, at most MOST, that divides an extent.
template <int MOST> static __host__ __device__ constexpr int divisor(int extent)
{
    int found = MOST;
    while (extent % found)
        found /= 2;
    return found;
}

// Loads under way of each row of a thread that has `rows` of them, or of its columns, if rows is 0. under_way:
// loads of 16 bytes, each as `narrow` loads of this width.
static __host__ __device__ constexpr int loads_ahead(int under_way, int vectors, int rows, int narrow)
{
    return least(most(1, under_way / (rows ? rows * ((vectors + 1) / 2) : vectors)) * narrow, most(8, under_way));
}

// WIDTH neighbours, read at once.
template <typename T, int WIDTH> struct __align__(sizeof(T) * WIDTH) Neighbours {
    T at[WIDTH];
};

// The same for all threads: K and the rows or columns of the matrix ("lines"), and how the blocks share them.
// vectors: columns of C, or rows. THREADS: of a block. of_columns: the vectors are columns of C, else rows.
// interleaved: they are columns of a row-major B. of_warps: shared memory for the sums that warps leave.
// COUNT of functions: the most vectors that registers have room for.
template <typename In, typename Sum, typename Out, int THREADS, int PLACES> struct Gemv {
    static constexpr int WARPS = THREADS / 32;

    const In *matrix, *vector;
    Out *c;
    int lines, vectors, k_extent;
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

    // WIDTH neighbours along K of all vectors, from k on; zeros beyond `end`.
    template <int WIDTH, int COUNT> __device__ void read_vectors(In *to, int k, int end) const
    {
        constexpr int AT_ONCE = divisor<16 / int(sizeof(In))>(WIDTH * COUNT);
        if (interleaved && vectors == COUNT) {
#pragma unroll
            for (int n = 0; n < WIDTH * COUNT; n += AT_ONCE)
                read<AT_ONCE>(to + n, vector, k * COUNT + n, k < end);
        } else {
#pragma unroll
            for (int n = 0; n < COUNT; ++n) {
                In of_vector[WIDTH];
                if (!interleaved)
                    read<WIDTH>(of_vector, vector, n * k_extent + k, n < vectors && k < end);
#pragma unroll
                for (int w = 0; w < WIDTH; ++w) {
                    if (interleaved)
                        read<1>(of_vector + w, vector, (k + w) * vectors + n, n < vectors && k < end);
                    to[w * COUNT + n] = of_vector[w];
                }
            }
        }
    }

    // Elements of C that are rows of the matrix times vectors: threads along x share ROWS of them.
    template <int WIDTH, int COUNT, int ROWS, int AHEAD> __device__ void multiply_rows(int of_part)
    {
        const int lanes = blockDim.x, tx = threadIdx.x, ty = threadIdx.y;
        const int first = (blockIdx.x * blockDim.y + ty) * ROWS;
        const int begin = blockIdx.y * of_part, end = least(begin + of_part, k_extent);
        Sum sums[ROWS * COUNT] = {};
        for (int start = begin + tx * WIDTH; start - tx * WIDTH < end; start += lanes * WIDTH * AHEAD) {
            In xs[ROWS][AHEAD][WIDTH], vs[AHEAD][COUNT * WIDTH];
#pragma unroll
            for (int u = 0; u < AHEAD; ++u)
                read_vectors<WIDTH, COUNT>(vs[u], start + u * lanes * WIDTH, end);
#pragma unroll
            for (int r = 0; r < ROWS; ++r)
#pragma unroll
                for (int u = 0; u < AHEAD; ++u) {
                    const int k = start + u * lanes * WIDTH;
                    read<WIDTH>(xs[r][u], matrix, (long long)(first + r) * k_extent + k,
                                first + r < lines && k < end);
                }
#pragma unroll
            for (int r = 0; r < ROWS; ++r)
#pragma unroll
                for (int n = 0; n < COUNT; ++n)
#pragma unroll
                    for (int u = 0; u < AHEAD; ++u)
#pragma unroll
                        for (int w = 0; w < WIDTH; ++w)
                            sums[r * COUNT + n] += Sum(xs[r][u][w]) * Sum(vs[u][w * COUNT + n]);
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
                if (i % COUNT < vectors)
                    of_warps[(tx / 32 * of_block + ty * ROWS + i / COUNT) * vectors + i % COUNT] = sums[i];
        finish<true>(of_block, lanes < 32 ? 1 : lanes / 32);
    }

    // Elements of C that are columns of the matrix times vectors: a thread has WIDTH of the columns.
    template <int WIDTH, int COUNT, int AHEAD> __device__ void multiply_columns(int of_part)
    {
        const int lanes = blockDim.x, tx = threadIdx.x, ty = threadIdx.y;
        const int column = (blockIdx.x * lanes + tx) * WIDTH;
        const int begin = blockIdx.y * of_part, end = least(begin + of_part, k_extent);
        Sum sums[COUNT][WIDTH] = {};
        for (int start = begin + ty; start - ty < end; start += blockDim.y * AHEAD) {
            In xs[AHEAD][WIDTH], vs[AHEAD][COUNT];
#pragma unroll
            for (int u = 0; u < AHEAD; ++u) {
                const int k = start + u * blockDim.y;
#pragma unroll
                for (int n = 0; n < COUNT; ++n)
                    read<1>(vs[u] + n, vector, n * k_extent + k, n < vectors && k < end);
            }
#pragma unroll
            for (int u = 0; u < AHEAD; ++u) {
                const int k = start + u * blockDim.y;
                read<WIDTH>(xs[u], matrix, (long long)k * lines + column, column < lines && k < end);
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
                    if (n < vectors)
                        of_warps[(thread() / 32 * vectors + n) * of_block + tx * WIDTH + w] = sums[n][w];
        finish<false>(of_block, WARPS);
    }

    // The sum that the lane so far above has.
    __device__ static Sum from_lane(Sum sum, int distance)
    {
        return Sum(__shfl_down_sync(0xffffffffu, float(sum), distance));
    }

    __device__ static int thread() { return threadIdx.y * blockDim.x + threadIdx.x; }

    // The extent of a part of K: as few steps as all parts need.
    __device__ int extent_of_part(int step) const
    {
        return (k_extent + step * int(gridDim.y) - 1) / (step * int(gridDim.y)) * step;
    }

    // Stores a sum of a block, whose lines are `of_block`. ROWS: sums of a line are neighbours, else those of a
    // vector.
    template <bool ROWS> __device__ void store(int of_block, int sum, Sum total)
    {
        const int line = blockIdx.x * of_block + (ROWS ? sum / vectors : sum % of_block);
        const int n = ROWS ? sum % vectors : sum / of_block;
        if (line < lines)
            c[of_columns ? line * vectors + n : n * lines + line] = Out(total);
    }

    // Adds up the sums that the warps have left for `of_block` lines and, in the last block along y, those of
    // the parts of K. Both are added in their order.
    template <bool ROWS> __device__ void finish(int of_block, int groups)
    {
        const int t = thread(), parts = gridDim.y, in_block = of_block * vectors;
        __syncthreads();
        for (int e = t; e < in_block; e += THREADS) {
            Sum total = of_warps[e];
            for (int g = 1; g < groups; ++g)
                total += of_warps[g * in_block + e];
            if (parts > 1)
                leave_sum<float, PLACES, false>(place(blockIdx.y, in_block, e), float(total));
            else
                store<ROWS>(of_block, e, total);
        }
        if (parts == 1 || !is_last_block<false>(parts))
            return;
        Sum total = Sum(0.0f);
        for (int part = t / in_block; part < parts; part += THREADS / in_block)
            total += Sum(left_sum<float, PLACES, false>(place(part, in_block, t % in_block)));
        __syncthreads(); // before lanes meet, and shared memory is used again
        for (int s = 16; s >= in_block; s /= 2)
            total += from_lane(total, s);
        const int together = most(in_block, 32); // threads that have all sums, each one of them or a part of one
        if (t % together < in_block)
            of_warps[t / together * in_block + t % together] = total;
        __syncthreads();
        if (t < in_block) {
            total = of_warps[t];
            for (int g = 1; g < THREADS / together; ++g)
                total += of_warps[g * in_block + t];
            store<ROWS>(of_block, t, total);
        }
    }

    // Of the sum of an element that a part of K leaves.
    __device__ static int place(int part, int in_block, int element)
    {
        return (part * gridDim.x + blockIdx.x) * in_block + element;
    }
};

// Multiplies with the widest loads that the rows of the matrix take, at most WIDTH elements. ROWS: of a
// thread. UNDER_WAY: its loads. COUNT: the most vectors. Their number decides how parts share K.
template <int WIDTH, int COUNT, int ROWS, int UNDER_WAY, int FULL = WIDTH, typename Product>
static __device__ void multiply_as_wide(Product &product, bool by_rows)
{
    constexpr int NARROW = FULL / WIDTH;
    if constexpr (WIDTH > 1)
        if ((by_rows ? product.k_extent : product.lines) % WIDTH)
            return multiply_as_wide<WIDTH / 2, COUNT, ROWS, UNDER_WAY, FULL>(product, by_rows);
    const int step = (by_rows ? blockDim.x * WIDTH : blockDim.y) *
                     loads_ahead(UNDER_WAY, product.vectors, by_rows ? ROWS : 0, NARROW);
    const int of_part = product.extent_of_part(step);
    if (by_rows)
        product.template multiply_rows<WIDTH, COUNT, ROWS, loads_ahead(UNDER_WAY, COUNT, ROWS, NARROW)>(of_part);
    else
        product.template multiply_columns<WIDTH, COUNT, loads_ahead(UNDER_WAY, COUNT, 0, NARROW)>(of_part);
}
