// A warpgroup's tile of C in registers: sums by wgmma, and how they leave. A block is 128 threads wide, one
// warpgroup per threadIdx.y.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <type_traits>

#include "barriers.cuh"
#include "wgmma.cuh"

// Two neighbours in a row of C, as they are stored.
static __device__ inline void pack(half2 &pair, float first, float second)
{
    pair = __floats2half2_rn(first, second);
}

static __device__ inline void pack(__nv_bfloat162 &pair, float first, float second)
{
    pair = __floats2bfloat162_rn(first, second);
}

static __device__ inline void pack(float2 &pair, float first, float second)
{
    pair = make_float2(first, second);
}

template <typename Result>
using PairOf = std::conditional_t<std::is_same_v<Result, half>, half2,
                                  std::conditional_t<std::is_same_v<Result, float>, float2, __nv_bfloat162>>;

// HEIGHT x WIDTH sums of type Sum. Element: of A and B. B_ALONG_K, A_ALONG_K: B, or A, has a row in shared
// memory for each k.
template <int HEIGHT, int WIDTH, typename Sum, typename Element, bool B_ALONG_K, bool A_ALONG_K = false>
struct WarpgroupTile {
    static constexpr bool HALVES = std::is_same_v<Sum, half>; // two to a register
    static constexpr int PARTS = HEIGHT / 64;                 // one wgmma has 64 rows
    static constexpr int STEP_A = A_ALONG_K ? 16 * ROW_BYTES : 32; // bytes that are 16 deep
    static constexpr int STEP_B = B_ALONG_K ? 16 * ROW_BYTES : 32;
    static_assert(HEIGHT % 64 == 0, "wgmma has 64 rows");
    std::conditional_t<HALVES, unsigned, float> sums[PARTS][WIDTH / (HALVES ? 4 : 2)];

    // Starts to multiply the K tiles of A and B at these addresses. add: to the sums there are; else they
    // begin.
    __device__ __forceinline__ void multiply(unsigned a, unsigned b, bool add)
    {
        const unsigned long long tile_a = describe<A_ALONG_K ? K_TILE * ROW_BYTES : 16>(a);
        const unsigned long long tile_b = describe<B_ALONG_K ? K_TILE * ROW_BYTES : 16>(b);
        begin_products();
#pragma unroll
        for (int step = 0; step < K_TILE / 16; ++step)
#pragma unroll
            for (int part = 0; part < PARTS; ++part)
                wgmma_k16<Element, A_ALONG_K, B_ALONG_K>(
                    sums[part], tile_a + (part * 64 * ROW_BYTES + step * STEP_A) / 16,
                    tile_b + step * STEP_B / 16, step > 0 || add);
        commit_products();
    }

    // Waits for all products; from here on the sums may be read. The empty statements tell the compiler so:
    // it does not know that wgmma writes registers later.
    __device__ __forceinline__ void complete()
    {
        wait_for_products<0>();
#pragma unroll
        for (int part = 0; part < PARTS; ++part)
#pragma unroll
            for (auto &sum : sums[part])
                if constexpr (HALVES)
                    asm volatile("" : "+r"(sum)::"memory");
                else
                    asm volatile("" : "+f"(sum)::"memory");
    }

    // Elements of C in columns 8 * j + thread % 4 * 2 and the next, rows h * 8 + row() of the part.
    template <typename Result> __device__ __forceinline__ PairOf<Result> pair(int part, int j, int h) const
    {
        PairOf<Result> found;
        if constexpr (HALVES) {
            const half2 &both = reinterpret_cast<const half2 &>(sums[part][2 * j + h]);
            if constexpr (std::is_same_v<Result, float>)
                found = __half22float2(both);
            else
                found = both; // sums of halves are stored as they are, or as floats
        } else {
            pack(found, sums[part][4 * j + 2 * h], sums[part][4 * j + 2 * h + 1]);
        }
        return found;
    }

    static __device__ int row()
    {
        return threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
    }

    // Writes the tile to (row, col) of a rows x cols matrix, as far as it has it. IN_PAIRS: its rows have an
    // even number of elements. finish(pair, r, c): what two neighbours are stored as; the first is at (r, c).
    template <bool IN_PAIRS, typename Result, typename Finish>
    __device__ __forceinline__ void store(Result *__restrict__ matrix, int first_row, int first_col, int rows,
                                          int cols, const Finish &finish) const
    {
#pragma unroll
        for (int part = 0; part < PARTS; ++part)
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const int r = first_row + part * 64 + h * 8 + row();
#pragma unroll
                for (int j = 0; j < WIDTH / 8; ++j) {
                    const int c = first_col + 8 * j + threadIdx.x % 4 * 2;
                    const auto both = finish(pair<Result>(part, j, h), r, c);
                    if (IN_PAIRS) {
                        if (r < rows && c < cols)
                            *reinterpret_cast<PairOf<Result> *>(matrix + r * cols + c) = both;
                    } else {
                        if (r < rows && c < cols)
                            matrix[r * cols + c] = both.x;
                        if (r < rows && c + 1 < cols)
                            matrix[r * cols + c + 1] = both.y;
                    }
                }
            }
    }

    template <bool IN_PAIRS, typename Result>
    __device__ __forceinline__ void store(Result *__restrict__ matrix, int first_row, int first_col, int rows,
                                          int cols) const
    {
        store<IN_PAIRS>(matrix, first_row, first_col, rows, cols, [](const auto &pair, int, int) { return pair; });
    }

    // The same of a tile whose sums are those of C's transpose: of a row of C a thread has single elements,
    // and eight lanes have neighbours. Row after row, so that few addresses need registers beside the sums.
    template <typename Result>
    __device__ __forceinline__ void store_transposed(Result *__restrict__ matrix, int first_row, int first_col,
                                                     int rows, int cols) const
    {
#pragma unroll
        for (int j = 0; j < WIDTH / 8; ++j) {
            const int r = first_row + 8 * j + threadIdx.x % 4 * 2;
#pragma unroll
            for (int part = 0; part < PARTS; ++part)
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    const int c = first_col + part * 64 + h * 8 + row();
                    const auto both = pair<Result>(part, j, h);
                    if (r < rows && c < cols)
                        matrix[r * cols + c] = both.x;
                    if (r + 1 < rows && c < cols)
                        matrix[(r + 1) * cols + c] = both.y;
                }
        }
    }
};
