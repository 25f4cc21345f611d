// A warpgroup's tile of C by products of parts: sums of tensor cores, and sums in float32 to which these are
// added; and the K tiles that it multiplies.
#pragma once

#include "../hgemm/boxes.cuh"
#include "../hgemm/warpgroup_tile.cuh"
#include "split_products.cuh"
#include "turns.cuh"

// What tf32 multiplies.
struct OnePair {
    static constexpr int COUNT = 1;

    static __device__ constexpr int of_a(int)
    {
        return 0;
    }

    static __device__ constexpr int of_b(int)
    {
        return 0;
    }
};

// What bf16x6 multiplies of three parts: all but what is smaller than a float32's last bit. Small ones first.
struct SixPairs {
    static constexpr int COUNT = 6;

    static __device__ constexpr int of_a(int pair)
    {
        return pair == 0 || pair == 3 ? 1 : pair == 1 ? 2 : 0;
    }

    static __device__ constexpr int of_b(int pair)
    {
        return pair == 0 || pair == 4 ? 1 : pair == 2 ? 2 : 0;
    }
};

// What fp16x3 multiplies of two parts.
struct ThreePairs {
    static constexpr int COUNT = 3;

    static __device__ constexpr int of_a(int pair)
    {
        return pair == 0;
    }

    static __device__ constexpr int of_b(int pair)
    {
        return pair == 1;
    }
};

// K tiles of HEIGHT rows of A and WIDTH columns of B, DEEP of K in rows along it. Pairs: parts of A and B that
// are multiplied. TOGETHER: a K tile has all ALL_PARTS parts of each matrix, one behind the other; else it
// has those of one product, and the next K tiles have those of the others.
template <int HEIGHT, int WIDTH, int DEEP, int ALL_PARTS, typename Part, typename Pairs, bool TOGETHER = true>
struct SplitKTile {
    static constexpr int PART_COUNT = TOGETHER ? ALL_PARTS : 1, PRODUCTS = TOGETHER ? Pairs::COUNT : 1;
    static constexpr int REPEATS = TOGETHER ? 1 : Pairs::COUNT; // K tiles of the same elements
    static constexpr int ROW = sizeof(Part) * DEEP; // bytes
    static constexpr int PART_OF_A = HEIGHT * ROW, PART_OF_B = WIDTH * ROW;
    static constexpr int BYTES_OF_A = PART_COUNT * PART_OF_A, BYTES = BYTES_OF_A + PART_COUNT * PART_OF_B;

    // Which of a K tile's parts the products multiply.
    static __device__ constexpr int of_a(int product)
    {
        return TOGETHER ? Pairs::of_a(product) : 0;
    }

    static __device__ constexpr int of_b(int product)
    {
        return TOGETHER ? Pairs::of_b(product) : 0;
    }

    // One thread has the copy engine load K tile number k_tile; the barrier is told of BYTES bytes.
    static __device__ __forceinline__ void load(unsigned stage, const CUtensorMap &A_map,
                                                const CUtensorMap &B_map, int row, int col, int k_tile,
                                                unsigned barrier)
    {
        const int product = k_tile % REPEATS, first = k_tile / REPEATS * ALL_PARTS;
#pragma unroll
        for (int part = 0; part < PART_COUNT; ++part)
            load_box(stage + part * PART_OF_A, A_map, row, (first + (TOGETHER ? part : Pairs::of_a(product))) * DEEP,
                     barrier);
#pragma unroll
        for (int part = 0; part < PART_COUNT; ++part)
            load_box(stage + BYTES_OF_A + part * PART_OF_B, B_map, col,
                     (first + (TOGETHER ? part : Pairs::of_b(product))) * DEEP, barrier);
    }
};

// HEIGHT x WIDTH sums of tensor cores, of a part of K. IN_TURN: warpgroups that take turns.
template <int HEIGHT, int WIDTH, int DEEP, int IN_TURN, typename Part, typename Operands>
struct SplitTile : WarpgroupTile<HEIGHT, WIDTH, float, Part, false> {
    // Starts to multiply the parts of a K tile. add: to the sums there are; else they begin.
    __device__ __forceinline__ void multiply(unsigned a, unsigned b, bool add)
    {
        constexpr int ROW = Operands::ROW;
        const unsigned long long tile_a = describe_rows<ROW>(a), tile_b = describe_rows<ROW>(b);
        wait_for_turn<IN_TURN>();
        begin_products();
#pragma unroll
        for (int product = 0; product < Operands::PRODUCTS; ++product)
#pragma unroll
            for (int step = 0; step < ROW / 32; ++step)
#pragma unroll
                for (int rows = 0; rows < HEIGHT / 64; ++rows)
                    wgmma_k16<Part, false, false>(
                        this->sums[rows],
                        further(tile_a, Operands::of_a(product) * Operands::PART_OF_A + rows * 64 * ROW + step * 32),
                        further(tile_b, Operands::of_b(product) * Operands::PART_OF_B + step * 32),
                        product > 0 || step > 0 || add);
        commit_products();
        pass_turn<IN_TURN>();
    }
};

// Sums in float32, to which those are added.
template <int HEIGHT, int WIDTH, typename Part>
struct PromotedTile : WarpgroupTile<HEIGHT, WIDTH, float, Part, false> {
    __device__ __forceinline__ PromotedTile()
    {
#pragma unroll
        for (auto &rows : this->sums)
#pragma unroll
            for (float &sum : rows)
                sum = 0;
    }

    template <typename Tile> __device__ __forceinline__ void add(const Tile &tile)
    {
#pragma unroll
        for (int rows = 0; rows < HEIGHT / 64; ++rows)
#pragma unroll
            for (int i = 0; i < WIDTH / 2; ++i)
                this->sums[rows][i] += tile.sums[rows][i];
    }
};
