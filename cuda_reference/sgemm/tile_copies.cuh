// Copies of tiles to shared memory by all threads of a block.
#pragma once

// Element (row, col) of a row-major matrix, zero where it lies beyond it.
__device__ __forceinline__ float load(const float *__restrict__ matrix, int row, int col, int rows, int cols)
{
    return row < rows && col < cols ? matrix[row * cols + col] : 0.0f;
}

// Elements (row, col) to (row, col + COUNT - 1) go to neighbours in shared memory. All are read before the
// first is stored: with no guard between the stores nvcc makes wide ones of them, as it does without guards.
template <int COUNT>
__device__ __forceinline__ void copy_neighbours(float *to, const float *__restrict__ matrix, int row, int col,
                                                int rows, int cols)
{
    float value[COUNT];
#pragma unroll
    for (int e = 0; e < COUNT; ++e)
        value[e] = load(matrix, row, col + e, rows, cols);
#pragma unroll
    for (int e = 0; e < COUNT; ++e)
        to[e] = value[e];
}

// The tile of a matrix that starts at (row, col), neighbouring threads taking neighbouring elements.
template <int THREADS, int HEIGHT, int WIDTH>
__device__ __forceinline__ void copy_tile(float (&tile)[HEIGHT][WIDTH], const float *__restrict__ matrix,
                                          int thread, int row, int col, int rows, int cols)
{
    static_assert(HEIGHT * WIDTH % THREADS == 0, "threads must share the copy evenly");
#pragma unroll
    for (int i = 0; i < HEIGHT * WIDTH / THREADS; ++i) {
        const int y = (i * THREADS + thread) / WIDTH;
        const int x = (i * THREADS + thread) % WIDTH;
        tile[y][x] = load(matrix, row + y, col + x, rows, cols);
    }
}
