// The work of a block that computes tile after tile of C by products of parts: as in ../hgemm/programs.cuh,
// with sums that are promoted.
#pragma once

#include "../hgemm/programs.cuh"
#include "split_tile.cuh"

// Tiles are TALL x WIDE, in stripes of STRIPE rows of tiles. WARPGROUPS multiply, each a share of the rows. A K
// tile is DEEP of K. Sums are promoted after at most LENGTH of K, each time after as many K tiles, or once, at
// the end, where LENGTH is 0. IN_TURN: 1 where warpgroups take turns. store(tile, row, col): a warpgroup's tile of C
// goes there. The block has part number `part` of K, of as many as `parts`.
template <int TALL, int WIDE, int WARPGROUPS, int STRIPE, int DEEP, int LENGTH, int IN_TURN, typename Part,
          typename Operands, int STAGE_COUNT, typename Store>
static __device__ __forceinline__ void multiply_parts(unsigned stages, Ring<Operands, STAGE_COUNT> &ring,
                                                      const CUtensorMap &A_map, const CUtensorMap &B_map, int M,
                                                      int N, int K, const Store &store, int part = 0,
                                                      int parts = 1)
{
    constexpr int HEIGHT = TALL / WARPGROUPS; // of a warpgroup's tile
    constexpr int TAKING_TURNS = IN_TURN && WARPGROUPS > 1 ? WARPGROUPS : 0;
    const int rows = (M + TALL - 1) / TALL, cols = (N + WIDE - 1) / WIDE; // of tiles
    const int all = ((K + DEEP - 1) / DEEP + parts - 1) / parts;          // K tiles of a part
    const int groups = LENGTH ? (all * DEEP + LENGTH - 1) / max(LENGTH, 1) : 1;
    const int k_tiles = (all + groups - 1) / groups * Operands::REPEATS;
    const int first = part * groups * k_tiles;
    PipelineState<STAGE_COUNT> state;
    if (threadIdx.y == WARPGROUPS) {
        RegistersOf<WARPGROUPS>::give();
        if (threadIdx.x == 0)
            for (int number = blockIdx.x; number < rows * cols; number += gridDim.x) {
                const TileOfC at = tile_in_stripes<STRIPE>(number, rows, cols);
                ring.fill(state, stages, groups * k_tiles, [&](unsigned stage, int k0, unsigned barrier) {
                    Operands::load(stage, A_map, B_map, at.row * TALL, at.col * WIDE, first + k0 / K_TILE,
                                   barrier);
                });
            }
    } else {
        RegistersOf<WARPGROUPS>::take();
        begin_turns<TAKING_TURNS>();
        const int first_row = warpgroup_number() * HEIGHT; // of the warpgroup in the block tile
        for (int number = blockIdx.x; number < rows * cols; number += gridDim.x) {
            const TileOfC at = tile_in_stripes<STRIPE>(number, rows, cols);
            PromotedTile<HEIGHT, WIDE, Part> total;
            for (int group = 0; group < groups; ++group) {
                SplitTile<HEIGHT, WIDE, DEEP, TAKING_TURNS, Part, Operands> tile;
                ring.multiply(state, stages, k_tiles, first_row * Operands::ROW / ROW_BYTES, tile);
                total.add(tile);
            }
            store(total, at.row * TALL + first_row, at.col * WIDE);
        }
        end_turns<TAKING_TURNS>();
    }
}

// C from registers, two neighbours at a time where its rows have an even number of elements.
template <typename Tile, typename Finish>
static __device__ __forceinline__ void store_sums(const Tile &tile, float *__restrict__ C, int row, int col, int M,
                                                  int N, const Finish &finish)
{
    if (N % 2 == 0)
        tile.template store<true>(C, row, col, M, N, finish);
    else
        tile.template store<false>(C, row, col, M, N, finish);
}

template <typename Tile>
static __device__ __forceinline__ void store_sums(const Tile &tile, float *__restrict__ C, int row, int col, int M,
                                                  int N)
{
    store_sums(tile, C, row, col, M, N, [](const auto &pair, int, int) { return pair; });
}

// The same for sums that are multiplied by the powers of two that their row and their column were divided by,
// the smaller one first. A sum that overflows then would also overflow in float32.
template <typename Tile>
static __device__ __forceinline__ void store_scaled(const Tile &tile, float *__restrict__ C, int row, int col, int M,
                                                    int N, const float *__restrict__ of_rows,
                                                    const float *__restrict__ of_columns)
{
    store_sums(tile, C, row, col, M, N, [&](float2 pair, int r, int c) {
        const float of_row = r < M ? of_rows[r] : 0;
        const float first = c < N ? of_columns[c] : 0, second = c + 1 < N ? of_columns[c + 1] : 0;
        return make_float2(pair.x * fminf(of_row, first) * fmaxf(of_row, first),
                           pair.y * fminf(of_row, second) * fmaxf(of_row, second));
    });
}
