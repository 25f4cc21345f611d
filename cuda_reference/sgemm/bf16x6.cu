// SGEMM by wgmma and TMA: six products of bfloat16 parts, their sums promoted to float32.
//
//   nvcc -arch=sm_90a -cubin bf16x6.cu
//   before: split_parts.cu of A and B
//   grid min(PROGRAMS, tiles of C), block (128, CONSUMERS + 1)
//   dynamic shared memory: STAGES stages of three parts of (BM + BN) * BK elements
//   maps: of A_parts, boxes of BM x BK; of B_parts, of BN x BK
//
// A float32 is the sum of three bfloat16: 24 bits. Of the nine products of parts six matter. A K tile has all
// parts of its elements: they are loaded once, and multiplied six times. Tensor cores cut their sums off, so
// after PROMOTE of K these are added to sums in float32 and begin from 0 again: GROUPS of k_tiles / groups K
// tiles each.
// Otherwise as ../hgemm/persistent.cu.

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "../dependent_launch.cuh"
#include "../sizes.cuh"
#include "../hgemm/programs.cuh"
#include "split_tile.cuh"

#ifndef BM
#define BM 128 // block tile of C: BM x BN
#define BN 192
#define BK 32        // K tile
#define CONSUMERS 2  // warpgroups that multiply, each BM / CONSUMERS rows of the block tile
#define STAGES 3     // of the pipeline; each holds a K tile
#define PROGRAMS 132 // most blocks of the grid
#define GROUP 16     // rows of tiles in a stripe
#define PROMOTE 256  // of K, after which sums are promoted
#endif

constexpr int HEIGHT = BM / CONSUMERS; // of a warpgroup's tile
using Operands = SplitKTile<BM, BN, BK, 3>;

extern "C" __global__ void __launch_bounds__((CONSUMERS + 1) * WARPGROUP, 1)
sgemm_bf16x6(const __grid_constant__ CUtensorMap A_parts_map, const __grid_constant__ CUtensorMap B_parts_map,
             float *__restrict__ C, int M, int N, int K)
{
#ifdef SIZE_M
    fix_sizes<SIZE_M, SIZE_N, SIZE_K>(M, N, K);
#endif
    extern __shared__ __align__(1024) unsigned char shared[];
    __shared__ Ring<Operands, STAGES> ring;
    begin<CONSUMERS>(ring, A_parts_map, B_parts_map);
    overlap_launches();

    const unsigned stages = shared_address(shared);
    const int rows = (M + BM - 1) / BM, cols = (N + BN - 1) / BN; // of tiles
    const int all = (K + BK - 1) / BK;                            // K tiles
    const int groups = (all * BK + PROMOTE - 1) / PROMOTE, k_tiles = (all + groups - 1) / groups;
    PipelineState<STAGES> state;
    if (threadIdx.y == CONSUMERS) {
        RegistersOf<CONSUMERS>::give();
        if (threadIdx.x == 0)
            for (int number = blockIdx.x; number < rows * cols; number += gridDim.x) {
                const TileOfC at = tile_in_stripes<GROUP>(number, rows, cols);
                ring.fill(state, stages, groups * k_tiles, [&](unsigned stage, int k0, unsigned barrier) {
                    Operands::load(stage, A_parts_map, B_parts_map, at.row * BM, at.col * BN, k0 / K_TILE, barrier);
                });
            }
    } else {
        RegistersOf<CONSUMERS>::take();
        const int first_row = threadIdx.y * HEIGHT; // of the warpgroup in the block tile
        for (int number = blockIdx.x; number < rows * cols; number += gridDim.x) {
            const TileOfC at = tile_in_stripes<GROUP>(number, rows, cols);
            PromotedTile<HEIGHT, BN, __nv_bfloat16> total;
            for (int group = 0; group < groups; ++group) {
                SplitTile<HEIGHT, BN, BK, __nv_bfloat16, Operands, SixPairs> tile;
                ring.multiply(state, stages, k_tiles, first_row * Operands::ROW / ROW_BYTES, tile);
                total.add(tile);
            }
            if (N % 2 == 0)
                total.store<true>(C, at.row * BM + first_row, at.col * BN, M, N);
            else
                total.store<false>(C, at.row * BM + first_row, at.col * BN, M, N);
        }
    }
}
