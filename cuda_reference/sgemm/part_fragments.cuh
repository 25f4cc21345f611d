// Products by mma of tiles that have two parts of float16 of each element, three products of an element of A and
// one of B.
#pragma once

#include <cuda_fp16.h>

#include "../hgemm/addresses.cuh"
#include "../hgemm/ldmatrix.cuh"
#include "mma_products.cuh"

// Adds the product of a tile of A, HEIGHT x DEPTH, and one of B, WIDTH x DEPTH, to a warp's sums. A row of ROW
// halves has the first parts of its elements, and then the second ones. Tensor cores add up from 0, and what they
// have found is added with rounding. sums: the first of the lane's HEIGHT * WIDTH / 32.
//
// ldmatrix: eight lanes have the addresses of eight rows. Of A a lane has row lane % 16 of 16, and lanes from 16 on
// have the second half of 16 of k. Of B it has row lane % 8: one ldmatrix brings both halves and both parts.
template <int HEIGHT, int WIDTH, int DEPTH, int ROW>
static __device__ __forceinline__ void multiply_part_tiles(float &sums, const half *a, const half *b)
{
    constexpr int FIRST[3] = {1, 0, 0}, SECOND[3] = {0, 1, 0}; // parts, the small products first
    const int lane = threadIdx.x % 32;
    const unsigned of_a = shared_address(a + lane % 16 * ROW + lane / 16 * 8);
    const unsigned of_b = shared_address(b + lane % 8 * ROW + lane / 8 % 2 * 8 + lane / 16 * DEPTH);
    float partial[HEIGHT / 16][WIDTH / 8][4] = {};
#pragma unroll
    for (int k = 0; k < DEPTH; k += 16) {
        unsigned b_parts[WIDTH / 8][2][2];
#pragma unroll
        for (int j = 0; j < WIDTH / 8; ++j) {
            unsigned found[4];
            load_matrices<false>(found, of_b + (j * 8 * ROW + k) * 2);
            b_parts[j][0][0] = found[0], b_parts[j][0][1] = found[1];
            b_parts[j][1][0] = found[2], b_parts[j][1][1] = found[3];
        }
#pragma unroll
        for (int i = 0; i < HEIGHT / 16; ++i) {
            unsigned a_parts[2][4];
#pragma unroll
            for (int part = 0; part < 2; ++part)
                load_matrices<false>(a_parts[part], of_a + (i * 16 * ROW + part * DEPTH + k) * 2);
#pragma unroll
            for (int p = 0; p < 3; ++p)
#pragma unroll
                for (int j = 0; j < WIDTH / 8; ++j)
                    multiply_float16(partial[i][j], a_parts[FIRST[p]], b_parts[j][SECOND[p]]);
        }
    }
    promote_fragments<HEIGHT, WIDTH, 1>(&sums, partial);
}
