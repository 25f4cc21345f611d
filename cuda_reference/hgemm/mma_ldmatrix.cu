// HGEMM on tensor cores by PTX mma, with fragments from ldmatrix, in place of wmma.
//
//   nvcc -arch=sm_80 -cubin mma_ldmatrix.cu
//   grid (S, ceil(M/BM), ceil(N/BN) / S) with S = gcd(ceil(N/BN), THREADBLOCK_SWIZZLE)
//   block (32, BM/WM * BN/WN)
//   dynamic shared memory: the larger of STAGES tiles of A and of B and BM * (BN + PADDING) elements of C
//   with one stage grid (ceil(N/BN), ceil(M/BM)); dynamic shared memory as in wmma_padded.cu
//
// wmma hides which lane holds which elements; mma documents it, and ldmatrix loads them so: see
// mma_tiles.cuh. Pipeline, staged epilogue and grid are those of wmma_swizzled_grid.cu, where article 001,
// "Optimizing Half-Precision GEMM with Tensor Cores", ends. With STAGES 1 there is no pipeline, and C comes
// straight from registers, as in wmma_padded.cu. This is the form of the program that article 004, "Why does
// padding resolve bank conflicts?", links to, where B is stored K x N.

#include <cuda_fp16.h>

#include "../sizes.cuh"
#include "fragment_pipeline.cuh"
#include "mma_tiles.cuh"
#include "wmma_result.cuh"

#ifndef NT
#define NT 1 // B is stored N x K, else K x N
#endif
#ifndef ACC
#define ACC half // accumulator and element of C: half or float
#endif
#ifndef ALIGNED
#define ALIGNED 1 // K % 8 == 0 and N % 8 == 0
#endif
#ifndef BM
#define BM 256 // block tile of C: BM x BN
#define BN 128
#define BK 32 // extent of the tiles of A and B along K
#define WM 64 // warp tile of C: WM x WN
#define WN 64
#define PADDING 8              // elements that pad each row in shared memory
#define STAGES 3               // tiles of A and of B in shared memory
#define THREADBLOCK_SWIZZLE 16 // most block columns that the grid walks together
#endif

constexpr int THREADS = (BM / WM) * (BN / WN) * 32;
using TileA = PaddedTile<BM, BK, PADDING>;
using TileB = PaddedTile<NT ? BN : BK, NT ? BK : BN, PADDING>; // rows as B is stored
constexpr int STAGE = TileA::SIZE + TileB::SIZE;
constexpr int STRIDE_C = BN + PADDING;
static_assert(BM % WM == 0 && BN % WN == 0, "warps must cover the block tile");

extern "C" __global__ void __launch_bounds__(THREADS)
hgemm_mma_ldmatrix(const half *__restrict__ A, const half *__restrict__ B, ACC *__restrict__ C, int M, int N,
                   int K)
{
#ifdef SIZE_M
    fix_sizes<SIZE_M, SIZE_N, SIZE_K>(M, N, K);
#endif
    extern __shared__ __align__(128) unsigned char shared[];
    half *const stages = reinterpret_cast<half *>(shared); // of each the tile of A, then that of B
    const int lane = threadIdx.x;

    const int block_row = (blockIdx.z % 2 ? gridDim.y - 1 - blockIdx.y : blockIdx.y) * BM;
    const int block_col = (blockIdx.z * gridDim.x + blockIdx.x) * BN;
    const int warp_row = threadIdx.y / (BN / WN) * WM; // where the warp's tile starts in the block's
    const int warp_col = threadIdx.y % (BN / WN) * WN;

    using Copy = std::conditional_t<STAGES == 1, PlainCopy<ALIGNED>, AsyncCopy<ALIGNED>>;
    const auto copy = [&](int stage, int k0) { // what lies beyond K becomes zeros
        copy_tiles<TileA, TileB, NT, THREADS, Copy>(stages + stage * STAGE, A, B, block_row, block_col, k0, M,
                                                    N, K);
        if (STAGES > 1)
            commit_copies();
    };

    // The lane's row of four matrices at the start of the warp's tile. Those of a start at (row 0, k 0), (8,
    // 0), (0, 8), (8, 8); those of b, for two mmas, at (column 0, k 0), (0, 8), (8, 0), (8, 8). Where B is
    // stored N x K, rows in shared memory are columns of b, as mma wants them; where it is stored K x N they
    // are rows of b, and ldmatrix transposes them.
    const int a_lane = TileA::offset(warp_row + lane % 16, lane / 16 * 8);
    const int b_lane =
        TileA::SIZE + (NT ? TileB::offset(warp_col + lane / 16 * 8 + lane % 8, lane / 8 % 2 * 8)
                          : TileB::offset(lane % 16, warp_col + lane / 16 * 8));
    MmaOperands<WM, WN> operands[2];
    const auto read = [&](int set, int stage, int step) {
        auto &[a, b] = operands[set];
        const half *const tile = stages + stage * STAGE;
#pragma unroll
        for (int i = 0; i < WM / 16; ++i)
            load_matrices<false>(a[i], shared_address(tile + a_lane + TileA::offset(i * 16, step * 16)));
#pragma unroll
        for (int j = 0; j < WN / 16; ++j)
            load_matrices<!NT>(b[j], shared_address(tile + b_lane + (NT ? TileB::offset(j * 16, step * 16)
                                                                        : TileB::offset(step * 16, j * 16))));
    };

    MmaAccumulators<WM, WN, ACC> accumulators;
    const auto multiply = [&](int set) { accumulators.add(operands[set]); };
#if STAGES == 1
    for (int k0 = 0; k0 < K; k0 += BK) {
        __syncthreads(); // no warp reads the previous tiles any more
        copy(0, k0);
        __syncthreads();
#pragma unroll
        for (int step = 0; step < BK / 16; ++step) {
            read(0, 0, step);
            multiply(0);
        }
    }
    store_result<BM, BN, THREADS>(C, accumulators, shared, block_row, block_col, warp_row, warp_col, M, N);
#else
    run_fragment_pipeline<STAGES, BK, BK / 16>(K, copy, read, multiply);

    ACC *const tile_c = reinterpret_cast<ACC *>(shared);
    __syncthreads(); // the tiles of A and B are no longer used
    accumulators.store(tile_c + warp_row * STRIDE_C + warp_col, STRIDE_C);
    __syncthreads();
    write_tile<BM, BN, STRIDE_C, THREADS, ALIGNED>(C, tile_c, block_row, block_col, M, N);
#endif
}
