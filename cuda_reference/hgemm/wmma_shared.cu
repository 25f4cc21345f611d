// HGEMM on tensor cores: block tiles in shared memory, a tile of C in the registers of each warp.
//
//   nvcc -arch=sm_80 -cubin wmma_shared.cu
//   grid (ceil(N/BN), ceil(M/BM)), block (32, BM/WM * BN/WN)
//   dynamic shared memory: a tile of A and one of B, or one of C if larger and the block tile does not divide
//     M and N
//
// For each tile along K all threads copy a tile of A and one of B to shared memory, 16 bytes at a time. Each
// warp copies consecutive rows. The barrier before the copy waits until no warp reads the previous tiles, and
// the barrier after it until all threads have copied. Then every warp multiplies its WM rows of A by its WN
// columns of B: for each 16 of K it reads WM/16 fragments of A and WN/16 of B and multiplies every one with
// every other, so it uses several times what it reads. Copies put zeros where a tile lies beyond the matrix.
// If the block tile divides M and N, warps write their part of C straight to global memory; if not, it goes
// through shared memory, from where all threads copy the elements that C has.

#include <cuda_fp16.h>
#include <mma.h>

#include "../sizes.cuh"
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
#endif

constexpr int THREADS = (BM / WM) * (BN / WN) * 32;
using TileA = PaddedTile<BM, BK, 0>;
using TileB = PaddedTile<NT ? BN : BK, NT ? BK : BN, 0>; // rows as B is stored
static_assert(BM % WM == 0 && BN % WN == 0, "warps must cover the block tile");
static_assert(BK % FRAGMENT == 0, "tiles must consist of fragments");

extern "C" __global__ void __launch_bounds__(THREADS)
hgemm_wmma_shared(const half *__restrict__ A, const half *__restrict__ B, ACC *__restrict__ C, int M, int N,
                  int K)
{
#ifdef SIZE_M
    fix_sizes<SIZE_M, SIZE_N, SIZE_K>(M, N, K);
#endif
    extern __shared__ __align__(128) unsigned char shared[];
    half *const tile_a = reinterpret_cast<half *>(shared);
    half *const tile_b = tile_a + TileA::SIZE;

    const int block_row = blockIdx.y * BM;
    const int block_col = blockIdx.x * BN;
    const int warp_row = threadIdx.y / (BN / WN) * WM; // where the warp's tile starts in the block's
    const int warp_col = threadIdx.y % (BN / WN) * WN;
    const half *const warp_a = tile_a + TileA::offset(warp_row, 0);
    const half *const warp_b = tile_b + (NT ? TileB::offset(warp_col, 0) : TileB::offset(0, warp_col));

    Accumulators<WM, WN, ACC> accumulators;
    for (int k0 = 0; k0 < K; k0 += BK) {
        __syncthreads(); // no warp reads the previous tiles any more
        copy_tiles<TileA, TileB, NT, THREADS, PlainCopy<ALIGNED>>(tile_a, A, B, block_row, block_col, k0,
                                                                  M, N, K);
        __syncthreads();
#pragma unroll
        for (int step = 0; step < BK / FRAGMENT; ++step) {
            Operands<WM, WN, NT> operands;
            operands.load(warp_a, TileA::STRIDE, warp_b, TileB::STRIDE, step);
            accumulators.add(operands);
        }
    }
    store_result<BM, BN, THREADS>(C, accumulators, shared, block_row, block_col, warp_row, warp_col, M, N);
}
