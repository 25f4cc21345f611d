// A matrix copied so that its rows start with a line of L2: the launch before repacked.cu.
//
//   nvcc -arch=sm_80 -cubin repack.cu
//   grid ceil(ROWS / 8) * ceil(COLUMNS / 256), block (32, 8)
//
// Elements have 16 bits in any format. Y has rows of COLUMNS of them, filled with zeros up to a multiple of
// 128 bytes.

#include "../dependent_launch.cuh"
#include "repacking.cuh"

extern "C" __global__ void __launch_bounds__(256)
hgemm_repack(const uint16_t *__restrict__ X, uint16_t *__restrict__ Y, int ROWS, int COLUMNS)
{
    overlap_launches();
#ifdef SIZE_ROWS
    ROWS = SIZE_ROWS, COLUMNS = SIZE_COLUMNS;
#endif
    copy_to_lines(X, Y, ROWS, COLUMNS, blockIdx.x);
}
