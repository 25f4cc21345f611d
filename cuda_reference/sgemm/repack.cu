// A matrix copied to whole tiles, the rest of which are zeros: the launch before split_k.cu.
//
//   nvcc -arch=sm_80 -cubin repack.cu
//   grid ceil(HEIGHT / 8) * ceil(PITCH / 128), block (32, 8)
//
// Elements have 32 bits of whatever format: ROWS x COLUMNS in X, HEIGHT x PITCH in Y.

#include "../repacking.cuh"

#ifndef HEIGHT
#define HEIGHT ROWS
#define PITCH ((COLUMNS + 3) / 4 * 4) // a multiple of 4
#endif

extern "C" __global__ void __launch_bounds__(256)
sgemm_repack(const uint32_t *__restrict__ X, uint32_t *__restrict__ Y, int ROWS, int COLUMNS)
{
#ifdef SIZE_ROWS
    ROWS = SIZE_ROWS, COLUMNS = SIZE_COLUMNS;
#endif
    copy_to_aligned_rows(X, Y, ROWS, COLUMNS, HEIGHT, PITCH, blockIdx.x);
}

// A copy of another matrix may stand below.
#undef HEIGHT
#undef PITCH
