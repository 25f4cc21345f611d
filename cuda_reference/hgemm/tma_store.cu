// HGEMM by wgmma and TMA: C leaves through shared memory, by stmatrix and the copy engine.
//
//   nvcc -arch=sm_90a -cubin tma_store.cu
//   grid min(PROGRAMS, tiles of C), block (128, CONSUMERS + 1)
//   dynamic shared memory: STAGES stages of (BM + BN) * BK elements, and behind them for each of CONSUMERS
//   min(BOXES, boxes of its tile) boxes of 8 KiB
//   maps: of A, boxes of BM x 64; of B, of BN x 64, or 64 x 64 where it is stored K x N; of C, boxes of 64
//   rows of 128 bytes
//
// In persistent.cu a lane has two neighbours of a row of C, and a warp writes 8 rows of 16 or 32 bytes at
// once. These are parts of lines, written by 64 or 128 instructions with an address each, and the next
// iteration of the warpgroup waits for them. Here stmatrix puts 16 x 16 elements into shared memory at once,
// without bank conflicts under the swizzle. One thread starts the copy engine, which writes each box as soon
// as it is there, without elements beyond C. The warpgroup goes on at once with the next box or tile, whose
// place has been read by then. No thread waits until a box is written.
// Rows of C must be multiples of 16 bytes.

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
#define STAGES 3    // of the pipeline; each holds a K tile
#define PROGRAMS 132 // most blocks of the grid
#define BOXES 4     // of C that a warpgroup has in shared memory
#define GROUP 16     // rows of tiles in a stripe
#endif

constexpr int THREADS = (CONSUMERS + 1) * WARPGROUP;
constexpr int HEIGHT = BM / CONSUMERS; // of a warpgroup's tile
using Operands = KTile<BM, BN, NT>;
using Result = ResultBoxes<HEIGHT, BN, OUT, BOXES>;
static_assert(BK == K_TILE, "a row of a K tile is 128 bytes");

extern "C" __global__ void __launch_bounds__(THREADS, 1)
hgemm_tma_store(const __grid_constant__ CUtensorMap A_map, const __grid_constant__ CUtensorMap B_map,
                const __grid_constant__ CUtensorMap C_map, int M, int N, int K)
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
        prefetch_map(C_map);
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
        const unsigned places = stages + STAGES * Operands::BYTES + threadIdx.y * Result::BYTES;
        for (int number = blockIdx.x; number < rows * cols; number += gridDim.x) {
            const TileOfC at = tile_in_stripes<GROUP>(number, rows, cols);
            WarpgroupTile<HEIGHT, BN, ACC, IN, !NT> tile;
            ring.multiply(state, stages, k_tiles, first_row, tile);
            store_through<Result>(places, tile, C_map, at.row * BM + first_row, at.col * BN);
        }
        if (threadIdx.x == 0)
            wait_until_stores_have_read();
    }
}
