// HGEMM on Hopper's tensor cores: wgmma multiplies straight from shared memory.
//
//   nvcc -arch=sm_90a -cubin wgmma.cu
//   grid (ceil(N/BN), ceil(M/BM)), block (128, CONSUMERS)
//   dynamic shared memory: a K tile of A and one of B, (BM + BN) * BK elements
//
// mma needs its operands in registers: a warp reads every element of its tiles from shared memory by
// ldmatrix, and its neighbours read most of them again. wgmma takes them from shared memory itself, for 64
// rows and up to 256 columns at once. Registers hold only sums, so a warpgroup has 64 x 256 of them, where a
// warp had 64 x 64, and reads a fraction of the bytes per product.
// Two things are new. First, wgmma runs beside the threads, in what PTX calls the async proxy: it sees stores
// of threads only after a fence for this proxy. Second, it takes operands only in layouts that it knows: here
// rows of 128 bytes under the XOR swizzle of mma_xor_swizzle.cu.
// There is one K tile of each operand, copied through registers: tensor cores and copies wait for each other.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "../sizes.cuh"
#include "k_tile.cuh"
#include "warpgroup_tile.cuh"

#ifndef NT
#define NT 1 // B is stored N x K, else K x N
#endif
#ifndef ACC
#define ACC half // sums: half or float
#endif
#ifndef IN
#define IN half // elements of A and B: half or __nv_bfloat16
#endif
#ifndef OUT
#define OUT ACC // elements of C: half, __nv_bfloat16 or float
#endif
#ifndef ALIGNED
#define ALIGNED 1 // K % 8 == 0 and N % 8 == 0
#endif
#ifndef BM
#define BM 128 // block tile of C: BM x BN
#define BN 256
#define BK 64       // K tile
#define CONSUMERS 2 // warpgroups, each with BM / CONSUMERS rows of the block tile
#endif

constexpr int THREADS = CONSUMERS * WARPGROUP;
constexpr int HEIGHT = BM / CONSUMERS; // of a warpgroup's tile
using Operands = KTile<BM, BN, NT>;
static_assert(BK == K_TILE, "a row of a K tile is 128 bytes");

extern "C" __global__ void __launch_bounds__(THREADS, 1)
hgemm_wgmma(const IN *__restrict__ A, const IN *__restrict__ B, OUT *__restrict__ C, int M, int N, int K)
{
#ifdef SIZE_M
    fix_sizes<SIZE_M, SIZE_N, SIZE_K>(M, N, K);
#endif
    extern __shared__ __align__(1024) unsigned char shared[];
    const int block_row = blockIdx.y * BM, block_col = blockIdx.x * BN;
    const int first_row = threadIdx.y * HEIGHT; // of the warpgroup in the block tile
    const unsigned stage = shared_address(shared);

    WarpgroupTile<HEIGHT, BN, ACC, IN, !NT> tile;
    for (int k0 = 0; k0 < K; k0 += BK) {
        __syncthreads(); // all products of the K tiles before are done
        Operands::copy<THREADS, PlainCopy<ALIGNED>>(shared, A, B, block_row, block_col, k0, M, N, K);
        fence_async_proxy(); // wgmma sees what this thread has stored,
        __syncthreads();     // and what the others have
        tile.multiply(stage + first_row * ROW_BYTES, stage + Operands::BYTES_OF_A, k0 > 0);
        tile.complete();
    }
    tile.store<ALIGNED>(C, block_row + first_row, block_col, M, N);
}
