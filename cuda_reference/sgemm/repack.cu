// A matrix copied to whole tiles, the rest of which are zeros: the launch before split_k.cu.
//
//   nvcc -arch=sm_80 -cubin repack.cu
//   grid ceil(Y_ROWS / 8) * ceil(Y_COLUMNS / 128), block (32, 8)
//
// Elements have 32 bits of whatever format: ROWS x COLUMNS in X, Y_ROWS x Y_COLUMNS in Y.

#include "../repacking.cuh"

#ifndef Y_ROWS
#define Y_ROWS ROWS
#define Y_COLUMNS ((COLUMNS + 3) / 4 * 4) // a multiple of 4
#endif

extern "C" __global__ void __launch_bounds__(256)
sgemm_repack(const uint32_t *__restrict__ X, uint32_t *__restrict__ Y, int ROWS, int COLUMNS)
{
#ifdef SIZE_ROWS
    ROWS = SIZE_ROWS, COLUMNS = SIZE_COLUMNS;
#endif
    copy_to_aligned_rows(X, Y, ROWS, COLUMNS, Y_ROWS, Y_COLUMNS, blockIdx.x);
}

// A copy of another matrix may stand below.
#undef Y_ROWS
#undef Y_COLUMNS
