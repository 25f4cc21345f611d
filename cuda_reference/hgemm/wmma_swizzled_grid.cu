// HGEMM on tensor cores: a threadblock swizzle in serpentine order, so that blocks find more of A and B in
// the L2 cache.
//
//   nvcc -arch=sm_80 -cubin wmma_swizzled_grid.cu
//   grid (S, ceil(M/BM), ceil(N/BN) / S) with S = gcd(ceil(N/BN), THREADBLOCK_SWIZZLE)
//   block (32, BM/WM * BN/WN)
//   dynamic shared memory: STAGES tiles of A and of B, or the tile of C if larger
//
// As wmma_staged_epilogue.cu, except for which block computes which tile. A GPU starts blocks in the order of
// x, then y, then z. With a grid as wide as C, the blocks that run at the same time fill few rows of blocks:
// they share A but read all of B. Here C is cut into groups of S block columns, one for each z. The blocks of
// a group run row by row. They share the columns of B, and S blocks share each row of A. Every other
// group runs upwards: it starts with the rows of A that the last one ended with. With it all
// techniques of article 001, "Optimizing Half-Precision GEMM with Tensor Cores", are there. Its kernel has
// groups of 16 columns whatever N is (PARTIAL_GROUP 1), and sizes must be whole tiles. Its code differs
// from two sentences of its text: odd groups run upwards, not even ones, and CEIL_DIV rounds up.

#include <cuda_fp16.h>
#include <mma.h>

#include "../sizes.cuh"
#include "fragment_pipeline.cuh"
#include "wmma_tiles.cuh"

#ifndef NT
#define NT 1 // B is stored N x K (1) or K x N (0)
#endif
#ifndef ACC
#define ACC half // type of the accumulators and of C: half or float
#endif
#ifndef ALIGNED
#define ALIGNED 1 // whether K and N are multiples of 8, so that all rows start on 16 bytes
#endif
#ifndef BM
#define BM 256 // block tile of C: BM x BN
#define BN 128
#define BK 32 // extent of the tiles of A and B along K
#define WM 64 // warp tile of C: WM x WN
#define WN 64
#define PADDING 8              // halves of padding after each row of the tiles
#define STAGES 3               // tiles of A and B in shared memory
#define THREADBLOCK_SWIZZLE 16 // most block columns that the grid walks together
#define PARTIAL_GROUP 0        // whether S is THREADBLOCK_SWIZZLE, and the last group may be narrower
#endif

constexpr int THREADS = (BM / WM) * (BN / WN) * 32;
using TileA = PaddedTile<BM, BK, PADDING>;
using TileB = PaddedTile<NT ? BN : BK, NT ? BK : BN, PADDING>; // rows as B is stored
constexpr int STAGE = TileA::SIZE + TileB::SIZE;
constexpr int STRIDE_C = BN + 8;
static_assert(BM % WM == 0 && BN % WN == 0, "warps must cover the block tile");
static_assert(BK % FRAGMENT == 0, "tiles must consist of fragments");

extern "C" __global__ void __launch_bounds__(THREADS)
hgemm_wmma_swizzled_grid(const half *__restrict__ A, const half *__restrict__ B, ACC *__restrict__ C, int M,
                         int N, int K)
{
#ifdef SIZE_M
    fix_sizes<SIZE_M, SIZE_N, SIZE_K>(M, N, K);
#endif
    extern __shared__ __align__(128) unsigned char shared[];
    half *const stages = reinterpret_cast<half *>(shared); // of each the tile of A, then that of B

    // Serpentine: down a group of gridDim.x block columns, up the next one.
    const int block_row = (blockIdx.z % 2 ? gridDim.y - 1 - blockIdx.y : blockIdx.y) * BM;
    const int block_col = (blockIdx.z * gridDim.x + blockIdx.x) * BN;
    if (PARTIAL_GROUP && block_col >= N)
        return;
    const int warp_row = threadIdx.y / (BN / WN) * WM; // where the warp's tile starts in the block's
    const int warp_col = threadIdx.y % (BN / WN) * WN;
    const int warp_a = TileA::offset(warp_row, 0);
    const int warp_b = TileA::SIZE + (NT ? TileB::offset(warp_col, 0) : TileB::offset(0, warp_col));

    const auto copy = [&](int stage, int k0) { // what lies beyond K becomes zeros
        copy_tiles<TileA, TileB, NT, THREADS, AsyncCopy<ALIGNED>>(stages + stage * STAGE, A, B, block_row,
                                                                  block_col, k0, M, N, K);
        commit_copies();
    };

    Accumulators<WM, WN, ACC> accumulators;
    Operands<WM, WN, NT> operands[2];
    const auto read = [&](int set, int stage, int step) {
        const half *const tile = stages + stage * STAGE;
        operands[set].load(tile + warp_a, TileA::STRIDE, tile + warp_b, TileB::STRIDE, step);
    };
    const auto multiply = [&](int set) { accumulators.add(operands[set]); };
    run_fragment_pipeline<STAGES, BK, BK / FRAGMENT>(K, copy, read, multiply);

    ACC *const tile_c = reinterpret_cast<ACC *>(shared);
    __syncthreads(); // the tiles of A and B are no longer used
    accumulators.store(tile_c + warp_row * STRIDE_C + warp_col, STRIDE_C);
    __syncthreads();
    write_tile<BM, BN, STRIDE_C, THREADS, ALIGNED>(C, tile_c, block_row, block_col, M, N);
}
