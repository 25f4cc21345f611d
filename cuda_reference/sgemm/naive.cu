// Naive SGEMM: C = A * B, row-major, one thread per element of C.
//
//   nvcc -arch=sm_80 -cubin naive.cu
//   grid (ceil(M/TS), ceil(N/TS)), block (TS, TS)
//
// threadIdx.x runs along the rows of C. The 32 threads of a warp then read 32 different rows of A and write
// 32 different rows of C: every access touches 32 memory sectors, and uses 4 bytes of each. (article 003,
// "choiBLAMS", kernel 1)

#include "../sizes.cuh"

#ifndef TS
#define TS 32 // edge of the square of C that one block computes
#endif

extern "C" __global__ void __launch_bounds__(TS *TS)
sgemm_naive(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C, int M, int N,
            int K)
{
#ifdef SIZE_M
    fix_sizes<SIZE_M, SIZE_N, SIZE_K>(M, N, K);
#endif
    const int m = blockIdx.x * TS + threadIdx.x;
    const int n = blockIdx.y * TS + threadIdx.y;

    if (m < M && n < N) {
        float acc = 0.0f;
        for (int k = 0; k < K; ++k)
            acc += A[m * K + k] * B[k * N + n];
        C[m * N + n] = acc;
    }
}
