// Products of float32 tiles by mma: fragments are split into three parts of bfloat16 in registers.
//
// Which columns of a tile are column g of an mma is free. If rows of the tile of B are along N, a lane reads up to
// four neighbours of a row, those of as many mma, so that a lane's sums are up to eight neighbours of a row of C.
// If they are along K, a lane reads B as it reads A.
#pragma once

#include "mma_products.cuh"

// Two neighbours along k as three parts each: each part is the rest that the parts before leave, rounded. The
// first part is finite if the element is. The third part is exact.
static __device__ __forceinline__ void split_pair(float low, float high, unsigned &first, unsigned &second,
                                                  unsigned &third)
{
    constexpr unsigned HIGH_HALVES = 0x7632, CUT = 0xffff0000;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;\n\t"
        "min.bf16x2 %0, %0, %3;\n\t"
        "max.bf16x2 %0, %0, %4;"
        : "=&r"(first)
        : "f"(high), "f"(low), "r"(0x7f7f7f7f), "r"(0xff7fff7f));
    low -= __uint_as_float(first << 16);
    high -= __uint_as_float(first & CUT);
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(second) : "f"(high), "f"(low));
    low -= __uint_as_float(second << 16);
    high -= __uint_as_float(second & CUT);
    third = __byte_perm(__float_as_uint(low), __float_as_uint(high), HIGH_HALVES);
}

// COUNT neighbours in shared memory to registers: 1, 2 or 4.
template <int COUNT> static __device__ __forceinline__ void read_neighbours(float (&to)[COUNT], const float *from)
{
    if constexpr (COUNT == 4) {
        const float4 four = *reinterpret_cast<const float4 *>(from);
        to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
    } else if constexpr (COUNT == 2) {
        const float2 two = *reinterpret_cast<const float2 *>(from);
        to[0] = two.x, to[1] = two.y;
    } else
        to[0] = *from;
}

// Adds the product of a tile of A, HEIGHT x DEPTH in rows of A_ROW floats, and one of B, DEPTH x WIDTH in rows of
// B_ROW, or where TRANSPOSED, WIDTH x DEPTH, to a warp's sums. Tensor cores add up from 0, and what they have found
// is added with rounding. sums: the first of the lane's HEIGHT * WIDTH / 32, in the order of promote_fragments.
template <int HEIGHT, int WIDTH, int DEPTH, int A_ROW, int B_ROW, bool TRANSPOSED = false>
static __device__ __forceinline__ void multiply_split_tiles(float &sums, const float *a, const float *b)
{
    constexpr int V = TRANSPOSED ? 1 : WIDTH % 32 == 0 ? 4 : WIDTH % 16 == 0 ? 2 : 1; // columns that a lane reads at once
    constexpr int FIRST[6] = {1, 2, 0, 1, 0, 0}, SECOND[6] = {1, 0, 2, 0, 1, 0}; // parts, the small products first
    const int lane = threadIdx.x % 32;
    a += lane / 4 * A_ROW + lane % 4 * 2;
    b += TRANSPOSED ? lane / 4 * B_ROW + lane % 4 * 2 : lane % 4 * 2 * B_ROW + lane / 4 * V;
    float partial[HEIGHT / 16][WIDTH / 8][4] = {};
#pragma unroll
    for (int k = 0; k < DEPTH; k += 16) {
        unsigned b_parts[WIDTH / 8][3][2];
#pragma unroll
        for (int j = 0; j < WIDTH / 8; j += V)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                float low[V], high[V];
                if constexpr (TRANSPOSED) {
                    float pair[2];
                    read_neighbours<2>(pair, b + j * 8 * B_ROW + k + half * 8);
                    low[0] = pair[0], high[0] = pair[1];
                } else {
                    read_neighbours<V>(low, b + (k + half * 8) * B_ROW + j * 8);
                    read_neighbours<V>(high, b + (k + half * 8 + 1) * B_ROW + j * 8);
                }
#pragma unroll
                for (int v = 0; v < V; ++v)
                    split_pair(low[v], high[v], b_parts[j + v][0][half], b_parts[j + v][1][half],
                               b_parts[j + v][2][half]);
            }
#pragma unroll
        for (int i = 0; i < HEIGHT / 16; ++i) {
            unsigned a_parts[3][4];
#pragma unroll
            for (int r = 0; r < 4; ++r) {
                float pair[2];
                read_neighbours<2>(pair, a + (i * 16 + r % 2 * 8) * A_ROW + k + r / 2 * 8);
                split_pair(pair[0], pair[1], a_parts[0][r], a_parts[1][r], a_parts[2][r]);
            }
#pragma unroll
            for (int p = 0; p < 6; ++p)
#pragma unroll
                for (int j = 0; j < WIDTH / 8; ++j)
                    multiply_bfloat16(partial[i][j], a_parts[FIRST[p]], b_parts[j][SECOND[p]]);
        }
    }
    promote_fragments<HEIGHT, WIDTH, V>(&sums, partial);
}
