// Copies of tiles to shared memory by all threads of a block, four elements at a time. (row, col): where the
// tile starts in its row-major matrix; what lies beyond the matrix becomes zero.
#pragma once

#include "float4.cuh"

// Elements (row, col) to (row, col + 3) of a row-major matrix, zeros where they lie beyond it. col is a
// multiple of 4.
__device__ __forceinline__ float4 load4(const float *__restrict__ matrix, int row, int col, int rows,
                                        int cols)
{
    float value[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    if (row < rows) {
        const float *source = matrix + row * cols + col;
        if (cols % 4 == 0) {
            if (col < cols)
                return *reinterpret_cast<const float4 *>(source);
        } else {
#pragma unroll
            for (int e = 0; e < 4; ++e)
                if (col + e < cols)
                    value[e] = source[e];
        }
    }
    return make_float4(value[0], value[1], value[2], value[3]);
}

// The tile as it lies in the matrix.
template <int THREADS, int HEIGHT, int WIDTH>
__device__ __forceinline__ void copy_tile4(float (&tile)[HEIGHT][WIDTH], const float *__restrict__ matrix,
                                           unsigned thread, int row, int col, int rows, int cols)
{
    static_assert(WIDTH % 4 == 0 && HEIGHT * WIDTH / 4 % THREADS == 0, "threads must share float4s evenly");
#pragma unroll
    for (int i = 0; i < HEIGHT * WIDTH / 4 / THREADS; ++i) {
        const int y = (i * THREADS + thread) / (WIDTH / 4);
        const int x = (i * THREADS + thread) % (WIDTH / 4) * 4;
        *reinterpret_cast<float4 *>(&tile[y][x]) = load4(matrix, row + y, col + x, rows, cols);
    }
}

// The place of an element in a row of LENGTH. SHIFTED: each row is rotated by four elements more than the row
// above it.
template <int LENGTH, bool SHIFTED> __device__ __forceinline__ int place_in_row(int row, int element)
{
    return SHIFTED ? (element + 4 * row) % LENGTH : element;
}

// The tile transposed: four neighbours of a row of the matrix go to four rows. SHIFTED: see place_in_row.
template <int THREADS, bool SHIFTED = false, int HEIGHT, int WIDTH>
__device__ __forceinline__ void copy_transposed4(float (&tile)[WIDTH][HEIGHT],
                                                 const float *__restrict__ matrix, unsigned thread, int row,
                                                 int col, int rows, int cols)
{
    static_assert(WIDTH % 4 == 0 && HEIGHT * WIDTH / 4 % THREADS == 0, "threads must share float4s evenly");
#pragma unroll
    for (int i = 0; i < HEIGHT * WIDTH / 4 / THREADS; ++i) {
        const int y = (i * THREADS + thread) / (WIDTH / 4);
        const int x = (i * THREADS + thread) % (WIDTH / 4) * 4;
        const float4 tmp = load4(matrix, row + y, col + x, rows, cols);
        tile[x][place_in_row<HEIGHT, SHIFTED>(x, y)] = tmp.x;
        tile[x + 1][place_in_row<HEIGHT, SHIFTED>(x + 1, y)] = tmp.y;
        tile[x + 2][place_in_row<HEIGHT, SHIFTED>(x + 2, y)] = tmp.z;
        tile[x + 3][place_in_row<HEIGHT, SHIFTED>(x + 3, y)] = tmp.w;
    }
}
