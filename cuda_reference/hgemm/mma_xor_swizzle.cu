// HGEMM on tensor cores by PTX mma, with an XOR swizzle of tiles in shared memory instead of padding.
//
//   nvcc -arch=sm_80 -cubin mma_xor_swizzle.cu
//   grid (S, ceil(M/BM), ceil(N/BN) / S) with S = gcd(ceil(N/BN), THREADBLOCK_SWIZZLE)
//   block (32, BM/WM * BN/WN)
//   dynamic shared memory: the larger of STAGES * (BM + BN) * BK halves and BM * (BN + 8) elements of C
//
// ldmatrix reads eight rows of 16 bytes at a time, which should lie in different banks: 128 bytes, all banks
// once. Without padding the same 16-byte chunk of eight rows of 64 halves lies in the same banks. So the
// chunk c of row r is put at chunk c ^ (r % 8), an XOR swizzle: a row keeps its elements, and eight rows have
// eight different chunks where they had one. Rows of 32 halves have four chunks, and two rows fill the banks:
// there it is c ^ (r / 2 % 4). Copies of whole rows fill the banks in any order of the chunks. And because
// rows start on 128 bytes, or half of that, a copy touches fewer lines of shared memory than in padded tiles,
// which also take more space. 16 rows further on the swizzle is the same, and another chunk of a row is an
// XOR away. So ldmatrix needs one address for each k step (or, where B is K x N, for each 16 columns): the
// first address with one more XOR. Everything else is as in mma_ldmatrix.cu, which says what the lanes hold.
// C is still padded, because the swizzle moves whole chunks, but a lane stores two elements of a row.

#include <cuda_fp16.h>

#include "../sizes.cuh"
#include "fragment_pipeline.cuh"
#include "mma_tiles.cuh"
#include "xor_swizzle.cuh"

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
#define STAGES 3               // tiles of A and of B in shared memory
#define THREADBLOCK_SWIZZLE 16 // most block columns that the grid walks together
#endif

constexpr int THREADS = (BM / WM) * (BN / WN) * 32;
using TileA = SwizzledTile<BM, BK>;
using TileB = SwizzledTile<NT ? BN : BK, NT ? BK : BN>; // rows as B is stored
constexpr int STAGE = TileA::SIZE + TileB::SIZE;
constexpr int STRIDE_C = BN + 8;
static_assert(BM % WM == 0 && BN % WN == 0, "warps must cover the block tile");
static_assert(NT || (WN & (WN - 1)) == 0, "an XOR must lead from the warp's first column to the others");

extern "C" __global__ void __launch_bounds__(THREADS)
hgemm_mma_xor_swizzle(const half *__restrict__ A, const half *__restrict__ B, ACC *__restrict__ C, int M,
                      int N, int K)
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

    const auto copy = [&](int stage, int k0) { // what lies beyond K becomes zeros
        copy_tiles<TileA, TileB, NT, THREADS, AsyncCopy<ALIGNED>>(stages + stage * STAGE, A, B, block_row,
                                                                  block_col, k0, M, N, K);
        commit_copies();
    };

    // The lane's row among the matrices that make up a fragment at (0, 0) of the warp's tile, as in
    // mma_ldmatrix.cu.
    const int a_lane = TileA::offset(warp_row + lane % 16, lane / 16 * 8);
    const int b_lane = NT ? TileB::offset(warp_col + lane / 16 * 8 + lane % 8, lane / 8 % 2 * 8)
                          : TileB::offset(lane % 16, warp_col + lane / 16 * 8);
    MmaOperands<WM, WN> operands[2];
    const auto read = [&](int set, int stage, int step) {
        auto &[a, b] = operands[set];
        const half *const tile_a = stages + stage * STAGE, *const tile_b = tile_a + TileA::SIZE;
#pragma unroll
        for (int i = 0; i < WM / 16; ++i)
            load_matrices<false>(a[i], shared_address(tile_a + (a_lane ^ step * 16) + i * 16 * BK));
#pragma unroll
        for (int j = 0; j < WN / 16; ++j)
            load_matrices<!NT>(
                b[j], shared_address(tile_b + (NT ? (b_lane ^ step * 16) + j * 16 * BK
                                                  : (b_lane ^ j % 4 * 16) + j / 4 * 64 + step * 16 * BN)));
    };

    MmaAccumulators<WM, WN, ACC> accumulators;
    const auto multiply = [&](int set) { accumulators.add(operands[set]); };
    run_fragment_pipeline<STAGES, BK, BK / 16>(K, copy, read, multiply);

    ACC *const tile_c = reinterpret_cast<ACC *>(shared);
    __syncthreads(); // the tiles of A and B are no longer used
    accumulators.store(tile_c + warp_row * STRIDE_C + warp_col, STRIDE_C);
    __syncthreads();
    write_tile<BM, BN, STRIDE_C, THREADS, ALIGNED>(C, tile_c, block_row, block_col, M, N);
}
