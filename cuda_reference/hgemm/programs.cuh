// What a block does that computes tile after tile of C: a warpgroup copies K tiles, the others multiply them.
#pragma once

#include "registers.cuh"
#include "result_boxes.cuh"
#include "ring.cuh"
#include "k_tile.cuh"
#include "tile_order.cuh"
#include "warpgroup_tile.cuh"

// The ring before all threads use it, and maps before they are needed. WARPGROUPS: those that multiply.
// BLOCKS: of a cluster; no block may copy to barriers of another that are not there yet.
template <int WARPGROUPS, typename Operands, int STAGE_COUNT, int BLOCKS, typename... Maps>
static __device__ __forceinline__ void begin(Ring<Operands, STAGE_COUNT, BLOCKS> &ring, const Maps &...maps)
{
    if (threadIdx.x == 0 && threadIdx.y == WARPGROUPS) {
        (prefetch_map(maps), ...);
        ring.initialise(WARPGROUPS);
    }
    if constexpr (BLOCKS > 1)
        sync_cluster();
    else
        __syncthreads();
}

// Tiles are TALL x WIDE, in stripes of STRIPE rows of tiles. WARPGROUPS multiply, each a share of the rows.
// first, k_tiles: of the K tiles along K, the first one's k and how many there are. store(tile, row, col): a
// warpgroup's tile of C goes there.
template <int TALL, int WIDE, int WARPGROUPS, int STRIPE, typename Sum, typename Element, bool B_ALONG_K,
          typename Operands, int STAGE_COUNT, typename Store>
static __device__ __forceinline__ void
multiply_tiles(unsigned stages, Ring<Operands, STAGE_COUNT> &ring, const CUtensorMap &A_map,
               const CUtensorMap &B_map, int M, int N, int first, int k_tiles, const Store &store)
{
    constexpr int HEIGHT = TALL / WARPGROUPS; // of a warpgroup's tile
    const int rows = (M + TALL - 1) / TALL, cols = (N + WIDE - 1) / WIDE; // of tiles
    PipelineState<STAGE_COUNT> state;
    if (threadIdx.y == WARPGROUPS) {
        keep_registers<RegistersOf<WARPGROUPS>::PRODUCER>();
        if (threadIdx.x == 0)
            for (int number = blockIdx.x; number < rows * cols; number += gridDim.x) {
                const TileOfC at = tile_in_stripes<STRIPE>(number, rows, cols);
                ring.fill(state, stages, k_tiles, [&](unsigned stage, int k0, unsigned barrier) {
                    Operands::load(stage, A_map, B_map, at.row * TALL, at.col * WIDE, first + k0, barrier);
                });
            }
    } else {
        take_registers<RegistersOf<WARPGROUPS>::CONSUMER>();
        const int first_row = threadIdx.y * HEIGHT; // of the warpgroup in the block tile
        for (int number = blockIdx.x; number < rows * cols; number += gridDim.x) {
            const TileOfC at = tile_in_stripes<STRIPE>(number, rows, cols);
            WarpgroupTile<HEIGHT, WIDE, Sum, Element, B_ALONG_K> tile;
            ring.multiply(state, stages, k_tiles, first_row, tile);
            store(tile, at.row * TALL + first_row, at.col * WIDE);
        }
    }
}

// The same of all of K, with C through boxes, see result_boxes.cuh. They lie behind the stages.
template <int TALL, int WIDE, int WARPGROUPS, int STRIPE, typename Sum, typename Element, bool B_ALONG_K,
          typename Result, typename Operands, int STAGE_COUNT>
static __device__ __forceinline__ void
multiply_tiles_through_boxes(unsigned stages, Ring<Operands, STAGE_COUNT> &ring, const CUtensorMap &A_map,
                             const CUtensorMap &B_map, const CUtensorMap &C_map, int M, int N, int k_tiles)
{
    const unsigned places = stages + STAGE_COUNT * Operands::BYTES + threadIdx.y * Result::BYTES;
    multiply_tiles<TALL, WIDE, WARPGROUPS, STRIPE, Sum, Element, B_ALONG_K>(
        stages, ring, A_map, B_map, M, N, 0, k_tiles, [&](const auto &tile, int row, int col) {
            store_through<Result>(places, tile, C_map, row, col);
        });
    if (threadIdx.x == 0 && threadIdx.y < WARPGROUPS)
        wait_until_stores_have_read();
}
