// HGEMM by wgmma and TMA: a block computes tile after tile, and copies K tiles of the next while it stores
// this one.
//
//   nvcc -arch=sm_90a -cubin persistent.cu
//   grid min(PROGRAMS, tiles of C), block (128, CONSUMERS + 1)
//   dynamic shared memory: STAGES stages of (BM + BN) * BK elements
//   maps: of A, boxes of BM x 64; of B, of BN x 64, or 64 x 64 where it is stored K x N
//
// A tile takes all shared memory of an SM, so there is one block per SM. In warp_specialized.cu a block
// begins with empty stages, and ends with stores during which tensor cores and copies rest. Here there are as
// many blocks as SMs, and each takes every PROGRAMS-th tile. The warpgroup that copies goes on with the next
// tile as long as stages are free, so when C is stored the first K tiles of the next tile have arrived.
// Stages and phases are counted over all tiles: see ring.cuh. For the order of tiles see tile_order.cuh.

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "../sizes.cuh"
#include "registers.cuh"
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
#ifndef ALIGNED
#define ALIGNED 1 // N % 8 == 0; K % 8 == 0 in any case, for the maps
#endif
#ifndef BM
#define BM 128 // block tile of C: BM x BN
#define BN 256
#define BK 64       // K tile
#define CONSUMERS 2 // warpgroups that multiply, each BM / CONSUMERS rows of the block tile
#define STAGES 4    // of the pipeline; each holds a K tile
#define PROGRAMS 132 // most blocks of the grid
#define GROUP 16     // rows of tiles in a stripe
#endif

constexpr int THREADS = (CONSUMERS + 1) * WARPGROUP;
constexpr int HEIGHT = BM / CONSUMERS; // of a warpgroup's tile
using Operands = KTile<BM, BN, NT>;
static_assert(BK == K_TILE, "a row of a K tile is 128 bytes");

extern "C" __global__ void __launch_bounds__(THREADS, 1)
hgemm_persistent(const __grid_constant__ CUtensorMap A_map, const __grid_constant__ CUtensorMap B_map,
                 OUT *__restrict__ C, int M, int N, int K)
{
#ifdef SIZE_M
    fix_sizes<SIZE_M, SIZE_N, SIZE_K>(M, N, K);
#endif
    extern __shared__ __align__(1024) unsigned char shared[];
    __shared__ Ring<Operands, STAGES> ring;
    const unsigned stages = shared_address(shared);
    const int rows = (M + BM - 1) / BM, cols = (N + BN - 1) / BN; // of tiles
    const int k_tiles = (K + BK - 1) / BK;

    if (threadIdx.x == 0 && threadIdx.y == CONSUMERS) {
        prefetch_map(A_map);
        prefetch_map(B_map);
        ring.initialise(CONSUMERS);
    }
    __syncthreads();

    PipelineState<STAGES> state;
    if (threadIdx.y == CONSUMERS) {
        RegistersOf<CONSUMERS>::give();
        if (threadIdx.x == 0)
            for (int number = blockIdx.x; number < rows * cols; number += gridDim.x) {
                const TileOfC at = tile_in_stripes<GROUP>(number, rows, cols);
                ring.fill(state, stages, k_tiles, [&](unsigned stage, int k0, unsigned barrier) {
                    Operands::load(stage, A_map, B_map, at.row * BM, at.col * BN, k0, barrier);
                });
            }
    } else {
        RegistersOf<CONSUMERS>::take();
        const int first_row = warpgroup_number() * HEIGHT; // of the warpgroup in the block tile
        for (int number = blockIdx.x; number < rows * cols; number += gridDim.x) {
            const TileOfC at = tile_in_stripes<GROUP>(number, rows, cols);
            WarpgroupTile<HEIGHT, BN, ACC, IN, !NT> tile;
            ring.multiply(state, stages, k_tiles, first_row, tile);
            tile.store<ALIGNED>(C, at.row * BM + first_row, at.col * BN, M, N);
        }
    }
}
