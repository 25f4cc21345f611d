// Float32 matrices as sums of parts in float16, rows of A and columns of B scaled: the launch before fp16x3.cu.
//
//   nvcc -arch=sm_90a -cubin split_scaled.cu
//   grid ceil(M / 8) + ceil(N / 8), block (32, 8)
//
// As split_parts.cu. A row of X, or a column of X_2, is divided by a power of two before, which SCALES or SCALES_2
// gets: its largest element is then below 2^15, and at least half of that. It is read twice: the largest element
// is known when all have been read.

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

constexpr int VECTOR = 8;

// A line of a matrix along K, in pieces of eight elements, EACH apart from one turn to the next; the first one of
// this thread is number `piece`. at: where its elements are; step: from one to the next.
template <int EACH, typename Largest>
static __device__ __forceinline__ void split_line(const float *__restrict__ at, int step, bool inside, int piece,
                                                  int K, SPLIT_TYPE *__restrict__ row, float *__restrict__ scale,
                                                  bool first_thread, const Largest &largest)
{
    const int pieces = (K + 63) / 64 * (64 / VECTOR);
    float most = 0;
    for (int p = piece; inside && p < pieces; p += EACH)
#pragma unroll
        for (int e = 0; e < VECTOR; ++e)
            if (p * VECTOR + e < K)
                most = fmaxf(most, fabsf(at[(p * VECTOR + e) * step]));
    const float divisor = scale_for(largest(most)), factor = 1 / divisor;
    if (inside && first_thread)
        *scale = divisor;
    for (int p = piece; inside && p < pieces; p += EACH) {
        float left[VECTOR];
#pragma unroll
        for (int e = 0; e < VECTOR; ++e)
            left[e] = p * VECTOR + e < K ? at[(p * VECTOR + e) * step] * factor : 0;
        store_parts<SPLIT_TYPE, SPLIT_PARTS, SPLIT_DEPTH>(left, row, p * VECTOR);
    }
}

extern "C" __global__ void __launch_bounds__(256)
sgemm_split_scaled(const float *__restrict__ X, SPLIT_TYPE *__restrict__ Y, float *__restrict__ SCALES,
                   const float *__restrict__ X_2, SPLIT_TYPE *__restrict__ Y_2, float *__restrict__ SCALES_2, int M,
                   int N, int K)
{
    constexpr int WARP = 32, WARPS = 8, COLUMNS = 8;
    overlap_launches();
#ifdef SIZE_M
    M = SIZE_M, N = SIZE_N, K = SIZE_K;
#endif
    const int of_a = (M + WARPS - 1) / WARPS; // blocks
    const int lane = threadIdx.x, warp = threadIdx.y, length = (K + 63) / 64 * 64 * SPLIT_PARTS;
    if (blockIdx.x < of_a) {
        const int row = blockIdx.x * WARPS + warp;
        split_line<WARP>(X + row * K, 1, row < M, lane, K, Y + row * length, SCALES + row, lane == 0,
                         [](float value) { return largest_of_lanes<1>(value); });
    } else {
        const int column = (blockIdx.x - of_a) * COLUMNS + lane % COLUMNS;
        split_line<WARPS * WARP / COLUMNS>(X_2 + column, N, column < N, warp * (WARP / COLUMNS) + lane / COLUMNS, K,
                                           Y_2 + column * length, SCALES_2 + column, lane < COLUMNS && warp == 0,
                                           [](float value) { return largest_of_columns(value); });
    }
}
