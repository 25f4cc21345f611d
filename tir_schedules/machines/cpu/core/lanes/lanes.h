// What functions of single lanes see of a warp. Their libraries read none of machine.h, which takes longer than
// compiling them.
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

enum ShuffleMode { UP, DOWN, BUTTERFLY, INDEX };
// The lane whose value a shuffle takes for lane l; its own where the segment has none.
inline int shuffle_source(u32 mode, int l, u32 operand, u32 clamp, bool& valid) {
  const int segment = clamp >> 8 & 31, limit = clamp & 31, b = operand & 31;
  const int bound = (l & segment) | (limit & ~segment);
  int from = l;
  switch (mode) {
    case UP: from = l - b; break;
    case DOWN: from = l + b; break;
    case BUTTERFLY: from = l ^ b; break;
    case INDEX: from = (l & segment) | (b & ~segment); break;
  }
  valid = mode == UP ? from >= bound : from <= bound;
  return valid ? from : l;
}
