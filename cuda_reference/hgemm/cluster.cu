// HGEMM by wgmma and TMA: blocks in pairs, which read their columns of B once for both.
//
//   nvcc -arch=sm_90a -cubin cluster.cu
//   grid min(PROGRAMS, CLUSTER * tiles of CLUSTER * BM x BN), block (128, CONSUMERS + 1), clusters of CLUSTER
//   dynamic shared memory: STAGES stages of (BM + BN) * BK elements, and behind them for each of CONSUMERS
//   min(BOXES, boxes of its tile) boxes of 8 KiB
//   maps: of A, boxes of BM x 64; of B, of BN / CLUSTER x 64, or 64 x 64 where it is stored K x N; of C,
//   boxes of 64 rows of 128 bytes
//
// L2 delivers less than all SMs could multiply: a block tile of 128 x 256 needs 48 bytes per cycle. The
// blocks of a cluster have tiles one below the other, with the same columns of B. Each loads its part of the
// K tile of B for all of them (multicast), so that B leaves L2 once: 32 bytes per cycle.
// A stage is now filled by all blocks of the cluster. `full` still counts only bytes, whichever block copies
// them. But a block must know that a stage is free in every block before it fills it: a warp that is done
// tells all of them, and `empty` counts the warps of all. No block may end while another may still write into
// its shared memory or wait for it. A cluster takes tiles of CLUSTER * BM rows. At the last tile a block may
// be wholly beyond C: it loads zeros from beyond A, and stores nothing.

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "../sizes.cuh"
#include "registers.cuh"
#include "result_boxes.cuh"
#include "ring.cuh"
#include "k_tile.cuh"
#include "tile_order.cuh"
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
#ifndef BM
#define BM 128 // block tile of C: BM x BN
#define BN 256
#define BK 64       // K tile
#define CONSUMERS 2 // warpgroups that multiply, each BM / CONSUMERS rows of the block tile
#define STAGES 4    // of the pipeline; each holds a K tile
#define PROGRAMS 132 // most blocks of the grid
#define BOXES 2     // of C that a warpgroup has in shared memory
#define GROUP 16     // rows of clusters' tiles in a stripe
#endif
#ifndef CLUSTER
#define CLUSTER 2 // blocks that share their columns of B
#endif

constexpr int THREADS = (CONSUMERS + 1) * WARPGROUP;
constexpr int HEIGHT = BM / CONSUMERS; // of a warpgroup's tile
using Operands = KTile<BM, BN, NT>;
using Result = ResultBoxes<HEIGHT, BN, OUT, BOXES>;
static_assert(BK == K_TILE, "a row of a K tile is 128 bytes");

extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, 1)
hgemm_cluster(const __grid_constant__ CUtensorMap A_map, const __grid_constant__ CUtensorMap B_map,
              const __grid_constant__ CUtensorMap C_map, int M, int N, int K)
{
#ifdef SIZE_M
    fix_sizes<SIZE_M, SIZE_N, SIZE_K>(M, N, K);
#endif
    extern __shared__ __align__(1024) unsigned char shared[];
    __shared__ Ring<Operands, STAGES, CLUSTER> ring;
    const unsigned stages = shared_address(shared), block = block_in_cluster();
    const int rows = (M + CLUSTER * BM - 1) / (CLUSTER * BM), cols = (N + BN - 1) / BN; // of clusters' tiles
    const int k_tiles = (K + BK - 1) / BK;
    const int first = blockIdx.x / CLUSTER, step = gridDim.x / CLUSTER; // the cluster's tiles

    if (threadIdx.x == 0 && threadIdx.y == CONSUMERS) {
        prefetch_map(A_map);
        prefetch_map(B_map);
        prefetch_map(C_map);
        ring.initialise(CONSUMERS);
    }
    sync_cluster(); // no block may copy to barriers that are not there yet

    PipelineState<STAGES> state;
    if (threadIdx.y == CONSUMERS) {
        RegistersOf<CONSUMERS>::give();
        if (threadIdx.x == 0)
            for (int number = first; number < rows * cols; number += step) {
                const TileOfC at = tile_in_stripes<GROUP>(number, rows, cols);
                ring.fill(state, stages, k_tiles, [&](unsigned stage, int k0, unsigned barrier) {
                    Operands::load_shared<CLUSTER>(stage, A_map, B_map, (at.row * CLUSTER + block) * BM,
                                                   at.col * BN, k0, barrier, block);
                });
            }
        if (threadIdx.x == 0)
            ring.drain(state);
    } else {
        RegistersOf<CONSUMERS>::take();
        const int first_row = warpgroup_number() * HEIGHT; // of the warpgroup in the block tile
        const unsigned places = stages + STAGES * Operands::BYTES + threadIdx.y * Result::BYTES;
        for (int number = first; number < rows * cols; number += step) {
            const TileOfC at = tile_in_stripes<GROUP>(number, rows, cols);
            WarpgroupTile<HEIGHT, BN, ACC, IN, !NT> tile;
            ring.multiply(state, stages, k_tiles, first_row, tile);
            store_through<Result>(places, tile, C_map, (at.row * CLUSTER + block) * BM + first_row,
                                  at.col * BN);
        }
        if (threadIdx.x == 0)
            wait_until_stores_have_read();
    }
}
