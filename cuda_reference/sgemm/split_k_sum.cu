// The second launch of split_k.cu: adds up what its blocks left for each part of K.
//
//   nvcc -arch=sm_80 -cubin split_k_sum.cu
//   grid (ceil(M * N / BLOCK)), block (BLOCK)
//   S: PARTS matrices of M x N, one behind the other
//
// A thread for each element of C. It adds from the first part on, whichever was ready first, so that C is the
// same in every run. Loads do not wait for additions: the loop is unrolled, to have several under way.

#include "../early_launch.cuh"

#ifndef BLOCK
#define BLOCK 128 // of a block
#endif

extern "C" __global__ void __launch_bounds__(BLOCK)
sgemm_split_k_sum(const float *__restrict__ S, float *__restrict__ C, int M, int N, int PARTS)
{
    overlap_launches();
#ifdef SIZE_M
    M = SIZE_M, N = SIZE_N, PARTS = SIZE_PARTS;
#endif
    const int element = blockIdx.x * BLOCK + threadIdx.x;
    if (element >= M * N)
        return;
    float sum = 0.0f;
#pragma unroll 16
    for (int part = 0; part < PARTS; ++part)
        sum += S[part * (M * N) + element];
    C[element] = sum;
}
