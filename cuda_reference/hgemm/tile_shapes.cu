// HGEMM by wgmma and TMA whose tiles have a free side: as many as fill the SMs, with A and B swapped or not.
//
//   nvcc -arch=sm_90a -cubin tile_shapes.cu
//   grid CLUSTER * min(PROGRAMS / CLUSTER, tiles of C / CLUSTER), block (128, CONSUMERS + 1),
//   CLUSTER = CLUSTER_M * CLUSTER_N blocks of a cluster
//   dynamic shared memory: STAGES stages of (BM + BN) * BK elements, and behind them BOXES boxes of C for each
//   warpgroup that multiplies
//   maps: of A, boxes of BM / CLUSTER_N x 64; of B, of BN / CLUSTER_M x 64, or 64 x 64 where it is stored
//   K x N; of C, boxes as in result_boxes.cuh
//
// As tma_store.cu, with one side of a tile as free as wgmma's columns. With SWAP it computes C^T = B^T A^T:
// the rows of wgmma, multiples of 64, are columns of C, and its columns, here multiples of 16, are rows of C.
// With PART_COLUMNS each of the warpgroups that multiply has all rows of a tile, as wgmma has them, and some
// of the columns. Blocks of a cluster have neighbouring tiles, and each loads half of what both need for both.
// Rows of A, B and C must be multiples of 16 bytes.

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "../dependent_launch.cuh"
#include "../sizes.cuh"
#include "programs.cuh"

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
#define BK 64        // K tile
#define CONSUMERS 2  // warpgroups that multiply
#define STAGES 4     // of the pipeline; each holds a K tile
#define PROGRAMS 132 // most blocks of the grid
#define BOXES 2      // of C that a warpgroup has in shared memory
#define GROUP 16     // rows of tiles in a stripe
#define SWAP 0       // 1: A and B change places
#define PART_COLUMNS 0 // 1: warpgroups part a tile along wgmma's columns, else along its rows
#define CLUSTER_M 1    // blocks of a cluster along the rows of C
#define CLUSTER_N 1    // and along its columns
#endif

// What is X and Y below: the operand that has the rows of wgmma, and the one that has its columns.
constexpr int TALL = SWAP ? BN : BM, WIDE = SWAP ? BM : BN;                // extents of a tile
constexpr bool X_BY_ROWS = SWAP ? NT : true, Y_BY_ROWS = SWAP ? true : NT; // rows of the matrix go along k
constexpr int STACKED = SWAP ? CLUSTER_N : CLUSTER_M, BESIDE = SWAP ? CLUSTER_M : CLUSTER_N;
constexpr int BLOCKS = STACKED * BESIDE;
constexpr int HEIGHT = PART_COLUMNS ? TALL : TALL / CONSUMERS; // of a warpgroup's tile
constexpr int WIDTH = PART_COLUMNS ? WIDE / CONSUMERS : WIDE;
static_assert(BK == K_TILE, "a row of a K tile is 128 bytes");
static_assert(STACKED == 1 || BESIDE == 1, "blocks of a cluster share one of the operands");

// The K tile of a block: of X, and behind it of Y.
struct Operands {
    static constexpr int BYTES_OF_A = TALL * ROW_BYTES, BYTES = BYTES_OF_A + WIDE * ROW_BYTES;

    static __device__ __forceinline__ void load(unsigned stage, const CUtensorMap &X_map,
                                                const CUtensorMap &Y_map, int x, int y, int k0,
                                                unsigned barrier, unsigned block)
    {
        load_operand<TALL, X_BY_ROWS, BESIDE>(stage, X_map, x, k0, barrier, block);
        load_operand<WIDE, Y_BY_ROWS, STACKED>(stage + BYTES_OF_A, Y_map, y, k0, barrier, block);
    }
};

#if SWAP
using Boxes = TransposedBoxes<HEIGHT, WIDTH, OUT, BOXES>;
#else
using Boxes = ResultBoxes<HEIGHT, WIDTH, OUT, BOXES>;
#endif

extern "C" __global__ void __cluster_dims__(BLOCKS, 1, 1) __launch_bounds__((CONSUMERS + 1) * WARPGROUP, 1)
hgemm_tile_shapes(const __grid_constant__ CUtensorMap A_map, const __grid_constant__ CUtensorMap B_map,
                  const __grid_constant__ CUtensorMap C_map, int M, int N, int K)
{
#ifdef SIZE_M
    fix_sizes<SIZE_M, SIZE_N, SIZE_K>(M, N, K);
#endif
    extern __shared__ __align__(1024) unsigned char shared[];
    __shared__ Ring<Operands, STAGES, BLOCKS> ring;
    const unsigned stages = shared_address(shared), block = block_in_cluster();
    const CUtensorMap &X_map = SWAP ? B_map : A_map, &Y_map = SWAP ? A_map : B_map;
    const int X = SWAP ? N : M, Y = SWAP ? M : N, k_tiles = (K + BK - 1) / BK;
    const int rows = (X + TALL * STACKED - 1) / (TALL * STACKED); // of tiles of whole clusters
    const int cols = (Y + WIDE * BESIDE - 1) / (WIDE * BESIDE);

    begin<CONSUMERS>(ring, A_map, B_map, C_map);
    overlap_launches();

    // work(x, y) for each tile of the block.
    const auto for_each_tile = [&](const auto &work) {
        for (int number = blockIdx.x / BLOCKS; number < rows * cols; number += gridDim.x / BLOCKS) {
            const TileOfC at = tile_in_stripes<GROUP>(number, rows, cols);
            work((at.row * STACKED + (STACKED > 1 ? block : 0)) * TALL,
                 (at.col * BESIDE + (BESIDE > 1 ? block : 0)) * WIDE);
        }
    };

    PipelineState<STAGES> state;
    if (threadIdx.y == CONSUMERS) {
        RegistersOf<CONSUMERS>::give();
        if (threadIdx.x == 0)
            for_each_tile([&](int x, int y) {
                ring.fill(state, stages, k_tiles, [&](unsigned stage, int k0, unsigned barrier) {
                    Operands::load(stage, X_map, Y_map, x, y, k0, barrier, block);
                });
            });
    } else {
        RegistersOf<CONSUMERS>::take();
        const unsigned places = stages + STAGES * Operands::BYTES + threadIdx.y * Boxes::BYTES;
        const int first_row = PART_COLUMNS ? 0 : threadIdx.y * HEIGHT; // of the warpgroup in the block tile
        const int first_col = PART_COLUMNS ? threadIdx.y * WIDTH : 0;
        for_each_tile([&](int x, int y) {
            WarpgroupTile<HEIGHT, WIDTH, ACC, IN, !Y_BY_ROWS, !X_BY_ROWS> tile;
            ring.multiply(state, stages, k_tiles, first_row, tile, first_col);
            const int row = SWAP ? y + first_col : x + first_row, col = SWAP ? x + first_row : y + first_col;
            store_through<Boxes>(places, tile, C_map, row, col);
        });
        if (threadIdx.x == 0)
            wait_until_stores_have_read();
    }
    if constexpr (BLOCKS > 1) // no block ends while the other copies to it or arrives there
        sync_cluster();
}
