// Products of float32 tiles by wgmma: each warp splits its rows of A into parts of bfloat16 in registers, from where
// wgmma takes them, and the warps together split the columns of B on their way to other shared memory.
//
// wgmma gives each warp of a warpgroup 16 of its 64 rows. A lane has the rows and the k of an mma.m16n8k16, see
// mma_products.cuh, and its sums lie as those of as many mma.
#pragma once

#include "../hgemm/addresses.cuh"
#include "../hgemm/barriers.cuh"
#include "../hgemm/wgmma.cuh"
#include "split_fragments.cuh"
#include "split_products.cuh"

// A lane's pairs along k of a tile of A, 16 deep. a: the first of them, in rows of A_ROW floats.
template <int A_ROW> static __device__ __forceinline__ void read_rows(float2 (&pairs)[4], const float *a)
{
#pragma unroll
    for (int r = 0; r < 4; ++r)
        pairs[r] = *reinterpret_cast<const float2 *>(a + r % 2 * 8 * A_ROW + r / 2 * 8);
}

// Their parts. The empty statements have nvcc make them here, before the fence that products need.
static __device__ __forceinline__ void split_rows(unsigned (&parts)[3][4], const float2 (&pairs)[4])
{
#pragma unroll
    for (int r = 0; r < 4; ++r)
        split_pair(pairs[r].x, pairs[r].y, parts[0][r], parts[1][r], parts[2][r]);
#pragma unroll
    for (int n = 0; n < 12; ++n)
        asm volatile("" : "+r"(parts[n / 4][n % 4])::"memory");
}

// The parts of a tile of B, DEPTH x WIDTH in rows of B_ROW floats, or where TRANSPOSED, WIDTH x DEPTH, to shared
// memory at `to`, by WARPS warps: of each part a row for each column, under the swizzle of as many bytes as it has.
// A warp has 8 columns, 8 deep, at a time, and a lane a pair along k of them. Rows of tiles and the swizzle keep the
// lanes in different banks.
template <int WIDTH, int DEPTH, int B_ROW, int WARPS, bool TRANSPOSED>
static __device__ __forceinline__ void split_columns(unsigned char *to, const float *b)
{
    constexpr int ROW = 2 * DEPTH, PART = WIDTH * ROW; // bytes
    constexpr int ACROSS = WIDTH / 8, DEEP = DEPTH / 8;
    constexpr int AT_ONCE = WARPS > ACROSS ? WARPS / ACROSS : 1; // warps beside each other along k
    constexpr int TIMES = (ACROSS + WARPS - 1) / WARPS, STEPS = (DEEP + AT_ONCE - 1) / AT_ONCE;
    const int lane_column = threadIdx.x / 4, lane_k = threadIdx.x % 4 * 2, first = threadIdx.y / ACROSS;
    const int column = threadIdx.y % ACROSS * 8 + lane_column; // of the first time
    const int swizzle = ROW == 128 ? lane_column % 8 : lane_column / 2 % 4;
    b += TRANSPOSED ? column * B_ROW + lane_k : lane_k * B_ROW + column;
    to += column * ROW + lane_k * 2;
    float2 pairs[TIMES][STEPS];
    // work(time, step, eight): of each 8 columns that the warp has, 8 deep.
    const auto for_each = [&](const auto &work) {
#pragma unroll
        for (int n = 0; n < TIMES * STEPS; ++n) {
            const int time = n / STEPS, eight = n % STEPS * AT_ONCE + first;
            if ((time + 1) * WARPS <= ACROSS || first < AT_ONCE && time * WARPS + threadIdx.y < ACROSS * AT_ONCE)
                work(time, n % STEPS, eight);
        }
    };
    for_each([&](int time, int step, int eight) {
        const float *const from = b + (TRANSPOSED ? time * WARPS * 8 * B_ROW + eight * 8
                                                  : eight * 8 * B_ROW + time * WARPS * 8);
        if constexpr (TRANSPOSED)
            pairs[time][step] = *reinterpret_cast<const float2 *>(from);
        else
            pairs[time][step] = make_float2(from[0], from[B_ROW]);
    });
    for_each([&](int time, int step, int eight) {
        unsigned parts[3];
        split_pair(pairs[time][step].x, pairs[time][step].y, parts[0], parts[1], parts[2]);
#pragma unroll
        for (int part = 0; part < 3; ++part)
            *reinterpret_cast<unsigned *>(to + part * PART + time * WARPS * 8 * ROW + (eight ^ swizzle) * 16) =
                parts[part];
    });
    fence_async_proxy();
}

// Waits for all products, and adds what tensor cores have found to the lane's WIDTH / 2 sums, the first of which is
// `sums`. The empty statements keep this together: the compiler does not know that wgmma writes registers later, and
// would move additions behind the start of the next products.
template <int WIDTH> static __device__ __forceinline__ void promote_products(float &sums, float (&partial)[WIDTH / 2])
{
    wait_for_products<0>();
#pragma unroll
    for (int n = 0; n < WIDTH / 2; ++n)
        asm volatile("" : "+f"(partial[n])::"memory");
    promote_fragments<16, WIDTH, 1>(&sums, reinterpret_cast<const float(&)[1][WIDTH / 8][4]>(partial));
#pragma unroll
    for (int n = 0; n < WIDTH / 2; ++n)
        asm volatile("" : "+f"((&sums)[n])::"memory");
}

// Adds the product of 16 rows of A for each warp, DEPTH deep in rows of A_ROW floats, and a tile of B as
// split_columns takes it, to a warp's sums. All WARPS warps of a block come here, and between two times there is a
// barrier. Tensor cores add up from 0, and what they have found is added with rounding. sums: the first of the
// lane's WIDTH / 2, in the order of promote_fragments.
template <int WIDTH, int DEPTH, int A_ROW, int B_ROW, int WARPS, bool TRANSPOSED>
static __device__ __forceinline__ void multiply_split_rows(float &sums, const float *a, const float *b)
{
    constexpr int FIRST[6] = {1, 2, 0, 1, 0, 0}, SECOND[6] = {1, 0, 2, 0, 1, 0}; // parts, the small products first
    constexpr int ROW = 2 * DEPTH, PART = WIDTH * ROW;
    __shared__ __align__(1024) unsigned char columns[3 * PART];
    float2 pairs[DEPTH / 16][4];
    a += threadIdx.x / 4 * A_ROW + threadIdx.x % 4 * 2;
#pragma unroll
    for (int step = 0; step < DEPTH / 16; ++step)
        read_rows<A_ROW>(pairs[step], a + step * 16);
    split_columns<WIDTH, DEPTH, B_ROW, WARPS, TRANSPOSED>(columns, b);
    unsigned parts[DEPTH / 16][3][4];
#pragma unroll
    for (int step = 0; step < DEPTH / 16; ++step)
        split_rows(parts[step], pairs[step]);
    __syncthreads();
    const unsigned long long tile = describe_rows<ROW>(shared_address(columns));
    float partial[WIDTH / 2];
    begin_products();
#pragma unroll
    for (int p = 0; p < 6; ++p)
#pragma unroll
        for (int step = 0; step < DEPTH / 16; ++step)
            wgmma_rows_k16(partial, parts[step][FIRST[p]], further(tile, SECOND[p] * PART + step * 32),
                           step > 0 || p > 0);
    commit_products();
    promote_products<WIDTH>(sums, partial);
}
