// SGEMM by wgmma, of three parts of bfloat16 that are made on the way: those of A in registers, those of B in shared
// memory. Six products are added.
//
//   nvcc -arch=sm_90a -cubin bf16x6_fused.cu
//   grid (ceil(N/BN), ceil(M/BM), parts), block (32, BM/16)
//   dynamic shared memory: STAGES * (BM * (BK + 8) + BK * (BN + 4)) floats, with NT STAGES * (BM + BN) * (BK + 8),
//   the tiles of A, then those of B. The parts of a tile of B are in 6 * BN * BK bytes of static shared memory
//   C: a matrix of M x N for each part of K. If there are several, their rows are padded to multiples of 16
//   bytes, and split_k_sum.cu adds them up
//
// A float32 is the sum of three bfloat16: 24 bits. Of the nine products of parts six matter. Tiles are copied
// as float32 by cp.async. A warp splits its 16 rows of A, and all warps together the columns of B: there is
// no launch before. Tensor cores truncate their sums. So after BK elements along K these are added to sums in
// float32, and begin from 0 again. The launch takes SPLITS, the most parts of K: if it is 0, the shape
// decides.

#include "../dependent_launch.cuh"
#include "../sizes.cuh"
#include "mma_blocks.cuh"
#include "split_rows.cuh"

#ifndef BM
#define BM 64 // block tile of C: BM x BN
#define BN 64
#define BK 32 // K tile, after which sums are promoted
#define WM 16 // warp tile of C: WM x WN
#define WN 64
#define STAGES 3 // tiles of A and of B in shared memory
#define SPLITS 0 // parts of K
#endif
#ifndef NT
#define NT 0 // B is stored K x N; 1: N x K
#endif

// Floats of rows of tiles. What pads them keeps lanes of a fragment in different banks.
constexpr int A_ROW = BK + 8, B_ROW = NT ? BK + 8 : BN + 4;
using Block = TilesByMma<BM, BN, BK, WM, WN, STAGES, A_ROW, B_ROW, NT, true>;

extern "C" __global__ void __launch_bounds__(Block::THREADS)
sgemm_bf16x6_fused(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C, int M, int N, int K)
{
    overlap_launches();
#ifdef SIZE_M
    fix_sizes<SIZE_M, SIZE_N, SIZE_K>(M, N, K);
#endif
    extern __shared__ __align__(16) float shared[];
    const auto multiply = [](float &sum, const float *a, const float *b) {
        multiply_split_rows<BN, BK, A_ROW, B_ROW, Block::WARPS, NT>(sum, a, b);
    };
    Block::multiply_part(A, B, C, M, N, K, shared, multiply);
}
