// Accesses of four floats at a time. A float4 needs 16-byte alignment, which a row of a matrix has only if
// its length is a multiple of 4: other matrices are read and written element by element.
#pragma once

// Writes the elements (row, col) to (row, col + 3) of a row-major matrix, except those outside. col is a
// multiple of 4. ALIGNED promises cols % 4 == 0.
template <bool ALIGNED = false>
__device__ __forceinline__ void store4(float *__restrict__ matrix, int row, int col, int rows, int cols,
                                       const float *value)
{
    if (row < rows) {
        float *target = matrix + row * cols + col;
        if (ALIGNED || cols % 4 == 0) {
            if (col < cols)
                *reinterpret_cast<float4 *>(target) = make_float4(value[0], value[1], value[2], value[3]);
        } else {
#pragma unroll
            for (int e = 0; e < 4; ++e)
                if (col + e < cols)
                    target[e] = value[e];
        }
    }
}

// COUNT neighbours in shared memory to registers, 4, 2 or 1 at a time: the largest of these that divides
// COUNT, because reads of COUNT neighbours start at a multiple of COUNT.
template <int COUNT> __device__ __forceinline__ void read_shared(float *to, const float *from)
{
    if constexpr (COUNT % 4 == 0)
#pragma unroll
        for (int e = 0; e < COUNT; e += 4)
            *reinterpret_cast<float4 *>(to + e) = *reinterpret_cast<const float4 *>(from + e);
    else if constexpr (COUNT % 2 == 0)
#pragma unroll
        for (int e = 0; e < COUNT; e += 2)
            *reinterpret_cast<float2 *>(to + e) = *reinterpret_cast<const float2 *>(from + e);
    else
#pragma unroll
        for (int e = 0; e < COUNT; ++e)
            to[e] = from[e];
}
