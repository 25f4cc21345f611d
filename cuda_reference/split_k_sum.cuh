// The second launch of a split_k.cu: adds up what its blocks left for each part of K.
// Has a guard, because a file that joins several twins has this in each of them.
#ifndef SPLIT_K_SUM_CUH
#define SPLIT_K_SUM_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>

static __device__ __forceinline__ void add(float4 &sum, const float4 &other)
{
    sum.x += other.x, sum.y += other.y, sum.z += other.z, sum.w += other.w;
}

// S: `parts` matrices of M rows, which are filled up to multiples of 16 bytes, one behind the other. Out: half,
// __nv_bfloat16 or float.
// A thread has four neighbours of a row. The warps of a block, at most SHARERS, have the same elements of
// different parts: each adds every blockDim.y-th part, in their order, and the first warp adds the sums of
// all warps, in the order of the warps. So C is the same in every run, whichever part was ready first. It is
// rounded once, at the end. With blocks that are one thread high each thread adds all parts of its elements,
// and they may be wider than a warp.
template <int SHARERS, typename Out>
static __device__ __forceinline__ void add_parts(const float *__restrict__ S, Out *__restrict__ C, int M, int N,
                                                 int parts)
{
    constexpr int VECTOR = 4;
    __shared__ float4 found[SHARERS][32];
    const int across = (N + VECTOR - 1) / VECTOR, pieces = M * across; // of a row, of a part
    const int piece = blockIdx.x * blockDim.x + threadIdx.x;
    float4 sum = make_float4(0, 0, 0, 0);
    if (piece < pieces) {
#pragma unroll 8
        for (int part = threadIdx.y; part < parts; part += blockDim.y)
            add(sum, reinterpret_cast<const float4 *>(S)[static_cast<size_t>(part) * pieces + piece]);
    }
    if (blockDim.y > 1) {
        found[threadIdx.y][threadIdx.x] = sum;
        __syncthreads();
    }
    if (threadIdx.y > 0 || piece >= pieces)
        return;
    for (int warp = 1; warp < blockDim.y; ++warp)
        add(sum, found[warp][threadIdx.x]);
    const int row = piece / across, column = piece % across * VECTOR;
    union {
        Out each[VECTOR];
        uint4 all;  // of floats
        uint2 half; // of 16 bits
    } four = {{static_cast<Out>(sum.x), static_cast<Out>(sum.y), static_cast<Out>(sum.z),
               static_cast<Out>(sum.w)}};
    Out *const to = C + static_cast<size_t>(row) * N + column;
    if (N % VECTOR) {
#pragma unroll
        for (int i = 0; i < VECTOR; ++i)
            if (column + i < N)
                to[i] = four.each[i];
    } else if constexpr (sizeof(Out) == 4) {
        *reinterpret_cast<uint4 *>(to) = four.all;
    } else {
        *reinterpret_cast<uint2 *>(to) = four.half;
    }
}

#endif
