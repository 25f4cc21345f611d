// SGEMM by mma: three products of float16 parts of scaled rows and columns.
//
//   nvcc -arch=sm_80 -cubin fp16x3_mma.cu
//   before: split_scaled.cu of A and B, with K tiles of BK
//   grid (ceil(N/BN), ceil(M/BM), parts), block (32, BM/WM * BN/WN)
//   dynamic shared memory: STAGES * (BM + BN) * (BK + 4) floats, the tiles of A, then those of B
//   C: a matrix of M x N for each part. If there are several, their rows are padded to multiples of 16 bytes,
//   and split_k_sum.cu adds them up. B_scales is filled up like a row.
//
// As bf16x6_mma.cu. Two parts of an element take the bytes of a float, so their tiles are copied as those of
// float32 are, and warps read fragments of parts by ldmatrix. Rows of parts are filled up to multiples of 64
// elements, so K tiles are whole, and every copy has 16 bytes. A_scales and B_scales are the powers of two that
// rows of A and columns of B were divided by.

#include <cuda_fp16.h>

#include "../dependent_launch.cuh"
#include "../sizes.cuh"
#include "mma_blocks.cuh"
#include "part_fragments.cuh"

#ifndef BM
#define BM 64 // block tile of C: BM x BN
#define BN 64
#define BK 32 // K tile, after which sums are promoted
#define WM 32 // warp tile of C: WM x WN
#define WN 32
#define STAGES 4 // tiles of A and of B in shared memory
#define SPLITS 0 // parts of K
#endif

constexpr int ROW = BK + 4; // floats of rows of tiles: eight of them begin in different banks
using Block = TilesByMma<BM, BN, BK, WM, WN, STAGES, ROW, ROW, true>;

// The 1 lets nvcc use more registers: without it the tile 64x16 spills.
extern "C" __global__ void __launch_bounds__(Block::THREADS, 1)
sgemm_fp16x3_mma(const half *__restrict__ A_parts, const float *__restrict__ A_scales,
                 const half *__restrict__ B_parts, const float *__restrict__ B_scales, float *__restrict__ C, int M,
                 int N, int K)
{
    overlap_launches();
#ifdef SIZE_M
    fix_sizes<SIZE_M, SIZE_N, SIZE_K>(M, N, K);
#endif
    const int tiles = (K + BK - 1) / BK, row = (K + 63) / 64 * 64; // elements of a row of parts
    const int most = (tiles + gridDim.z - 1) / gridDim.z * BK, first = most * blockIdx.z;
    const int pitch = gridDim.z > 1 ? (N + 3) / 4 * 4 : N; // of a row of C
    extern __shared__ __align__(16) float shared[];
    Block::multiply<4, 4>(
        reinterpret_cast<const float *>(A_parts) + first, reinterpret_cast<const float *>(B_parts) + first,
        C + blockIdx.z * M * pitch, M, N, row, min(most, row - first), pitch, shared,
        [](float &sum, const float *a, const float *b) {
            multiply_part_tiles<WM, WN, BK, 2 * ROW>(sum, reinterpret_cast<const half *>(a),
                                                     reinterpret_cast<const half *>(b));
        },
        [&](float sum, int row, int col) {
            const float of_row = A_scales[row], of_column = B_scales[col];
            return sum * fminf(of_row, of_column) * fmaxf(of_row, of_column);
        });
}
