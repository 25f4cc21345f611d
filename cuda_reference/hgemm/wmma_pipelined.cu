// HGEMM on tensor cores: a multistage buffer, copies two tiles ahead and one barrier per tile.
//
//   nvcc -arch=sm_80 -cubin wmma_pipelined.cu
//   grid (ceil(N/BN), ceil(M/BM)), block (32, BM/WM * BN/WN)
//   dynamic shared memory: STAGES tiles of A and of B, or one of C if larger and the block tile does not
//     divide M and N
//
// As wmma_async.cu, but with 3 stages in shared memory, a tile of A and one of B in each. A slower warp may
// still read the stage of the current tile. With three stages the copies refill that of the tile before,
// which every warp has finished. So one barrier is enough:
//     multiply; start the copies two tiles ahead; wait for those of the next tile; barrier
// Behind the barrier a thread knows that the next tile has arrived from all threads, and that all warps have
// finished this one. The next copies go to its stage, and have the whole next iteration to arrive.
// The drain multiplies the last two tiles, and waits for all copies between them. The multistage buffer, its
// order and its drain are those of article 001, "Optimizing Half-Precision GEMM with Tensor Cores".
// More than 48 KiB of shared memory take cudaFuncAttributeMaxDynamicSharedMemorySize. Whether a GPU has so
// much for a block is sharedMemPerBlockOptin; the article asks for sharedMemPerMultiprocessor, which is more.

#include <cuda_fp16.h>
#include <mma.h>

#include "../sizes.cuh"
#include "async_copies.cuh"
#include "wmma_result.cuh"

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
static_assert(BM % WM == 0 && BN % WN == 0, "warps must cover the block tile");
static_assert(STAGES >= 2, "one tile must be under way while another is read");
static_assert(BK % FRAGMENT == 0, "tiles must consist of fragments");

extern "C" __global__ void __launch_bounds__(THREADS)
hgemm_wmma_pipelined(const half *__restrict__ A, const half *__restrict__ B, ACC *__restrict__ C, int M,
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
    int stage = 0;           // where the tiles are that are multiplied
    int refill = STAGES - 1; // where those STAGES - 1 iterations later are copied to
    const auto advance = [&] {
        refill = stage;
        stage = stage == STAGES - 1 ? 0 : stage + 1;
    };
    const auto multiply_tiles = [&] {
        const half *const tile = stages + stage * STAGE;
#pragma unroll
        for (int step = 0; step < BK / FRAGMENT; ++step) {
            Operands<WM, WN, NT> operands;
            operands.load(tile + warp_a, TileA::STRIDE, tile + warp_b, TileB::STRIDE, step);
            accumulators.add(operands);
        }
    };

    for (int i = 0; i < STAGES - 1; ++i)
        copy(i, i * BK);
    wait_for_copies(STAGES - 2);
    __syncthreads(); // the first tiles have arrived from all threads
    for (int k0 = (STAGES - 1) * BK; k0 < K; k0 += BK) {
        multiply_tiles();
        copy(refill, k0);
        wait_for_copies(STAGES - 2);
        __syncthreads(); // the next tiles have arrived from all threads; no warp reads these any more
        advance();
    }

#pragma unroll 1 // unrolled it takes more registers than the loop above
    for (int pending = STAGES - 2; pending >= 0; --pending) { // the drain: all copies are under way
        multiply_tiles();
        if (pending > 0) {
            wait_for_copies<STAGES - 3>(pending - 1);
            __syncthreads();
            advance();
        }
    }

    store_result<BM, BN, THREADS>(C, accumulators, shared, block_row, block_col, warp_row, warp_col, M, N);
}
