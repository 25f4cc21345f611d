// Tiles in the registers of a warp by PTX's ldmatrix and mma, which document which lane has which elements.
//
// An mma is 16 x 8 x 16. With g = lane / 4 and t = lane % 4, each register holding two halves that are
// neighbours in a row of A or C, or in a column of B:
//   A, 16 x 16, 4 registers: row g, columns 2t, 2t + 1; row g + 8, same columns; row g, columns 2t + 8, 2t +
//     9; row g + 8, same
//   B, 16 x 8, 2 registers: column g, rows 2t, 2t + 1; column g, rows 2t + 8, 2t + 9
//   C, 16 x 8: row g, columns 2t, 2t + 1; row g + 8, same columns: 2 registers of halves or 4 of floats
// That is how ldmatrix hands out 8 x 8 matrices of halves in shared memory, up to four at once: lane l gives
// the address of row l % 8 of matrix l / 8, and gets of each matrix elements 2t and 2t + 1 of row g, or,
// transposed, of column g. Four matrices make the A of one mma, or the B of two.
#pragma once

#include "addresses.cuh"
#include "ldmatrix.cuh"
#include "tiles.cuh"

// c += a @ b. c: 2 registers of halves or 4 of floats.
template <int REGISTERS>
static __device__ void multiply(unsigned (&c)[REGISTERS], const unsigned (&a)[4], const unsigned *b)
{
    if constexpr (REGISTERS == 2)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16"
                     " {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"
                     : "+r"(c[0]), "+r"(c[1])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    else
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
                     " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// What a warp multiplies in a step of 16 along K: HEIGHT rows of A and WIDTH columns of B.
template <int HEIGHT, int WIDTH> struct MmaOperands {
    unsigned a[HEIGHT / 16][4], b[WIDTH / 16][4]; // for an mma each, and for two
};

// A warp's tile of C, HEIGHT x WIDTH; zeros to begin with.
template <int HEIGHT, int WIDTH, typename Element> struct MmaAccumulators {
    using Sum = Element;
    static_assert(HEIGHT % 16 == 0 && WIDTH % 16 == 0, "mmas must cover the warp tile");
    unsigned c[HEIGHT / 16][WIDTH / 8][sizeof(Element)] = {}; // zeros of either type

    // Adds a step's product. BACK_AND_FORTH: every other row from its end, so that one operand stays.
    template <bool BACK_AND_FORTH = false> __device__ void add(const MmaOperands<HEIGHT, WIDTH> &step)
    {
#pragma unroll
        for (int i = 0; i < HEIGHT / 16; ++i)
#pragma unroll
            for (int n = 0; n < WIDTH / 8; ++n) {
                const int j = BACK_AND_FORTH && i % 2 ? WIDTH / 8 - 1 - n : n;
                multiply(c[i][j], step.a[i], &step.b[j / 2][j % 2 * 2]);
            }
    }

    // Writes the tile to memory, in rows of `stride` elements.
    __device__ void store(Element *target, int stride) const
    {
        using Pair = std::conditional_t<sizeof(Element) == 2, unsigned, uint2>; // what a lane has of a row
        const int lane = threadIdx.x;
#pragma unroll
        for (int i = 0; i < HEIGHT / 16; ++i)
#pragma unroll
            for (int j = 0; j < WIDTH / 8; ++j)
#pragma unroll
                for (int h = 0; h < 2; ++h) { // rows g and g + 8
                    const int row = i * 16 + h * 8 + lane / 4;
                    *reinterpret_cast<Pair *>(target + row * stride + j * 8 + lane % 4 * 2) =
                        reinterpret_cast<const Pair *>(c[i][j])[h];
                }
    }
};
