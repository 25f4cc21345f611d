// The work of a block that computes tile after tile of C: a warpgroup copies K tiles, the others multiply
// them.
#pragma once

#include "k_tile.cuh"
#include "registers.cuh"
#include "result_boxes.cuh"
#include "ring.cuh"
#include "tile_order.cuh"
#include "warpgroup_tile.cuh"

// Attribute of a kernel with so many blocks of a cluster along the rows and columns of C. It is empty without
// clusters, because blocks in clusters of one are placed on SMs in another order.
#define IN_CLUSTERS_1_1
#define IN_CLUSTERS_2_1 __cluster_dims__(2, 1, 1)
#define IN_CLUSTERS_1_2 __cluster_dims__(2, 1, 1)
#define IN_CLUSTERS_2_2 __cluster_dims__(4, 1, 1)
#define IN_CLUSTERS_4_1 __cluster_dims__(4, 1, 1)
#define IN_CLUSTERS_1_4 __cluster_dims__(4, 1, 1)
#define IN_CLUSTERS_(BLOCKS_M, BLOCKS_N) IN_CLUSTERS_##BLOCKS_M##_##BLOCKS_N
#define IN_CLUSTERS(BLOCKS_M, BLOCKS_N) IN_CLUSTERS_(BLOCKS_M, BLOCKS_N)

// A block tile of TILE_M x TILE_N of C. MULTIPLYING: warpgroups that multiply it. B_BY_COLUMNS: B is stored
// N x K. SWAPPED: C^T = B^T A^T, the rows of wgmma are columns of C. BY_COLUMNS: warpgroups part the tile
// along the columns of wgmma, else along its rows. BLOCKS_M, BLOCKS_N: blocks of a cluster along the rows and
// the columns of C. X is the operand that has the rows of wgmma, Y the one that has its columns.
template <int TILE_M, int TILE_N, int MULTIPLYING, bool B_BY_COLUMNS, bool SWAPPED, bool BY_COLUMNS,
          int BLOCKS_M, int BLOCKS_N>
struct TileShape {
    static constexpr bool SWAPS = SWAPPED;
    static constexpr int WARPGROUPS = MULTIPLYING;
    static constexpr int TALL = SWAPPED ? TILE_N : TILE_M, WIDE = SWAPPED ? TILE_M : TILE_N;
    static constexpr bool X_BY_ROWS = SWAPPED ? B_BY_COLUMNS : true; // rows of the matrix go along k
    static constexpr bool Y_BY_ROWS = SWAPPED ? true : B_BY_COLUMNS;
    static constexpr int STACKED = SWAPPED ? BLOCKS_N : BLOCKS_M, BESIDE = SWAPPED ? BLOCKS_M : BLOCKS_N;
    static constexpr int BLOCKS = STACKED * BESIDE;
    static constexpr int HEIGHT = BY_COLUMNS ? TALL : TALL / WARPGROUPS; // of a warpgroup's tile
    static constexpr int WIDTH = BY_COLUMNS ? WIDE / WARPGROUPS : WIDE;

    // The row of a block in its cluster, as wgmma has them, and its column.
    static __device__ __forceinline__ unsigned row_of(unsigned block)
    {
        return block % STACKED;
    }

    static __device__ __forceinline__ unsigned column_of(unsigned block)
    {
        return BESIDE > 1 ? block / STACKED : 0;
    }

    // The K tile of a block: of X, and behind it of Y. Blocks in a row of the cluster need the same of X,
    // those in a column the same of Y. FIRST_ROW, FIRST_COLUMN: a bit for each block there.
    struct Operands {
        static constexpr int BYTES_OF_A = TALL * ROW_BYTES, BYTES = BYTES_OF_A + WIDE * ROW_BYTES;
        static constexpr unsigned FIRST_COLUMN = (1 << STACKED) - 1;
        static constexpr unsigned FIRST_ROW = ((1 << BLOCKS) - 1) / FIRST_COLUMN;

        static __device__ __forceinline__ void load(unsigned stage, const CUtensorMap &X_map,
                                                    const CUtensorMap &Y_map, int x, int y, int k0,
                                                    unsigned barrier, unsigned block)
        {
            const unsigned row = row_of(block), column = column_of(block);
            load_operand<TALL, X_BY_ROWS, BESIDE>(stage, X_map, x, k0, barrier, column, FIRST_ROW << row);
            load_operand<WIDE, Y_BY_ROWS, STACKED>(stage + BYTES_OF_A, Y_map, y, k0, barrier, row,
                                                   FIRST_COLUMN << column * STACKED);
        }
    };

    template <int STAGE_COUNT> using RingOf = Ring<Operands, STAGE_COUNT, STACKED, BESIDE>;

    template <typename Sum, typename Element>
    using Tile = WarpgroupTile<HEIGHT, WIDTH, Sum, Element, !Y_BY_ROWS, !X_BY_ROWS>;

    // MOST: of them, at a time.
    template <typename Result, int MOST>
    using Boxes = std::conditional_t<SWAPPED, TransposedBoxes<HEIGHT, WIDTH, Result, MOST>,
                                     ResultBoxes<HEIGHT, WIDTH, Result, MOST>>;

    // Where a warpgroup's tile begins in the block's, as wgmma has them.
    static __device__ int first_row()
    {
        return BY_COLUMNS ? 0 : warpgroup_number() * HEIGHT;
    }

    static __device__ int first_col()
    {
        return BY_COLUMNS ? warpgroup_number() * WIDTH : 0;
    }
};

// Prepares the ring before all threads use it, and the maps before they are needed. WARPGROUPS: those that
// multiply. No block of a cluster may copy to barriers of another that are not initialised yet.
template <int WARPGROUPS, typename Ring, typename... Maps>
static __device__ __forceinline__ void begin(Ring &ring, const Maps &...maps)
{
    if (threadIdx.x == 0 && threadIdx.y == WARPGROUPS) {
        (prefetch_map(maps), ...);
        ring.initialise(WARPGROUPS);
    }
    if constexpr (Ring::BLOCKS > 1)
        sync_cluster();
    else
        __syncthreads();
}

// Tiles are taken in stripes of STRIPE rows of tiles. first, k_tiles: of the K tiles along K, the first one's
// k and how many there are. store(tile, row, col): a warpgroup's tile goes to that place of C. No block ends
// while another one of its cluster copies to it or arrives there, see `drain`.
template <typename Shape, int STRIPE, typename Sum, typename Element, int STAGE_COUNT, typename Store>
static __device__ __forceinline__ void
multiply_tiles(unsigned stages, typename Shape::template RingOf<STAGE_COUNT> &ring,
               const CUtensorMap &A_map, const CUtensorMap &B_map, int M, int N, int first, int k_tiles,
               const Store &store)
{
    constexpr int STACKED = Shape::STACKED, BESIDE = Shape::BESIDE, BLOCKS = Shape::BLOCKS;
    const CUtensorMap &X_map = Shape::SWAPS ? B_map : A_map, &Y_map = Shape::SWAPS ? A_map : B_map;
    const int X = Shape::SWAPS ? N : M, Y = Shape::SWAPS ? M : N;
    const int rows = (X + Shape::TALL * STACKED - 1) / (Shape::TALL * STACKED); // of tiles of whole clusters
    const int cols = (Y + Shape::WIDE * BESIDE - 1) / (Shape::WIDE * BESIDE);
    const unsigned block = BLOCKS > 1 ? block_in_cluster() : 0;

    // work(x, y) for each tile of the block.
    const auto for_each_tile = [&](const auto &work) {
        for (int number = blockIdx.x / BLOCKS; number < rows * cols; number += gridDim.x / BLOCKS) {
            const TileOfC at = tile_in_stripes<STRIPE>(number, rows, cols);
            work((at.row * STACKED + Shape::row_of(block)) * Shape::TALL,
                 (at.col * BESIDE + Shape::column_of(block)) * Shape::WIDE);
        }
    };

    PipelineState<STAGE_COUNT> state;
    if (threadIdx.y == Shape::WARPGROUPS) {
        RegistersOf<Shape::WARPGROUPS>::give();
        if (threadIdx.x == 0)
            for_each_tile([&](int x, int y) {
                ring.fill(state, stages, k_tiles, [&](unsigned stage, int k0, unsigned barrier) {
                    Shape::Operands::load(stage, X_map, Y_map, x, y, first + k0, barrier, block);
                });
            });
        if (BLOCKS > 1 && threadIdx.x == 0)
            ring.drain(state);
    } else {
        RegistersOf<Shape::WARPGROUPS>::take();
        for_each_tile([&](int x, int y) {
            typename Shape::template Tile<Sum, Element> tile;
            ring.multiply(state, stages, k_tiles, Shape::first_row(), tile, Shape::first_col());
            const int row = x + Shape::first_row(), col = y + Shape::first_col();
            store(tile, Shape::SWAPS ? col : row, Shape::SWAPS ? row : col);
        });
    }
}

// Writes a warpgroup's tile to (row, col) of C. IN_PAIRS: rows of C have an even number of elements.
template <typename Shape, bool IN_PAIRS, typename Tile, typename Result>
static __device__ __forceinline__ void store_from_registers(const Tile &tile, Result *__restrict__ C, int row,
                                                            int col, int M, int N)
{
    if constexpr (Shape::SWAPS)
        tile.store_transposed(C, row, col, M, N);
    else
        tile.template store<IN_PAIRS>(C, row, col, M, N);
}

// Where the boxes of a warpgroup lie: behind the stages.
template <typename Shape, typename Boxes, int STAGE_COUNT>
static __device__ __forceinline__ unsigned places_of_boxes(unsigned stages)
{
    return stages + STAGE_COUNT * Shape::Operands::BYTES + threadIdx.y * Boxes::BYTES;
}

// Writes a warpgroup's tile to (row, col) of a C whose rows the copy engine does not take: by threads, through
// MOST boxes that lie behind the stages, or from registers if MOST is 0.
template <typename Shape, int STAGE_COUNT, int MOST, typename Tile, typename Result>
static __device__ __forceinline__ void store_by_threads(unsigned stages, const Tile &tile,
                                                        Result *__restrict__ C, int row, int col, int M, int N)
{
    if constexpr (MOST > 0) {
        using Boxes = typename Shape::template Boxes<Result, MOST>;
        copy_through<Boxes>(places_of_boxes<Shape, Boxes, STAGE_COUNT>(stages), tile, C, row, col, M, N);
    } else if (N % 2 == 0) {
        store_from_registers<Shape, true>(tile, C, row, col, M, N);
    } else {
        store_from_registers<Shape, false>(tile, C, row, col, M, N);
    }
}

// As multiply_tiles, of all of K, with C through boxes, see result_boxes.cuh.
template <typename Shape, int STRIPE, typename Sum, typename Element, typename Result, int MOST,
          int STAGE_COUNT>
static __device__ __forceinline__ void
multiply_tiles_through_boxes(unsigned stages,
                             typename Shape::template RingOf<STAGE_COUNT> &ring,
                             const CUtensorMap &A_map, const CUtensorMap &B_map, const CUtensorMap &C_map,
                             int M, int N, int k_tiles)
{
    using Boxes = typename Shape::template Boxes<Result, MOST>;
    const unsigned places = places_of_boxes<Shape, Boxes, STAGE_COUNT>(stages);
    multiply_tiles<Shape, STRIPE, Sum, Element>(
        stages, ring, A_map, B_map, M, N, 0, k_tiles,
        [&](const auto &tile, int row, int col) { store_through<Boxes>(places, tile, C_map, row, col); });
    if (threadIdx.x == 0 && threadIdx.y < Shape::WARPGROUPS)
        wait_until_stores_have_read();
}
