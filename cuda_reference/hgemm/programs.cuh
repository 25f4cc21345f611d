// What a block does that computes tile after tile of C: a warpgroup copies slabs, the others multiply them.
#pragma once

#include "registers.cuh"
#include "ring.cuh"
#include "slabs.cuh"
#include "tile_order.cuh"
#include "warpgroup_tile.cuh"

// Tiles of BM x BN, in stripes of GROUP rows of tiles, of which each of CONSUMERS warpgroups has a share.
// first, slabs: of the slabs along K, the first one's k and how many there are. store(tile, row, col): a
// warpgroup's tile of C goes there.
template <int BM, int BN, int CONSUMERS, int GROUP, typename Sum, typename Element, bool B_ALONG_K,
          typename Operands, int STAGES, typename Store>
static __device__ __forceinline__ void
multiply_tiles(unsigned slots, Ring<Operands, STAGES> &ring, const CUtensorMap &A_map,
               const CUtensorMap &B_map, int M, int N, int first, int slabs, const Store &store)
{
    constexpr int HEIGHT = BM / CONSUMERS;                        // of a warpgroup's tile
    const int rows = (M + BM - 1) / BM, cols = (N + BN - 1) / BN; // of tiles
    Turn<STAGES> turn;
    if (threadIdx.y == CONSUMERS) {
        keep_registers<RegistersOf<CONSUMERS>::PRODUCER>();
        if (threadIdx.x == 0)
            for (int number = blockIdx.x; number < rows * cols; number += gridDim.x) {
                const TileOfC at = tile_in_stripes<GROUP>(number, rows, cols);
                ring.fill(turn, slots, slabs, [&](unsigned slot, int k0, unsigned barrier) {
                    Operands::load(slot, A_map, B_map, at.row * BM, at.col * BN, first + k0, barrier);
                });
            }
    } else {
        take_registers<RegistersOf<CONSUMERS>::CONSUMER>();
        const int first_row = threadIdx.y * HEIGHT; // of the warpgroup in the block tile
        for (int number = blockIdx.x; number < rows * cols; number += gridDim.x) {
            const TileOfC at = tile_in_stripes<GROUP>(number, rows, cols);
            WarpgroupTile<HEIGHT, BN, Sum, Element, B_ALONG_K> tile;
            ring.multiply(turn, slots, slabs, first_row, tile);
            store(tile, at.row * BM + first_row, at.col * BN);
        }
    }
}
