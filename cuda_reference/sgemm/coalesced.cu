// Coalesced SGEMM: as naive.cu, with the two thread axes exchanged.
//
//   nvcc -arch=sm_80 -cubin coalesced.cu
//   grid (ceil(M/TS), ceil(N/TS)), block (TS, TS)
//
// threadIdx.x now runs along the columns of C. A warp reads one element of A (a broadcast) and 32 neighbours
// of B, and writes 32 neighbours of C: four full sectors each. Nothing else changes. (article 003,
// "choiBLAMS", kernel 2)

#include "../sizes.cuh"

#ifndef TS
#define TS 32 // edge of the square of C that one block computes
#endif

extern "C" __global__ void __launch_bounds__(TS *TS)
sgemm_coalesced(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C, int M, int N,
                int K)
{
#ifdef SIZE_M
    fix_sizes<SIZE_M, SIZE_N, SIZE_K>(M, N, K);
#endif
    const int m = blockIdx.x * TS + threadIdx.y;
    const int n = blockIdx.y * TS + threadIdx.x;

    if (m < M && n < N) {
        float acc = 0.0f;
        for (int k = 0; k < K; ++k)
            acc += A[m * K + k] * B[k * N + n];
        C[m * N + n] = acc;
    }
}
