// SGEMM by mma: fragments are split into three parts of bfloat16 in registers, and six products added.
//
//   nvcc -arch=sm_80 -cubin bf16x6_mma.cu
//   grid (ceil(N/BN), ceil(M/BM), parts), block (32, BM/WM * BN/WN)
//   dynamic shared memory: STAGES * (BM * (BK + 8) + BK * (BN + 4)) floats, with NT STAGES * (BM + BN) * (BK + 8),
//   the tiles of A, then those of B
//   C: a matrix of M x N for each part. If there are several, their rows are padded to multiples of 16 bytes,
//   and split_k_sum.cu adds them up
//
// A float32 is the sum of three bfloat16: 24 bits. Of the nine products of parts six matter. Tiles are copied
// as float32 by cp.async, and each warp splits what it reads: there is no launch before. Tensor cores
// truncate their sums. So after BK elements along K these are added to sums in float32, and begin from 0
// again. The launch takes SPLITS, the most parts: if it is 0, the shape decides.

#include "../dependent_launch.cuh"
#include "../sizes.cuh"
#include "mma_blocks.cuh"
#include "split_fragments.cuh"

#ifndef BM
#define BM 64 // block tile of C: BM x BN
#define BN 64
#define BK 32 // K tile, after which sums are promoted
#define WM 32 // warp tile of C: WM x WN
#define WN 32
#define STAGES 4 // tiles of A and of B in shared memory
#define SPLITS 0 // parts of K
#endif
#ifndef NT
#define NT 0 // B is stored K x N; 1: N x K
#endif

// Floats of rows of tiles. What pads them keeps lanes of a fragment in different banks.
constexpr int A_ROW = BK + 8, B_ROW = NT ? BK + 8 : BN + 4;
using Block = TilesByMma<BM, BN, BK, WM, WN, STAGES, A_ROW, B_ROW, NT>;

extern "C" __global__ void __launch_bounds__(Block::THREADS)
sgemm_bf16x6_mma(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C, int M, int N, int K)
{
    overlap_launches();
#ifdef SIZE_M
    fix_sizes<SIZE_M, SIZE_N, SIZE_K>(M, N, K);
#endif
    extern __shared__ __align__(16) float shared[];
    const auto multiply = [](float &sum, const float *a, const float *b) {
        multiply_split_tiles<WM, WN, BK, A_ROW, B_ROW, NT>(sum, a, b);
    };
    Block::multiply_part(A, B, C, M, N, K, shared, multiply);
}
