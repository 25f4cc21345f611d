// The register file of a sub-core: two banks, each with one read of a warp's register a cycle, and the operand cache
// that reuse bits keep registers in.
#pragma once
#include "abi.h"
#include <algorithm>
#include <cstring>

struct Banks {
  u64 free[2] = {0, 0};
  u64 cached[SOURCES][2];  // (slot of the operand, bank) -> warp and register, 0 for nothing
  Banks() { memset(cached, 0, sizeof cached); }

  static u64 name(u32 warp, u32 reg) { return (u64)(warp + 1) << 16 | reg; }

  // Whether an instruction may read its sources in the window that follows cycle t. Takes the reads if so.
  bool take(const Row& row, u32 warp, u64 t, u32 window) {
    u32 needed[2] = {0, 0};
    for (u32 k = 0; k < SOURCES; ++k)
      if (row.source[k] != NO_REGISTER && cached[k][row.source[k] & 1] != name(warp, row.source[k])) {
        bool again = false;  // one read serves a register that is named twice
        for (u32 j = 0; j < k; ++j) again |= row.source[j] == row.source[k];
        needed[row.source[k] & 1] += !again;
      }
    for (u32 b = 0; b < 2; ++b)
      if (needed[b] && std::max(free[b], t) + needed[b] > t + window) return false;
    for (u32 b = 0; b < 2; ++b)
      if (needed[b]) free[b] = std::max(free[b], t) + needed[b];
    for (u32 k = 0; k < SOURCES; ++k)
      if (row.source[k] != NO_REGISTER)
        cached[k][row.source[k] & 1] = row.reuse >> k & 1 ? name(warp, row.source[k]) : 0;
    return true;
  }
};
