// HGEMM on tensor cores: C goes through shared memory and from there to global memory in long pieces.
//
//   nvcc -arch=sm_80 -cubin wmma_staged_epilogue.cu
//   grid (ceil(N/BN), ceil(M/BM)), block (32, BM/WM * BN/WN)
//   dynamic shared memory: STAGES tiles of A and of B, or the tile of C if larger
//
// As wmma_register_pipelined.cu, except for the end. A warp that writes an accumulator to global memory
// writes pieces of 4 or 8 bytes per lane, 4 lanes to a row. These are rows of 16 bytes if accumulators are
// half, and each occupies a sector of 32. Here warps write their accumulators to shared memory, in the place
// of the tiles of A and B. Behind a barrier every warp copies whole rows that follow each other, 16 bytes at
// a time, neighbouring lanes neighbouring chunks. Rows are padded as those of A and B are, against bank
// conflicts. Sizes that are not multiples of the block tile take the same way: rows and chunks beyond C are
// left out.

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
#define PADDING 8 // halves of padding after each row of the tiles
#define STAGES 3  // tiles of A and B in shared memory
#endif

constexpr int THREADS = (BM / WM) * (BN / WN) * 32;
using TileA = PaddedTile<BM, BK, PADDING>;
using TileB = PaddedTile<NT ? BN : BK, NT ? BK : BN, PADDING>; // rows as B is stored
constexpr int STAGE = TileA::SIZE + TileB::SIZE;
constexpr int STRIDE_C = BN + 8;
static_assert(BM % WM == 0 && BN % WN == 0, "warps must cover the block tile");
static_assert(BK % FRAGMENT == 0, "tiles must consist of fragments");

extern "C" __global__ void __launch_bounds__(THREADS)
hgemm_wmma_staged_epilogue(const half *__restrict__ A, const half *__restrict__ B, ACC *__restrict__ C, int M,
                           int N, int K)
{
#ifdef SIZE_M
    fix_sizes<SIZE_M, SIZE_N, SIZE_K>(M, N, K);
#endif
    extern __shared__ __align__(128) unsigned char shared[];
    half *const stages = reinterpret_cast<half *>(shared); // of each the tile of A, then that of B

    const int block_row = blockIdx.y * BM;
    const int block_col = blockIdx.x * BN;
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
