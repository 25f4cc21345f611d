// Products of warpgroups (wgmma). One begins when all four warps have issued it and the tensor cores have taken in the
// one before; the tensor cores of the four sub-cores work in step, as they read the same operands.
#pragma once
#include "abi.h"
#include <algorithm>
#include <vector>

const u32 GROUP_WARPS = 4;

struct Warpgroup {
  u32 warps = 0;              // that it has
  std::vector<u32> issued;    // of each product, how many warps have issued it
  std::vector<u64> ends;      // of each product that has begun
};
struct Products {
  u64 free = 0;
  // A warp issues its next product, number `which`.
  void issue(Warpgroup& group, u32 which, const Row& row, u64 t) {
    if (group.issued.size() <= which) group.issued.resize(which + 1, 0);
    if (++group.issued[which] < group.warps) return;
    const u64 begin = std::max(free, t);
    free = begin + (u64)row.occupies;
    group.ends.push_back(begin + (u64)row.latency);
  }
  static u64 end(const Warpgroup& group, u32 which) {
    return which < group.ends.size() ? group.ends[which] : ~0ull;
  }
};
