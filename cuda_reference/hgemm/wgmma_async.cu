// HGEMM by wgmma: a ring of K tiles filled by cp.async, and a group of wgmma always in flight.
//
//   nvcc -arch=sm_90a -cubin wgmma_async.cu
//   grid (ceil(N/BN), ceil(M/BM)), block (128, CONSUMERS)
//   dynamic shared memory: STAGES stages of (BM + BN) * BK elements
//
// As wgmma.cu, but nothing waits for what it has just started. Copies run STAGES - 2 K tiles ahead. An
// iteration starts the products of its K tile and waits for those of the K tile before, so that the tensor
// cores have the next ones when they are done. That is why two stages are not ahead: one is multiplied, and
// the other was multiplied in the iteration before. One barrier per K tile says both that its copies are
// there for all threads, and that all warpgroups are done with the stage that is filled next. Where rows do
// not start on 16 bytes, copies are of single elements and not asynchronous.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "../sizes.cuh"
#include "async_copies.cuh"
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
#define STAGES 4    // of the pipeline; each holds a K tile
#endif

constexpr int THREADS = CONSUMERS * WARPGROUP;
constexpr int HEIGHT = BM / CONSUMERS; // of a warpgroup's tile
constexpr int AHEAD = STAGES - 2;      // K tiles that are copied before they are multiplied
using Operands = KTile<BM, BN, NT>;
static_assert(BK == K_TILE, "a row of a K tile is 128 bytes");
static_assert(AHEAD > 0, "a K tile must be copied while others are multiplied");

extern "C" __global__ void __launch_bounds__(THREADS, 1)
hgemm_wgmma_async(const IN *__restrict__ A, const IN *__restrict__ B, OUT *__restrict__ C, int M, int N,
                  int K)
{
#ifdef SIZE_M
    fix_sizes<SIZE_M, SIZE_N, SIZE_K>(M, N, K);
#endif
    extern __shared__ __align__(1024) unsigned char shared[];
    const int block_row = blockIdx.y * BM, block_col = blockIdx.x * BN;
    const int first_row = threadIdx.y * HEIGHT; // of the warpgroup in the block tile
    const int k_tiles = (K + BK - 1) / BK;

    const auto copy = [&](int k_tile) {
        if (k_tile < k_tiles)
            Operands::copy<THREADS, AsyncCopy<ALIGNED>>(shared + k_tile % STAGES * Operands::BYTES, A, B,
                                                        block_row, block_col, k_tile * BK, M, N, K);
        commit_copies(); // an empty group at the end, so that all iterations count alike
    };
#pragma unroll
    for (int k_tile = 0; k_tile < AHEAD; ++k_tile)
        copy(k_tile);

    WarpgroupTile<HEIGHT, BN, ACC, IN, !NT> tile;
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
        wait_for_copies(AHEAD - 1);
        fence_async_proxy(); // wgmma sees what this thread has copied,
        __syncthreads();     // and what the others have
        const unsigned stage = shared_address(shared) + k_tile % STAGES * Operands::BYTES;
        tile.multiply(stage + first_row * ROW_BYTES, stage + Operands::BYTES_OF_A, k_tile > 0);
        copy(k_tile + AHEAD); // into the stage of the K tile before the last
        wait_for_products<1>();
    }
    tile.complete();
    tile.store<ALIGNED>(C, block_row + first_row, block_col, M, N);
}
