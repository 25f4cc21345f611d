// Products of parts by mma.m16n8k16, and sums of tensor cores that are promoted.
//
// An mma multiplies 16 x 16 elements of A with 16 x 8 of B. With g = lane / 4 and t = lane % 4 a lane has, in
// registers of two neighbours along k:
//   of A rows g and g + 8, k = 2t, 2t + 1, 2t + 8, 2t + 9
//   of B column g, the same k
//   of C rows g and g + 8, columns 2t and 2t + 1
#pragma once

// c += a @ b, of bfloat16, or HALF: of float16.
template <bool HALF>
static __device__ __forceinline__ void multiply_part(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2])
{
    if constexpr (HALF)
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9},"
            " {%0, %1, %2, %3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    else
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9},"
            " {%0, %1, %2, %3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Adds what tensor cores have found of a tile of HEIGHT x WIDTH to a lane's sums, with rounding. V: mma whose
// columns are neighbours in a row of C. The order of sums is that of 16 rows, of half of these, of 8 * V columns,
// of 2 * V neighbours.
template <int HEIGHT, int WIDTH, int V>
static __device__ __forceinline__ void promote_fragments(float *sums, const float (&partial)[HEIGHT / 16][WIDTH / 8][4])
{
#pragma unroll
    for (int i = 0; i < HEIGHT / 16; ++i)
#pragma unroll
        for (int j = 0; j < WIDTH / 8; ++j)
#pragma unroll
            for (int c = 0; c < 4; ++c)
                sums[(i * 2 + c / 2) * (WIDTH / 4) + j / V * 2 * V + c % 2 * V + j % V] += partial[i][j][c];
}
