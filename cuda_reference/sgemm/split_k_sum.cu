// The second launch of split_k.cu: adds up what its blocks left for each part of K.
//
//   nvcc -arch=sm_80 -cubin split_k_sum.cu
//   pieces of 16 bytes: M * ceil(N / 4). With LARGE pieces or more grid ceil(pieces / 128), block
//   (128); with fewer grid ceil(pieces / 32), block (32, min(MOST_WARPS, PARTS))
//   S: PARTS matrices of M rows, which are filled up to multiples of 16 bytes, one behind the other
//
// If C is large, a thread adds up all parts of its elements. If C is small, the warps of a block share the
// parts, and the first warp adds the sums of the others. The launch takes LARGE.

#include "../dependent_launch.cuh"
#include "../split_k_sum.cuh"

#ifndef MOST_WARPS
#define MOST_WARPS 8 // of a block, at most
#define LARGE 8192   // pieces from which on none share parts
#endif

extern "C" __global__ void __launch_bounds__(32 * MOST_WARPS > 128 ? 32 * MOST_WARPS : 128)
sgemm_split_k_sum(const float *__restrict__ S, float *__restrict__ C, int M, int N, int PARTS)
{
    overlap_launches();
#ifdef SIZE_M
    M = SIZE_M, N = SIZE_N, PARTS = SIZE_PARTS;
#endif
    add_parts<MOST_WARPS>(S, C, M, N, PARTS);
}
