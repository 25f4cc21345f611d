// HGEMM by wgmma: one thread has the copy engine (TMA) fill the ring, and barriers count bytes.
//
//   nvcc -arch=sm_90a -cubin tma.cu
//   grid (ceil(N/BN), ceil(M/BM)), block (128, CONSUMERS)
//   dynamic shared memory: STAGES slots of (BM + BN) * BK elements
//   maps: of A, boxes of BM x 64; of B, of BN x 64, or 64 x 64 where it is stored K x N
//
// As wgmma_async.cu, but for the copies. There each thread computes addresses, one for every 16 bytes, and
// starts, counts and awaits its own copies. Here a slab is one instruction of one thread, or a few: a box at
// a coordinate. Swizzle and edges are in the tensor map. No fence is needed, as copies and wgmma are of the
// same proxy.
// A slot has a barrier. Its phase ends when all bytes of the slab are there and every thread has arrived: so
// it stands for __syncthreads, too. A thread arrives and waits for the phase in which it did, by its token:
// nobody counts phases.

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "../sizes.cuh"
#include "slabs.cuh"
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
#define BK 64       // extent of the slabs along K
#define CONSUMERS 2 // warpgroups, each with BM / CONSUMERS rows of the block tile
#define STAGES 4    // slots for slabs
#endif

constexpr int THREADS = CONSUMERS * WARPGROUP;
constexpr int HEIGHT = BM / CONSUMERS; // of a warpgroup's tile
constexpr int AHEAD = STAGES - 2;      // slabs that are copied before they are multiplied
using Operands = Slabs<BM, BN, NT>;
static_assert(BK == SLAB, "a row of a slab is 128 bytes");
static_assert(AHEAD > 0, "a slab must be copied while others are multiplied");

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
    const int slabs = (K + BK - 1) / BK;
    const bool loads = threadIdx.x == 0 && threadIdx.y == 0;

    if (loads) {
        for (int slot = 0; slot < STAGES; ++slot)
            initialise_barrier(shared_address(&barriers[slot]), THREADS + 1);
        publish_barriers();
    }
    __syncthreads();

    const auto load = [&](int slab) {
        if (loads && slab < slabs) {
            const unsigned barrier = shared_address(&barriers[slab % STAGES]);
            arrive_announcing(barrier, Operands::BYTES);
            Operands::load(shared_address(shared) + slab % STAGES * Operands::BYTES, A_map, B_map, block_row,
                           block_col, slab * BK, barrier);
        }
    };
#pragma unroll
    for (int slab = 0; slab < AHEAD; ++slab)
        load(slab);

    WarpgroupTile<HEIGHT, BN, ACC, IN, !NT> tile;
    for (int slab = 0; slab < slabs; ++slab) {
        // The slab is there, and all threads are in this turn.
        arrive_and_wait(shared_address(&barriers[slab % STAGES]));
        const unsigned slot = shared_address(shared) + slab % STAGES * Operands::BYTES;
        tile.multiply(slot + first_row * SLAB_ROW, slot + Operands::BYTES_OF_A, slab > 0);
        load(slab + AHEAD); // into the slot of the slab before the last
        wait_for_products<1>();
    }
    tile.complete();
    tile.store<ALIGNED>(C, block_row + first_row, block_col, M, N);
}
