// HGEMM on tensor cores by PTX mma: a deep multistage buffer under an XOR swizzle, and a main loop with
// little beside mma.
//
//   nvcc -arch=sm_80 -cubin mma_multistage.cu
//   grid (S, ceil(M/BM), ceil(N/BN) / S) with S = gcd(ceil(N/BN), THREADBLOCK_SWIZZLE)
//   block (32, BM/WM * BN/WN)
//   dynamic shared memory: the larger of STAGES * (BM + BN) * BK halves and BM * (BN + 8) sums
//
// There is one barrier per tile. After it all warps have the last fragments of the tile, so the copy of the
// tile STAGES further on starts into its stage. The drain multiplies the last STAGES tiles, when all copies
// are under way. Fragments are double buffered in registers: ldmatrix fetches those of the next k step, even
// if that is in the next tile, while mma multiplies those of this one. The ragged tile along K comes first,
// where the prologue fills it with zeros, and rows or columns beyond the matrix are not tested: see
// advancing_copies.cuh. So the loop has no test. Tiles are 64 deep: 16 bytes of 8 neighbouring lanes are a
// whole line of global memory and a whole line of shared memory. With tiles 32 deep a line of shared memory
// comes from two of global memory, which takes twice the wavefronts.
// The XOR swizzle of tiles is that of mma_xor_swizzle.cu, the threadblock swizzle that of
// wmma_swizzled_grid.cu.

#include <cuda_fp16.h>

#include "../sizes.cuh"
#include "advancing_copies.cuh"
#include "mma_tiles.cuh"
#include "xor_swizzle.cuh"

#ifndef NT
#define NT 1 // B is stored N x K, else K x N
#endif
#ifndef ACC
#define ACC half // accumulators: half or float
#endif
#ifndef OUT
#define OUT ACC // elements of C: half or float
#endif
#ifndef ALIGNED
#define ALIGNED 1 // K % 8 == 0 and N % 8 == 0
#endif
#ifndef BM
#define BM 256 // block tile of C: BM x BN
#define BN 128
#define BK 64 // extent of the tiles of A and B along K
#define WM 64 // warp tile of C: WM x WN
#define WN 64
#define STAGES 3               // tiles of A and of B in shared memory
#define THREADBLOCK_SWIZZLE 16 // most block columns that the grid walks together
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 1 // per SM: bounds the registers
#endif

constexpr int THREADS = (BM / WM) * (BN / WN) * 32;
constexpr int STEPS = BK / 16; // k steps of a tile: an mma is 16 x 8 x 16
using TileA = SwizzledTile<BM, BK>;
using TileB = SwizzledTile<NT ? BN : BK, NT ? BK : BN>; // rows as B is stored
constexpr int STAGE = TileA::SIZE + TileB::SIZE;
constexpr int STRIDE_C = BN + 8;
static_assert(BM % WM == 0 && BN % WN == 0, "warps must cover the block tile");
static_assert(BK % 32 == 0, "the two buffers of fragments must take turns");
static_assert(NT || (WN & (WN - 1)) == 0, "an XOR must lead from the warp's first column to the others");
static_assert(STAGES >= 2, "a tile must be copied while others are read");

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
hgemm_mma_multistage(const half *__restrict__ A, const half *__restrict__ B, OUT *__restrict__ C, int M,
                     int N, int K)
{
#ifdef SIZE_M
    fix_sizes<SIZE_M, SIZE_N, SIZE_K>(M, N, K);
#endif
    extern __shared__ __align__(128) unsigned char shared[];
    half *const stages = reinterpret_cast<half *>(shared); // of each the tile of A, then that of B
    const unsigned lane = threadIdx.x;
    const int block_row = (blockIdx.z % 2 ? gridDim.y - 1 - blockIdx.y : blockIdx.y) * BM;
    const int block_col = (blockIdx.z * gridDim.x + blockIdx.x) * BN;
    const int warp_row = threadIdx.y / (BN / WN) * WM; // where the warp's tile starts in the block's
    const int warp_col = threadIdx.y % (BN / WN) * WN;

    AdvancingCopies<TileA, THREADS, false, ALIGNED> a_copies = {A, block_row, M, K};
    AdvancingCopies<TileB, THREADS, !NT, ALIGNED> b_copies = {B, block_col, N, NT ? K : N};

    // The lane's addresses for ldmatrix in k step 0, as in mma_xor_swizzle.cu, in bytes. The next step is two
    // chunks further: another XOR.
    const unsigned a_lane = 2 * TileA::offset(warp_row + lane % 16, lane / 16 * 8);
    const unsigned b_lane = 2 * (NT ? TileB::offset(warp_col + lane % 8 + lane / 16 * 8, lane / 8 % 2 * 8)
                                    : TileB::offset(lane % 16, warp_col + lane / 16 * 8));
    MmaOperands<WM, WN> operands[2];
    int stage = 0; // where the tiles begin that are multiplied
    const auto load_fragments = [&](int step) {
        auto &[a, b] = operands[step % 2];
        const unsigned tile_a = shared_address(shared) + stage * 2, tile_b = tile_a + TileA::SIZE * 2;
#pragma unroll
        for (int i = 0; i < WM / 16; ++i)
            load_matrices<false>(a[i], tile_a + (a_lane ^ step * 32) + i * 16 * BK * 2);
#pragma unroll
        for (int j = 0; j < WN / 16; ++j)
            load_matrices<!NT>(b[j],
                               tile_b + (NT ? (b_lane ^ step * 32) + j * 16 * BK * 2
                                            : (b_lane ^ j % 4 * 32) + j / 4 * 128 + step * 16 * BN * 2));
    };

    MmaAccumulators<WM, WN, ACC> accumulators;
    // Multiplies the tiles whose first fragments are there. pending: how many tiles may be under way when the
    // first fragments of the next are read; -1 if there are none. copying: whether a tile is left to copy.
    const auto multiply_tiles = [&](int pending, bool copying) {
#pragma unroll
        for (int step = 0; step < STEPS; ++step) {
            if (step < STEPS - 1) {
                load_fragments(step + 1);
            } else if (pending >= 0) {
                wait_for_copies<STAGES - 2>(pending); // the next tiles are there
                __syncthreads();                      // for all warps; and all are done with these
                half *const free_stage = stages + stage;
                stage = stage == (STAGES - 1) * STAGE ? 0 : stage + STAGE;
                load_fragments(0);
                if (copying) {
                    a_copies.template copy<true>(free_stage, BK);
                    b_copies.template copy<true>(free_stage + TileA::SIZE, BK);
                    commit_copies();
                }
            }
            accumulators.template add<true>(operands[step % 2]);
        }
    };

    const int tiles = (K + BK - 1) / BK;
#pragma unroll
    for (int tile = 0; tile < STAGES; ++tile) {
        const int extent = tile == 0 ? K - (tiles - 1) * BK : tile < tiles ? BK : 0;
        a_copies.copy<false>(stages + tile * STAGE, extent);
        b_copies.copy<false>(stages + tile * STAGE + TileA::SIZE, extent);
        commit_copies();
    }
    wait_for_copies(STAGES - 1);
    __syncthreads();
    load_fragments(0);
    for (int tile = STAGES; tile < tiles; ++tile)
        multiply_tiles(STAGES - 2, true);

#pragma unroll 1
    for (int pending = STAGES - 2; pending >= 0; --pending) // the drain: all copies are under way
        multiply_tiles(pending, false);
    multiply_tiles(-1, false);

    ACC *const tile_c = reinterpret_cast<ACC *>(shared);
    __syncthreads(); // the tiles of A and B are no longer used
    accumulators.store(tile_c + warp_row * STRIDE_C + warp_col, STRIDE_C);
    __syncthreads();
    write_tile<BM, BN, STRIDE_C, THREADS, ALIGNED>(C, tile_c, block_row, block_col, M, N);
}
