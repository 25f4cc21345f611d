// The instruction cache of an SM, and the level behind it that brings a line after another.
#pragma once
#include "abi.h"
#include <algorithm>
#include <vector>

struct Fetch {
  const Gpu& gpu;
  std::vector<u64> ready, used;  // of each line of code: when it is there, NONE where it is not; when last used
  std::vector<u32> held;
  double free = 0;
  const bool fits;  // the whole code, which is there since the last launch
  static const u64 NONE = ~0ull;
  Fetch(const Gpu& gpu, u32 rows)
      : gpu(gpu), ready(rows / gpu.line_instructions + 2, NONE), used(ready.size(), 0),
        fits(ready.size() <= gpu.lines_held) {}

  // When an instruction can be issued that a warp comes to in cycle t. The line behind its own is asked for as well.
  u64 at(u32 number, u64 t) {
    if (fits) return 0;
    const u32 line = number / gpu.line_instructions;
    if (used[line] == t + 1 && ready[line] != NONE) return ready[line];
    const u64 found = ask(line, t);
    ask(line + 1, t);
    return found;
  }
  u64 ask(u32 line, u64 t) {
    used[line] = t + 1;
    if (ready[line] == NONE) {
      if (held.size() >= gpu.lines_held) {
        auto oldest = std::min_element(held.begin(), held.end(), [&](u32 a, u32 b) { return used[a] < used[b]; });
        ready[*oldest] = NONE;
        *oldest = held.back(), held.pop_back();
      }
      held.push_back(line);
      free = std::max(free, (double)t) + gpu.line_cycles;
      ready[line] = (u64)free;
    }
    return ready[line];
  }
};
