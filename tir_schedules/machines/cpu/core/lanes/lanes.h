// What functions of single lanes see of a warp. Their libraries do not include state/machine.h, because reading it takes
// longer than compiling them.
#pragma once
#include "abi.h"

#define ALIGNED alignas(64)
// For each lane l of a warp, and for each lane that a mask names.
#define LANES(...) \
  for (int l = 0; l < 32; ++l) { __VA_ARGS__; }
#define ACTIVE(mask, ...)                   \
  for (u32 m_ = (mask); m_; m_ &= m_ - 1) { \
    const int l = __builtin_ctz(m_);        \
    __VA_ARGS__;                            \
  }

// The beginning of a Warp.
struct WarpLanes {
  ALIGNED s32 mask[32];  // -1 for lanes that execute the current instruction
  u32 carry[32] = {};    // the carry flag of each lane
};
