// The second launch of split_k.cu: adds up what its blocks left for each part of K.
//
//   nvcc -arch=sm_80 -cubin split_k_sum.cu
//   grid ceil(M * ceil(N / 4) / 32), block (32, min(MOST_WARPS, PARTS))
//   S: PARTS matrices of M rows, which are filled up to multiples of 16 bytes, one behind the other
//
// A lane has four neighbours of a row, and warps have the same elements of different parts: each adds every
// blockDim.y-th part, in their order, and the first warp adds what they have found, in the order of the warps.
// So C is the same in every run, whichever part was ready first. It is rounded once, at the end.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "../early_launch.cuh"

#ifndef OUT
#define OUT float // elements of C: half, __nv_bfloat16 or float
#endif
#ifndef MOST_WARPS
#define MOST_WARPS 8 // of a block, at most
#endif

static __device__ __forceinline__ void add(float4 &sum, const float4 &other)
{
    sum.x += other.x, sum.y += other.y, sum.z += other.z, sum.w += other.w;
}

extern "C" __global__ void __launch_bounds__(32 * MOST_WARPS)
hgemm_split_k_sum(const float *__restrict__ S, OUT *__restrict__ C, int M, int N, int PARTS)
{
    overlap_launches();
#ifdef SIZE_M
    M = SIZE_M, N = SIZE_N, PARTS = SIZE_PARTS;
#endif
    constexpr int VECTOR = 4;
    __shared__ float4 found[MOST_WARPS][32];
    const int across = (N + VECTOR - 1) / VECTOR, pieces = M * across; // of a row, of a part
    const int piece = blockIdx.x * 32 + threadIdx.x;
    float4 sum = make_float4(0, 0, 0, 0);
    if (piece < pieces) {
#pragma unroll 8
        for (int part = threadIdx.y; part < PARTS; part += blockDim.y)
            add(sum, reinterpret_cast<const float4 *>(S)[static_cast<size_t>(part) * pieces + piece]);
    }
    found[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y > 0 || piece >= pieces)
        return;
    for (int warp = 1; warp < blockDim.y; ++warp)
        add(sum, found[warp][threadIdx.x]);
    const int row = piece / across, column = piece % across * VECTOR;
    union {
        OUT each[VECTOR];
        uint4 all;  // of floats
        uint2 half; // of 16 bits
    } four = {{static_cast<OUT>(sum.x), static_cast<OUT>(sum.y), static_cast<OUT>(sum.z),
               static_cast<OUT>(sum.w)}};
    OUT *const to = C + static_cast<size_t>(row) * N + column;
    if (N % VECTOR) {
#pragma unroll
        for (int i = 0; i < VECTOR; ++i)
            if (column + i < N)
                to[i] = four.each[i];
    } else if constexpr (sizeof(OUT) == 4) {
        *reinterpret_cast<uint4 *>(to) = four.all;
    } else {
        *reinterpret_cast<uint2 *>(to) = four.half;
    }
}
