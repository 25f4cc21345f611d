// Copies of boxes of a matrix by the copy engine (TMA). One thread starts a copy, no register holds the
// copied data, and no thread computes an address: the tensor map has the matrix' address, its extents, the
// extents of a box and the swizzle. Elements beyond the extents arrive as zeros, and are not written.
//
// In the maps here a box has rows of 128 bytes, under the swizzle of 128 bytes: 16 bytes with the number c in
// row r lie at c ^ (r % 8). The pattern has 8 rows, 1024 bytes, and so a box starts at a multiple of these.
#pragma once

#include <cuda.h>

#include "addresses.cuh"

// Starts the copy of the box at (row, col) of a matrix to `target` in shared memory. The copy tells the
// barrier when all its bytes have arrived, including those outside the matrix.
static __device__ inline void load_box(unsigned target, const CUtensorMap &map, int row, int col,
                                       unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%2, %3}], [%4];" ::"r"(target),
                 "l"(&map), "r"(col), "r"(row), "r"(barrier)
                 : "memory");
}

// The same for several blocks of the cluster at once, those whose bits are set in `blocks`: the box goes to
// the same place in each of them, and tells the same barrier in each. It is read once.
static __device__ inline void load_box_for(unsigned short blocks, unsigned target, const CUtensorMap &map,
                                           int row, int col, unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(target),
                 "l"(&map), "r"(col), "r"(row), "r"(barrier), "h"(blocks)
                 : "memory");
}

// The copy engine will need the map, and may prefetch it now.
static __device__ inline void prefetch_map(const CUtensorMap &map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// Starts the copy of a box from `source` in shared memory to (row, col) of a matrix.
static __device__ inline void store_box(const CUtensorMap &map, int row, int col, unsigned source)
{
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map),
                 "r"(col), "r"(row), "r"(source)
                 : "memory");
}

// Ends a group of stores.
static __device__ inline void commit_stores()
{
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Waits until the stores that this thread started have read shared memory, all but the last LEFT groups, so
// that it can be written again.
template <int LEFT = 0> static __device__ inline void wait_until_stores_have_read()
{
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(LEFT) : "memory");
}
