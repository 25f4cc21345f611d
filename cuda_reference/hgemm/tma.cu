// HGEMM by wgmma: one thread has the copy engine (TMA) fill the ring, and barriers count bytes.
//
//   nvcc -arch=sm_90a -cubin tma.cu
//   grid (ceil(N/BN), ceil(M/BM)), block (128, CONSUMERS)
//   dynamic shared memory: STAGES stages of (BM + BN) * BK elements
//   maps: of A, boxes of BM x 64; of B, of BN x 64, or 64 x 64 where it is stored K x N
//
// As wgmma_async.cu, except for the copies. There each thread computes addresses, one for every 16 bytes, and
// starts, counts and awaits its own copies. Here a K tile is one instruction of one thread, or a few: a box
// at a coordinate. Swizzle and edges are in the tensor map. No fence is needed, because copies and wgmma
// belong to the same proxy. A stage has a barrier. Its phase ends when all bytes of the K tile have arrived
// and every thread has arrived, so it also replaces __syncthreads. A thread arrives, and waits by its token
// for the phase in which it arrived, so no thread counts phases.

#include <cuda.h>
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
#define ALIGNED 1 // N % 8 == 0; K % 8 == 0 in any case, for the maps
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
hgemm_tma(const __grid_constant__ CUtensorMap A_map, const __grid_constant__ CUtensorMap B_map,
          OUT *__restrict__ C, int M, int N, int K)
{
#ifdef SIZE_M
    fix_sizes<SIZE_M, SIZE_N, SIZE_K>(M, N, K);
#endif
    extern __shared__ __align__(1024) unsigned char shared[];
    __shared__ unsigned long long barriers[STAGES];
    const int block_row = blockIdx.y * BM, block_col = blockIdx.x * BN;
    const int first_row = threadIdx.y * HEIGHT; // of the warpgroup in the block tile
    const int k_tiles = (K + BK - 1) / BK;
    const bool loads = threadIdx.x == 0 && threadIdx.y == 0;

    if (loads) {
        for (int stage = 0; stage < STAGES; ++stage)
            initialise_barrier(shared_address(&barriers[stage]), THREADS + 1);
        publish_barriers();
    }
    __syncthreads();

    const auto load = [&](int k_tile) {
        if (loads && k_tile < k_tiles) {
            const unsigned barrier = shared_address(&barriers[k_tile % STAGES]);
            arrive_announcing(barrier, Operands::BYTES);
            Operands::load(shared_address(shared) + k_tile % STAGES * Operands::BYTES, A_map, B_map, block_row,
                           block_col, k_tile * BK, barrier);
        }
    };
#pragma unroll
    for (int k_tile = 0; k_tile < AHEAD; ++k_tile)
        load(k_tile);

    WarpgroupTile<HEIGHT, BN, ACC, IN, !NT> tile;
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
        // The K tile is there, and all threads are in this iteration.
        arrive_and_wait(shared_address(&barriers[k_tile % STAGES]));
        const unsigned stage = shared_address(shared) + k_tile % STAGES * Operands::BYTES;
        tile.multiply(stage + first_row * ROW_BYTES, stage + Operands::BYTES_OF_A, k_tile > 0);
        load(k_tile + AHEAD); // into the stage of the K tile before the last
        wait_for_products<1>();
    }
    tile.complete();
    tile.store<ALIGNED>(C, block_row + first_row, block_col, M, N);
}
