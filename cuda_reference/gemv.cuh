// A matrix times a vector: what the gemv of SGEMM and that of HGEMM share.
#pragma once

#include "reduce/last_block.cuh"

// WIDTH neighbours, read at once.
template <typename T, int WIDTH> struct __align__(sizeof(T) * WIDTH) Neighbours {
    T at[WIDTH];
};

// The same for all threads: K and the elements of C, and how the blocks share them. THREADS: of a block.
// of_warps: shared memory for the sums that warps leave, as many as all threads have.
template <typename In, typename Sum, typename Out, int THREADS, int PLACES> struct Gemv {
    static constexpr int WARPS = THREADS / 32;

    const In *matrix, *vector;
    Out *c;
    int elements, k_extent;
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

    // Elements of C that are rows of the matrix times the vector: threads along x share ROWS of them.
    template <int WIDTH, int ROWS, int AHEAD> __device__ void multiply_rows()
    {
        const int lanes = blockDim.x, tx = threadIdx.x, ty = threadIdx.y;
        const int first = (blockIdx.x * blockDim.y + ty) * ROWS;
        const int step = lanes * WIDTH * AHEAD, iterations = count_iterations(step);
        Sum sums[ROWS] = {};
        for (int iteration = 0; iteration < iterations; ++iteration) {
            In xs[ROWS][AHEAD][WIDTH], vs[AHEAD][WIDTH];
            const int start = (blockIdx.y * iterations + iteration) * step + tx * WIDTH;
#pragma unroll
            for (int u = 0; u < AHEAD; ++u)
                read<WIDTH>(vs[u], vector, start + u * lanes * WIDTH, start + u * lanes * WIDTH < k_extent);
#pragma unroll
            for (int r = 0; r < ROWS; ++r)
#pragma unroll
                for (int u = 0; u < AHEAD; ++u) {
                    const int k = start + u * lanes * WIDTH;
                    read<WIDTH>(xs[r][u], matrix, (long long)(first + r) * k_extent + k,
                                first + r < elements && k < k_extent);
                }
#pragma unroll
            for (int r = 0; r < ROWS; ++r)
#pragma unroll
                for (int u = 0; u < AHEAD; ++u)
#pragma unroll
                    for (int w = 0; w < WIDTH; ++w)
                        sums[r] += Sum(xs[r][u][w]) * Sum(vs[u][w]);
        }
        const int sharing = lanes < 32 ? lanes : 32; // lanes of a warp that have parts of one sum
#pragma unroll
        for (int r = 0; r < ROWS; ++r)
            for (int s = sharing / 2; s > 0; s /= 2)
                sums[r] += from_lane(sums[r], s);
        const int in_block = blockDim.y * ROWS;
        if (thread() % sharing == 0)
#pragma unroll
            for (int r = 0; r < ROWS; ++r)
                of_warps[tx / 32 * in_block + ty * ROWS + r] = sums[r];
        finish(in_block, lanes < 32 ? 1 : lanes / 32);
    }

    // Elements of C that are columns of the matrix times the vector: a thread has WIDTH of them.
    template <int WIDTH, int AHEAD> __device__ void multiply_columns()
    {
        const int lanes = blockDim.x, tx = threadIdx.x, ty = threadIdx.y;
        const int column = (blockIdx.x * lanes + tx) * WIDTH;
        const int step = blockDim.y * AHEAD, iterations = count_iterations(step);
        Sum sums[WIDTH] = {};
        for (int iteration = 0; iteration < iterations; ++iteration) {
            In xs[AHEAD][WIDTH], vs[AHEAD];
            const int start = (blockIdx.y * iterations + iteration) * step + ty;
#pragma unroll
            for (int u = 0; u < AHEAD; ++u)
                read<1>(vs + u, vector, start + u * blockDim.y, start + u * blockDim.y < k_extent);
#pragma unroll
            for (int u = 0; u < AHEAD; ++u) {
                const int k = start + u * blockDim.y;
                read<WIDTH>(xs[u], matrix, (long long)k * elements + column,
                            column < elements && k < k_extent);
            }
#pragma unroll
            for (int u = 0; u < AHEAD; ++u)
#pragma unroll
                for (int w = 0; w < WIDTH; ++w)
                    sums[w] += Sum(xs[u][w]) * Sum(vs[u]);
        }
        for (int s = 16; s >= lanes; s /= 2)
#pragma unroll
            for (int w = 0; w < WIDTH; ++w)
                sums[w] += from_lane(sums[w], s);
        const int in_block = lanes * WIDTH;
        if (thread() % 32 < lanes)
#pragma unroll
            for (int w = 0; w < WIDTH; ++w)
                of_warps[thread() / 32 * in_block + tx * WIDTH + w] = sums[w];
        finish(in_block, WARPS);
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

    // Adds up the sums that the warps have left for `in_block` elements and, in the last block along y, those
    // of the parts of K. Both are added in their order.
    __device__ void finish(int in_block, int groups)
    {
        const int t = thread(), parts = gridDim.y;
        __syncthreads();
        for (int e = t; e < in_block; e += THREADS) {
            Sum total = of_warps[e];
            for (int g = 1; g < groups; ++g)
                total += of_warps[g * in_block + e];
            if (parts > 1)
                leave_sum<float, PLACES, false>(place(blockIdx.y, in_block, e), float(total));
            else if (int(blockIdx.x) * in_block + e < elements)
                c[blockIdx.x * in_block + e] = Out(total);
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
        if (t < in_block && int(blockIdx.x) * in_block + t < elements) {
            total = of_warps[t];
            for (int g = 1; g < WARPS; ++g)
                total += of_warps[g * in_block + t];
            c[blockIdx.x * in_block + t] = Out(total);
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
template <int WIDTH, int ROWS, int UNDER_WAY, int FULL = WIDTH, typename Product>
static __device__ void multiply_as_wide(Product &product, bool by_rows)
{
    const int extent = by_rows ? product.k_extent : product.elements;
    constexpr int MORE = FULL / WIDTH;
    if constexpr (WIDTH > 1)
        if (extent % WIDTH)
            return multiply_as_wide<WIDTH / 2, ROWS, UNDER_WAY, FULL>(product, by_rows);
    if (by_rows)
        product.template multiply_rows<WIDTH, ROWS, least(most(1, UNDER_WAY / ROWS) * MORE, most(8, UNDER_WAY))>();
    else
        product.template multiply_columns<WIDTH, least(UNDER_WAY * MORE, most(8, UNDER_WAY))>();
}
