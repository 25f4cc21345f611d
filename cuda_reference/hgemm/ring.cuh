// A ring of slots in shared memory between a producer and consumers: the producer fills one slot after the
// other by copies of boxes, the consumers multiply what is in them, and neither waits for the other but for
// a slot.
//
// Each slot has two barriers. `full` ends a phase when all bytes of the slot are there: its one arrival is
// the producer's, which announces them. `empty` ends one when every consuming warp is done with the slot.
// Slot and parity follow from how many slabs went before, so all roles count alike, over all tiles.
#pragma once

#include "barriers.cuh"
#include "slabs.cuh"

// The next slot to be used, and the parity of the phase of its barriers: 0 in the first round.
template <int SLOTS> struct Turn {
    int slot = 0;
    unsigned parity = 0;

    __device__ __forceinline__ void next()
    {
        if (++slot == SLOTS)
            slot = 0, parity ^= 1;
    }
};

// Lies in shared memory, the slots elsewhere. Operands: Slabs. BLOCKS: of the cluster, where they fill each
// other's slots.
template <typename Operands, int SLOTS, int BLOCKS = 1> struct Ring {
    unsigned long long full[SLOTS], empty[SLOTS];

    // One thread, before all others use it. consumers: warpgroups.
    __device__ void initialise(int consumers)
    {
        for (int slot = 0; slot < SLOTS; ++slot) {
            initialise_barrier(shared_address(&full[slot]), 1);
            initialise_barrier(shared_address(&empty[slot]), consumers * (WARPGROUP / 32) * BLOCKS);
        }
        publish_barriers();
    }

    // A lane of each consuming warp says that its warp is done with a slot, to every block that fills it.
    // Each warp says so for itself: wgmma.wait_group is a promise to the warp that executes it.
    __device__ __forceinline__ void release(int slot)
    {
        const unsigned lane = threadIdx.x % 32, barrier = shared_address(&empty[slot]);
        if constexpr (BLOCKS == 1) {
            if (lane == 0)
                arrive(barrier);
        } else {
            if (lane < BLOCKS)
                arrive_in_cluster(address_in_block(barrier, lane));
        }
    }

        // The producer's thread: fills `slabs` slots, when they are free. load(slot, k0, barrier): starts the
    // copies of a slab to an address.
    template <typename Load>
    __device__ __forceinline__ void fill(Turn<SLOTS> &turn, unsigned slots, int slabs, const Load &load)
    {
#pragma unroll 1 // of a known number nvcc would unroll all, in more registers than a producer keeps
        for (int slab = 0; slab < slabs; ++slab, turn.next()) {
            const unsigned barrier = shared_address(&full[turn.slot]);
            wait_for_parity(shared_address(&empty[turn.slot]), turn.parity ^ 1); // of the round before
            arrive_announcing(barrier, Operands::BYTES);
            load(slots + turn.slot * Operands::BYTES, slab * SLAB, barrier);
        }
    }

    // A warpgroup, whose tile begins at a row of the block's: multiplies what is in `slabs` slots, when they
    // are full. A group of wgmma stays in flight: a slot is released when the products of the next are
    // started.
    template <typename Tile>
    __device__ __forceinline__ void multiply(Turn<SLOTS> &turn, unsigned slots, int slabs, int row,
                                             Tile &tile)
    {
        int before = 0;
        for (int slab = 0; slab < slabs; ++slab, turn.next()) {
            const unsigned slot = slots + turn.slot * Operands::BYTES;
            wait_for_parity(shared_address(&full[turn.slot]), turn.parity);
            tile.multiply(slot + row * SLAB_ROW, slot + Operands::BYTES_OF_A, slab > 0);
            wait_for_products<1>();
            if (slab > 0)
                release(before);
            before = turn.slot;
        }
        tile.complete();
        release(before);
    }
};
