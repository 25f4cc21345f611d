// SGEMM with a row of LS results per thread.
//
//   nvcc -arch=sm_80 -cubin thread_tile_1d.cu
//   grid (ceil(M/TS), ceil(N/(TS*LS))), block (TS, TS)
//
// A block computes TS x TS*LS elements of C, a thread LS neighbours of one row. The element of A it reads
// from shared memory stays in a register for LS FMA: 1 + LS shared reads per LS FMA, not 2 * LS. (article
// 003, 1D block tiling)

#ifndef TS
#define TS 32 // rows of C per block; extent of a tile along K; threads per block edge
#define LS 4  // elements of C per thread
#endif

extern "C" __global__ void __launch_bounds__(TS *TS)
sgemm_thread_tile_1d(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C, int M,
                     int N, int K)
{
    __shared__ float tile_a[TS][TS];
    __shared__ float tile_b[TS][TS * LS];

    const int ty = threadIdx.y;
    const int tx = threadIdx.x;
    const int m = blockIdx.x * TS + ty;
    const int n = (blockIdx.y * TS + tx) * LS;

    float acc[LS] = {0.0f};
    for (int k0 = 0; k0 < K; k0 += TS) {
        tile_a[ty][tx] = m < M && k0 + tx < K ? A[m * K + k0 + tx] : 0.0f;
#pragma unroll
        for (int l = 0; l < LS; ++l)
            tile_b[ty][tx * LS + l] = k0 + ty < K && n + l < N ? B[(k0 + ty) * N + n + l] : 0.0f;
        __syncthreads();

#pragma unroll
        for (int k = 0; k < TS; ++k) {
            const float a = tile_a[ty][k];
#pragma unroll
            for (int l = 0; l < LS; ++l)
                acc[l] += a * tile_b[k][tx * LS + l];
        }
        __syncthreads();
    }

#pragma unroll
    for (int l = 0; l < LS; ++l)
        if (m < M && n + l < N)
            C[m * N + n + l] = acc[l];
}
