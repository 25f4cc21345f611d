// Float32 matrices as sums of parts in float16, rows of A and columns of B scaled: the launch before fp16x3.cu.
//
//   nvcc -arch=sm_90a -cubin split_scaled.cu
//   block (32, W): W is ceil(K / 128), rounded up to a power of two, and 8 to 32
//   grid ceil(M / R) + ceil(N / 8), with NT ceil(M / R) + ceil(N / R): R is W by ceil(K / 256), which is
//   rounded up to a power of two, and at least 1
//
// As split_parts.cu. Before the split a row of X, or a column of X_2 (with NT a row), is divided by a power of
// two, which goes to SCALES or SCALES_2. Its largest element is then below 2^15, and at least half of that. It
// is read twice, because the largest element is known only when all have been read.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "../dependent_launch.cuh"
#include "parts.cuh"
#include "scales.cuh"

#ifndef SPLIT_DEPTH
#define SPLIT_DEPTH 32 // of a K tile
#define SPLIT_PARTS 2  // of an element
#define SPLIT_TYPE half
#endif
#ifndef NT
#define NT 0 // X_2 is K x N; 1: N x K
#endif

constexpr int WARP = 32, COLUMNS = 8, VECTOR = 8;

// The divisor of a row or column, from the largest of its elements.
static __device__ __forceinline__ float divisor_of(float largest, float *__restrict__ scale, bool inside)
{
    const float divisor = scale_for(largest);
    if (inside)
        *scale = divisor;
    return divisor;
}

// A row of X. This is thread number `thread` of the warps that read it.
static __device__ __forceinline__ void split_row(const float *__restrict__ X, bool inside, int thread, int warps, int K,
                                                 SPLIT_TYPE *__restrict__ row, float *__restrict__ scale)
{
    float most = 0;
#pragma unroll 8
    for (int k = thread; inside && k < K; k += warps * WARP)
        most = fmaxf(most, fabsf(X[k]));
    const float factor = 1 / divisor_of(largest_of_warps(most, warps), scale, inside && thread == 0);
    for (int k = thread * VECTOR; inside && k < (K + 63) / 64 * 64; k += warps * WARP * VECTOR) {
        float left[VECTOR];
        load_row(left, X, k, K, factor);
        store_parts<SPLIT_TYPE, SPLIT_PARTS, SPLIT_DEPTH>(left, row, k);
    }
}

// Column `column` of X, which has N, or where that is not inside the last; the first elements of this thread begin
// at `first`. A condition for each load would make each wait for the one before.
static __device__ __forceinline__ void split_column(const float *__restrict__ X, int column, int first, int N, int K,
                                                    SPLIT_TYPE *__restrict__ row, float *__restrict__ scale)
{
    const bool inside = column < N;
    X += min(column, N - 1);
    const int each = blockDim.y * (WARP / COLUMNS * VECTOR);
    float most = 0;
    for (int turn = 0; turn < (K + each - 1) / each; ++turn)
#pragma unroll
        for (int e = 0; e < VECTOR; ++e)
            most = fmaxf(most, fabsf(X[min(first + turn * each + e, K - 1) * N]));
    const float factor = 1 / divisor_of(largest_of_columns(most, blockDim.y), scale, inside && first == 0);
    for (int k = first; inside && k < (K + 63) / 64 * 64; k += each) {
        float left[VECTOR];
#pragma unroll
        for (int e = 0; e < VECTOR; ++e)
            left[e] = k + e < K ? X[(k + e) * N] * factor : 0;
        store_parts<SPLIT_TYPE, SPLIT_PARTS, SPLIT_DEPTH>(left, row, k);
    }
}

extern "C" __global__ void __launch_bounds__(1024)
sgemm_split_scaled(const float *__restrict__ X, SPLIT_TYPE *__restrict__ Y, float *__restrict__ SCALES,
                   const float *__restrict__ X_2, SPLIT_TYPE *__restrict__ Y_2, float *__restrict__ SCALES_2, int M,
                   int N, int K)
{
    overlap_launches();
#ifdef SIZE_M
    M = SIZE_M, N = SIZE_N, K = SIZE_K;
#endif
    const int lane = threadIdx.x, warp = threadIdx.y, length = (K + 63) / 64 * 64 * SPLIT_PARTS;
    int warps = 1; // that share a row of X
    while (warps < blockDim.y && warps * WARP * VECTOR < length / SPLIT_PARTS)
        warps *= 2;
    const int rows = blockDim.y / warps, of_a = (M + rows - 1) / rows; // of a block; blocks
    const int thread = warp % warps * WARP + lane;                           // of those that share a row
    if (blockIdx.x < of_a) {
        const int row = blockIdx.x * rows + warp / warps;
        split_row(X + row * K, row < M, thread, warps, K, Y + row * length, SCALES + row);
    } else if (NT) {
        const int row = (blockIdx.x - of_a) * rows + warp / warps;
        split_row(X_2 + row * K, row < N, thread, warps, K, Y_2 + row * length, SCALES_2 + row);
    } else {
        const int column = (blockIdx.x - of_a) * COLUMNS + lane % COLUMNS;
        split_column(X_2, column, (warp * (WARP / COLUMNS) + lane / COLUMNS) * VECTOR, N, K,
                     Y_2 + column * length, SCALES_2 + column);
    }
}
