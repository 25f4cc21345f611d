// Products of parts by mma.m16n8k16, and sums of tensor cores that are promoted.
//
// An mma multiplies 16 x 16 elements of A with 16 x 8 of B. With g = lane / 4 and t = lane % 4 a lane has, in
// registers of two neighbours along k:
//   of A rows g and g + 8, k = 2t, 2t + 1, 2t + 8, 2t + 9
//   of B column g, the same k
//   of C rows g and g + 8, columns 2t and 2t + 1
#pragma once

// c += a @ b, of bfloat16.
static __device__ __forceinline__ void multiply_bfloat16(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2])
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9},"
        " {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// c += a @ b, of float16.
static __device__ __forceinline__ void multiply_float16(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2])
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9},"
        " {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Adds what tensor cores have found of HEIGHT x WIDTH to a lane's sums, with rounding. Sums are in the order of 16
// rows, of half of these, of 8 * V columns, of 2 * V neighbours in a row of C.
template <int HEIGHT, int WIDTH, int V>
static __device__ __forceinline__ void promote_fragments(float *sums, const float (&partial)[HEIGHT / 16][WIDTH / 8][4])
{
#pragma unroll
    for (int n = 0; n < HEIGHT * WIDTH / 32; ++n) {
        const int i = n / (WIDTH / 2), j = n / 4 % (WIDTH / 8), c = n % 4;
        sums[(i * 2 + c / 2) * (WIDTH / 4) + j / V * 2 * V + c % 2 * V + j % V] += partial[i][j][c];
    }
}
