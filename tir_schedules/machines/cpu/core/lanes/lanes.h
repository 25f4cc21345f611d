// What functions of single lanes see of a warp. Their libraries read none of machine.h, which takes longer than
// compiling them.
#pragma once
#include "abi.h"

#define ALIGNED alignas(64)

// The beginning of a Warp.
struct WarpLanes {
  ALIGNED s32 mask[32];  // -1 for lanes that execute the current instruction
  u32 carry[32] = {};    // the carry flag of each lane
};
