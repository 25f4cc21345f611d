// mbarriers: phases that end when all have arrived and all bytes have come.
#pragma once
#include "abi.h"
#include <algorithm>
#include <queue>
#include <vector>

struct Waiting {  // a warp's wait: how many phases it wants to be over, and the scoreboard that is lowered then
  u32 warp, block, over, board;
};
struct Mbarrier {
  u32 expected = 0, pending = 0, over = 0;  // arrivals of a phase, and those still to come; phases that are over
  s64 bytes = 0;
  std::vector<Waiting> waiting;

  explicit Mbarrier(u32 count) : expected(count), pending(count) {}
  // Whether this ends the phase.
  bool change(u32 arrivals, s64 more) {
    pending -= std::min(pending, arrivals), bytes += more;
    if (pending || bytes) return false;
    pending = expected, ++over;
    return true;
  }
};

struct Change {  // of an mbarrier, at a later time: by another block, or by a copy
  u64 time;
  u32 slot, block, barrier, arrivals, bytes;
  bool operator>(const Change& o) const { return time > o.time; }
};
typedef std::priority_queue<Change, std::vector<Change>, std::greater<Change>> Changes;
