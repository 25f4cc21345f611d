// The largest of several numbers, and the power of two that they are divided by so that it fits into a half.
#pragma once

// Of the lanes of a warp, or with FIRST = 8 of those whose number has the same remainder by 8.
template <int FIRST> static __device__ __forceinline__ float largest_of_lanes(float value)
{
#pragma unroll
    for (int step = FIRST; step < 32; step *= 2)
        value = fmaxf(value, __shfl_xor_sync(0xffffffff, value, step));
    return value;
}

// The same of the lanes of so many warps, a power of two.
static __device__ __forceinline__ float largest_of_warps(float value, int warps)
{
    __shared__ float found[32];
    value = largest_of_lanes<1>(value);
    if (warps == 1)
        return value;
    if (threadIdx.x == 0)
        found[threadIdx.y] = value;
    __syncthreads();
    for (int warp = 0; warp < warps; ++warp)
        value = fmaxf(value, found[threadIdx.y / warps * warps + warp]);
    return value;
}

// The same of all warps of a block: of the lanes with the same remainder by 8.
static __device__ __forceinline__ float largest_of_columns(float value, int warps)
{
    __shared__ float found[32][8];
    value = largest_of_lanes<8>(value);
    if (threadIdx.x < 8)
        found[threadIdx.y][threadIdx.x] = value;
    __syncthreads();
    for (int warp = 0; warp < warps; ++warp)
        value = fmaxf(value, found[warp][threadIdx.x % 8]);
    return value;
}

// So that what is at least half of 2^15 and below it is left of the largest; 2^-126 at least.
static __device__ __forceinline__ float scale_for(float largest)
{
    return __int_as_float(max((__float_as_int(largest) >> 23) - 14, 1) << 23);
}
