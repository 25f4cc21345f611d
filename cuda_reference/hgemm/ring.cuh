// A multistage pipeline between a producer and consumers: its stages in shared memory form a ring. The
// producer fills one stage after the other by TMA copies, the consumers multiply what is in them, and each
// waits only for a stage.
//
// Each stage has two mbarriers. `full` ends a phase when all bytes of the stage have arrived: its one arrival
// is the producer's, which announces them. `empty` ends a phase when every consumer warp has finished with
// the stage. Stage and parity follow from the number of K tiles before, so producer and consumers count
// alike, over all tiles.
#pragma once

#include "barriers.cuh"
#include "k_tile.cuh"

// The next stage to be used, and the parity of the phase of its barriers: 0 in the first round.
template <int STAGE_COUNT> struct PipelineState {
    int stage = 0;
    unsigned parity = 0;

    __device__ __forceinline__ void next()
    {
        if (++stage == STAGE_COUNT)
            stage = 0, parity ^= 1;
    }
};

// Lies in shared memory, the stages elsewhere. Operands: KTile. STACKED, BESIDE: rows and columns of blocks in
// the cluster. Those of a row fill each other's stages, and so do those of a column.
template <typename Operands, int STAGE_COUNT, int STACKED = 1, int BESIDE = 1> struct Ring {
    static constexpr int BLOCKS = STACKED * BESIDE, SHARING = STACKED + BESIDE - 1;
    unsigned long long full[STAGE_COUNT], empty[STAGE_COUNT];

    // One thread, before all others use it. consumers: warpgroups.
    __device__ void initialise(int consumers)
    {
        for (int stage = 0; stage < STAGE_COUNT; ++stage) {
            initialise_barrier(shared_address(&full[stage]), 1);
            initialise_barrier(shared_address(&empty[stage]), consumers * (WARPGROUP / 32) * SHARING);
        }
        publish_barriers();
    }

    // A lane of each consumer warp tells every block that fills a stage that its warp is done with it. Each
    // warp does so for itself, because wgmma.wait_group is a promise only to the warp that executes it.
    __device__ __forceinline__ void release(int stage)
    {
        const unsigned lane = threadIdx.x % 32, barrier = shared_address(&empty[stage]);
        if constexpr (BLOCKS == 1) {
            if (lane == 0)
                arrive(barrier);
        } else {
            if (lane < BLOCKS && shares_with(lane))
                arrive_in_cluster(address_in_block(barrier, lane));
        }
    }

    // Whether this block and another fill each other's stages.
    static __device__ __forceinline__ bool shares_with(unsigned block)
    {
        if constexpr (SHARING == BLOCKS)
            return true;
        const unsigned own = block_in_cluster();
        return block % STACKED == own % STACKED || block / STACKED == own / STACKED;
    }

    // The producer's thread: fills `k_tiles` stages, when they are free. load(stage, k0, barrier): starts the
    // copies of a K tile to an address.
    template <typename Load>
    __device__ __forceinline__ void fill(PipelineState<STAGE_COUNT> &state, unsigned stages, int k_tiles,
                                         const Load &load)
    {
#pragma unroll 1 // of a known number nvcc would unroll all, in more registers than a producer keeps
        for (int k_tile = 0; k_tile < k_tiles; ++k_tile, state.next()) {
            const unsigned barrier = shared_address(&full[state.stage]);
            wait_for_parity(shared_address(&empty[state.stage]), state.parity ^ 1); // of the round before
            arrive_announcing(barrier, Operands::BYTES);
            load(stages + state.stage * Operands::BYTES, k_tile * K_TILE, barrier);
        }
    }

    // The producer's thread, at the end: waits until all stages are empty. Then all consumers of the cluster are
    // done with what it has copied, and have arrived at its barriers. So the block may end. A barrier of the
    // cluster would do, too, but it waits until the other blocks have written C.
    __device__ __forceinline__ void drain(PipelineState<STAGE_COUNT> &state)
    {
#pragma unroll 1 // as fill
        for (int stage = 0; stage < STAGE_COUNT; ++stage, state.next())
            wait_for_parity(shared_address(&empty[state.stage]), state.parity ^ 1);
    }

    // A warpgroup, whose tile begins at a row and a column of the block's: multiplies `k_tiles` stages, when
    // they are full. A group of wgmma stays in flight: a stage is released when the products of the next are
    // started.
    template <typename Tile>
    __device__ __forceinline__ void multiply(PipelineState<STAGE_COUNT> &state, unsigned stages, int k_tiles,
                                             int row, Tile &tile, int column = 0)
    {
        int before = 0;
        for (int k_tile = 0; k_tile < k_tiles; ++k_tile, state.next()) {
            const unsigned stage = stages + state.stage * Operands::BYTES;
            wait_for_parity(shared_address(&full[state.stage]), state.parity);
            tile.multiply(stage + row * ROW_BYTES, stage + Operands::BYTES_OF_A + column * ROW_BYTES,
                          k_tile > 0);
            wait_for_products<1>();
            if (k_tile > 0)
                release(before);
            before = state.stage;
        }
        tile.complete();
        release(before);
    }
};
