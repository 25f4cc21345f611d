// Shared-memory SGEMM: a block copies a TS x TS tile of A and of B to shared memory and computes from there.
//
//   nvcc -arch=sm_80 -cubin shared_tile.cu
//   grid (ceil(M/TS), ceil(N/TS)), block (TS, TS)
//
// Each element of a tile is read from global memory once and used TS times. There are two barriers per tile:
// no thread computes before the tile is complete, and none overwrites it before all are done. Tiles reaching
// beyond a matrix are filled with zeros, which add nothing, so that every thread takes part in every barrier.
// (article 003, "choiBLAMS", kernel 3)

#include "../sizes.cuh"

#ifndef TS
#define TS 32 // edge of the tiles of A, B and C
#endif

extern "C" __global__ void __launch_bounds__(TS *TS)
sgemm_shared_tile(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C, int M,
                  int N, int K)
{
#ifdef SIZE_M
    fix_sizes<SIZE_M, SIZE_N, SIZE_K>(M, N, K);
#endif
    __shared__ float tile_a[TS][TS];
    __shared__ float tile_b[TS][TS];

    const int ty = threadIdx.y;
    const int tx = threadIdx.x;
    const int m = blockIdx.x * TS + ty;
    const int n = blockIdx.y * TS + tx;

    float acc = 0.0f;
    for (int k0 = 0; k0 < K; k0 += TS) {
        tile_a[ty][tx] = m < M && k0 + tx < K ? A[m * K + k0 + tx] : 0.0f;
        tile_b[ty][tx] = k0 + ty < K && n < N ? B[(k0 + ty) * N + n] : 0.0f;
        __syncthreads();

#pragma unroll
        for (int k = 0; k < TS; ++k)
            acc += tile_a[ty][k] * tile_b[k][tx];
        __syncthreads();
    }

    if (m < M && n < N)
        C[m * N + n] = acc;
}
