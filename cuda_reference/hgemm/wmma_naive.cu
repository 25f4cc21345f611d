// HGEMM on tensor cores, the simplest way: a warp computes one 16x16 tile of C with fragments from global
// memory.
//
//   nvcc -arch=sm_80 -cubin wmma_naive.cu
//   grid (ceil(N/BN), ceil(M/BM)), block (32, BM/WM * BN/WN)
//   dynamic shared memory: none where tiles divide the shape, else those of A and B, or of C if larger and
//     tiles do not divide it
//
// A fragment is a 16x16 tile of a matrix spread over the registers of a warp; only wmma knows which lane has
// which element.
// For each 16 of K a warp reads a fragment of A and one of B and multiplies them into its accumulator, a
// fragment of C.
// Nothing is shared: every warp reads all of its 16 rows of A and 16 columns of B.
// wmma reads and writes whole fragments with rows on 16 bytes. If the matrices do not consist of whole
// fragments, the fragments come from shared memory, where all threads put the block's tiles element by
// element, filled up with zeros. If tiles reach beyond C, C also goes through shared memory.

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
#ifndef BM
#define BM 32 // block tile of C: BM x BN
#define BN 64
#define BK 16 // extent of the tiles of A and B along K
#define WM 16 // warp tile of C: WM x WN
#define WN 16
#endif

constexpr int THREADS = (BM / WM) * (BN / WN) * 32;
using TileA = PaddedTile<BM, BK, 0>;
using TileB = PaddedTile<NT ? BN : BK, NT ? BK : BN, 0>; // rows as B is stored
static_assert(WM == FRAGMENT && WN == FRAGMENT, "a warp must compute one tile");
static_assert(BM % WM == 0 && BN % WN == 0 && BK % FRAGMENT == 0, "tiles must consist of fragments");

extern "C" __global__ void __launch_bounds__(THREADS)
hgemm_wmma_naive(const half *__restrict__ A, const half *__restrict__ B, ACC *__restrict__ C, int M, int N,
                 int K)
{
#ifdef SIZE_M
    fix_sizes<SIZE_M, SIZE_N, SIZE_K>(M, N, K);
#endif
    const int block_row = blockIdx.y * BM;
    const int block_col = blockIdx.x * BN;
    const int warp_row = threadIdx.y / (BN / WN) * WM; // where the warp's tile starts in the block's
    const int warp_col = threadIdx.y % (BN / WN) * WN;

    Accumulators<WM, WN, ACC> accumulator;
    // Adds the product of `extent` columns of a and rows of b, which start at a and b.
    const auto multiply = [&](const half *a, int stride_a, const half *b, int stride_b, int extent) {
        for (int k = 0; k < extent; k += FRAGMENT) {
            Operands<WM, WN, NT> operands;
            operands.load(a + k, stride_a, b + (NT ? k : k * stride_b), stride_b, 0);
            accumulator.add(operands);
        }
    };

    extern __shared__ __align__(128) unsigned char shared[];
    if (M % BM == 0 && N % BN == 0 && K % BK == 0) {
        const int col = block_col + warp_col;
        multiply(A + (block_row + warp_row) * K, K, B + (NT ? col * K : col), NT ? K : N, K);
    } else {
        half *const tile_a = reinterpret_cast<half *>(shared);
        half *const tile_b = tile_a + TileA::SIZE;
        for (int k0 = 0; k0 < K; k0 += BK) {
            __syncthreads(); // no warp reads the previous tiles any more
            copy_tiles<TileA, TileB, NT, THREADS, ElementCopy>(tile_a, A, B, block_row, block_col, k0,
                                                                       M, N, K);
            __syncthreads();
            multiply(tile_a + TileA::offset(warp_row, 0), TileA::STRIDE,
                     tile_b + (NT ? TileB::offset(warp_col, 0) : TileB::offset(0, warp_col)), TileB::STRIDE,
                     BK);
        }
    }
    store_result<BM, BN, THREADS>(C, accumulator, shared, block_row, block_col, warp_row, warp_col, M, N);
}
