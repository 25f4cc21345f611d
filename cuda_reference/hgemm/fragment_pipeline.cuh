// The pipeline of article 001, "Optimizing Half-Precision GEMM with Tensor Cores": tiles are copied ahead
// into a multistage buffer, fragments are read ahead into a second set of registers.
#pragma once

#include "async_copies.cuh"

// The main loop and its drain, over tiles DEPTH long along K, of STEPS k steps, in a buffer of COUNT stages.
//   copy(stage, k0) starts the copies of the tiles at k0 into a stage, and commits them
//   read(set, stage, step) reads the fragments of a k step from a stage into set 0 or 1
//   multiply(set) multiplies the fragments of a set
// If k has fewer tiles than COUNT - 1, copy() must fill the missing ones with zeros.
template <int COUNT, int DEPTH, int STEPS, typename Copy, typename Read, typename Multiply>
static __device__ void run_fragment_pipeline(int k, Copy copy, Read read, Multiply multiply)
{
    static_assert(COUNT >= 2, "one tile must be under way while another is read");
    static_assert(STEPS % 2 == 0, "the first fragments of all tiles must go to the same set");
    int stage = COUNT - 1; // where the tiles are that are multiplied; before the first come the last
    int refill = 0;        // where those COUNT - 1 iterations later are copied to

    const auto read_next_tiles = [&](int pending) { // the first fragments of them
        wait_for_copies(pending);
        __syncthreads(); // they have arrived from all threads; all warps have read the tiles before
        refill = stage;
        stage = stage == COUNT - 1 ? 0 : stage + 1;
        read(0, stage, 0);
    };
    const auto multiply_but_last = [&] { // all k steps whose next one is of the same tiles
#pragma unroll
        for (int step = 0; step < STEPS - 1; ++step) {
            read((step + 1) % 2, stage, step + 1);
            multiply(step % 2);
        }
    };

    for (int i = 0; i < COUNT - 1; ++i)
        copy(i, i * DEPTH);
    read_next_tiles(COUNT - 2);
    for (int k0 = (COUNT - 1) * DEPTH; k0 < k; k0 += DEPTH) {
        multiply_but_last();
        copy(refill, k0);
        read_next_tiles(COUNT - 2);
        multiply((STEPS - 1) % 2);
    }

#pragma unroll
    for (int pending = COUNT - 3; pending >= 0; --pending) { // the drain: all copies are under way
        multiply_but_last();
        read_next_tiles(pending);
        multiply((STEPS - 1) % 2);
    }
    multiply_but_last();
    multiply((STEPS - 1) % 2);
}
