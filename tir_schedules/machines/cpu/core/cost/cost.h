// What accesses cost: wavefronts of shared memory and sectors of global memory, as Nsight Compute counts them on an
// H200. Pure functions of addresses: they know no machine, and can be tested alone.
//
// mask: lanes that access. width: bytes of each. address: of each lane, in shared memory, or generic in global.
#pragma once
#include "lanes/lanes.h"

struct SharedCost {
  u32 wavefronts, phases;  // phases: the least that an access of these lanes takes
};
SharedCost shared_cost(const u32* address, u32 mask, u32 width, bool store);
// ldmatrix and stmatrix: one phase for each 8x8 matrix, eight rows of 16 bytes.
u32 row_wavefronts(const u32* rows, int matrices);
struct GlobalCost {
  u32 sectors, bytes;  // distinct ones
  u32 ideal() const { return (bytes + 31) / 32; }
};
GlobalCost global_cost(const u64* address, u32 mask, u32 width);

// The ideals: what the distinct bytes fill that the lanes write and read, of several that write to one place the last.
struct CopyCost {
  u32 wavefronts, sectors, ideal_wavefronts, ideal_sectors;
};
// One cp.async. reads: lanes that read their source at all. bypass: past the L1 cache (.cg).
CopyCost copy_cost(const u32* target, const u64* source, u32 mask, u32 reads, u32 width, bool bypass);
