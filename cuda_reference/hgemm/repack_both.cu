// Two matrices copied so that their rows start with a line of L2, in one launch before split_k.cu.
//
//   nvcc -arch=sm_80 -cubin repack_both.cu
//   grid ceil(ROWS / 8) * ceil(COLUMNS / 256) + ceil(ROWS_2 / 8) * ceil(COLUMNS_2 / 256), block (32, 8)
//
// The first blocks copy X as repack.cu does, and the others copy X_2.

#include "../dependent_launch.cuh"
#include "repacking.cuh"

extern "C" __global__ void __launch_bounds__(256)
hgemm_repack_both(const uint16_t *__restrict__ X, uint16_t *__restrict__ Y, const uint16_t *__restrict__ X_2,
                  uint16_t *__restrict__ Y_2, int ROWS, int COLUMNS, int ROWS_2, int COLUMNS_2)
{
    overlap_launches();
#ifdef SIZE_ROWS
    ROWS = SIZE_ROWS, COLUMNS = SIZE_COLUMNS, ROWS_2 = SIZE_ROWS_2, COLUMNS_2 = SIZE_COLUMNS_2;
#endif
    const int first = (ROWS + 7) / 8 * ((COLUMNS + 255) / 256); // blocks
    if (blockIdx.x < first)
        copy_to_lines(X, Y, ROWS, COLUMNS, blockIdx.x);
    else
        copy_to_lines(X_2, Y_2, ROWS_2, COLUMNS_2, blockIdx.x - first);
}
