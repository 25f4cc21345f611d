// A float32 as a sum of parts in 16 bits.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

// The nearest number of a format. FINITE: of those that are finite.
template <bool FINITE> static __device__ __forceinline__ void round_to(half &part, float value)
{
    part = __float2half_rn(value);
}

template <bool FINITE> static __device__ __forceinline__ void round_to(__nv_bfloat16 &part, float value)
{
    part = __float2bfloat16_rn(FINITE ? fmaxf(fminf(value, 0x1.fep127f), -0x1.fep127f) : value);
}

// Float32 whose last 13 bits are 0 are tf32. Of two that are as near it is the one further from 0.
static __device__ __forceinline__ float rounded_to_tf32(float value)
{
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
    return __uint_as_float(bits);
}

template <bool FINITE> static __device__ __forceinline__ void round_to(float &part, float value)
{
    part = rounded_to_tf32(value);
}

static __device__ __forceinline__ float widened(float value)
{
    return value;
}

static __device__ __forceinline__ float widened(half value)
{
    return __half2float(value);
}

static __device__ __forceinline__ float widened(__nv_bfloat16 value)
{
    return __bfloat162float(value);
}

// Eight neighbours of a row from k on, times a factor; 0 behind its K elements.
static __device__ __forceinline__ void load_row(float (&left)[8], const float *__restrict__ row, int k, int K,
                                                float factor)
{
    if (K % 4 == 0) {
#pragma unroll
        for (int quad = 0; quad < 8; quad += 4) {
            const float4 four = k + quad < K ? *reinterpret_cast<const float4 *>(row + k + quad) : float4{};
            left[quad] = four.x * factor, left[quad + 1] = four.y * factor;
            left[quad + 2] = four.z * factor, left[quad + 3] = four.w * factor;
        }
    } else {
#pragma unroll
        for (int e = 0; e < 8; ++e)
            left[e] = k + e < K ? row[k + e] * factor : 0;
    }
}

// The parts of eight neighbours along K, `first` the first one's k, to their places in a row of parts.
template <typename Part, int PART_COUNT, int K_TILE_DEPTH>
static __device__ __forceinline__ void store_parts(float (&left)[8], Part *row, int first)
{
    row += first / K_TILE_DEPTH * PART_COUNT * K_TILE_DEPTH + first % K_TILE_DEPTH;
#pragma unroll
    for (int part = 0; part < PART_COUNT; ++part) {
        union {
            Part each[8];
            uint4 all[sizeof(Part) / 2];
        } elements;
#pragma unroll
        for (int e = 0; e < 8; ++e) {
            if (part == 0 && PART_COUNT > 1)
                round_to<true>(elements.each[e], left[e]);
            else
                round_to<false>(elements.each[e], left[e]);
            left[e] -= widened(elements.each[e]);
        }
#pragma unroll
        for (int vector = 0; vector < sizeof(Part) / 2; ++vector)
            reinterpret_cast<uint4 *>(row + part * K_TILE_DEPTH)[vector] = elements.all[vector];
    }
}
