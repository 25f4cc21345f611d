// Memory beyond registers and shared memory: the L1 cache of an SM, and the port to L2 behind it.
#pragma once
#include "abi.h"
#include <algorithm>
#include <list>
#include <unordered_map>

// Lines of 128 bytes with a bit for each sector of 32, least recently used ones leave first.
struct L1 {
  struct Line {
    u64 number;
    u32 sectors;
    u64 ready[4];
  };
  std::list<Line> lines;  // the latest first
  std::unordered_map<u64, std::list<Line>::iterator> at;
  u64 capacity;
  explicit L1(u64 bytes) : capacity(std::max<u64>(bytes / 128, 1)) {}

  Line& line(u64 number) {
    auto found = at.find(number);
    if (found != at.end()) {
      lines.splice(lines.begin(), lines, found->second);
      return lines.front();
    }
    if (lines.size() >= capacity) {
      at.erase(lines.back().number);
      lines.splice(lines.begin(), lines, std::prev(lines.end()));
      lines.front() = {number, 0, {}};
    } else {
      lines.push_front({number, 0, {}});
    }
    at[number] = lines.begin();
    return lines.front();
  }
};

struct Memory {
  const Gpu& gpu;
  L1 l1;
  double reads_free = 0, writes_free = 0;  // when the port has sent what it was asked for
  u64 requested = 0, missed = 0, written = 0;  // bytes
  explicit Memory(const Gpu& gpu) : gpu(gpu), l1((u64)gpu.l1_bytes) {}

  // When the bytes of a load are there, past the latency of a hit that follows cycle t. cached: whether L1 keeps them.
  u64 load(const Piece* pieces, u32 count, u64 block, u64 t, bool cached) {
    u64 ready = t;
    for (u32 k = 0; k < count; ++k) {
      const u64 number = pieces[k].line ^ block << 48;
      requested += 32 * __builtin_popcount(pieces[k].sectors);
      if (!cached) {
        ready = std::max(ready, fetch(__builtin_popcount(pieces[k].sectors), t));
        continue;
      }
      L1::Line& line = l1.line(number);
      const u32 absent = pieces[k].sectors & ~line.sectors;
      if (absent) {
        const u64 then = fetch(__builtin_popcount(absent), t);
        for (u32 s = 0; s < 4; ++s)
          if (absent >> s & 1) line.ready[s] = then;
        line.sectors |= absent;
      }
      for (u32 s = 0; s < 4; ++s)
        if (pieces[k].sectors >> s & 1) ready = std::max(ready, line.ready[s]);
    }
    return ready;
  }
  u64 fetch(u32 sectors, u64 t) {
    missed += 32 * sectors;
    reads_free = std::max(reads_free, (double)t) + 32 * sectors * gpu.read_cycles;
    return (u64)(reads_free + gpu.miss_latency);
  }
  // When the port has sent bytes that L1 does not keep.
  double stream(u32 bytes, double t) {
    requested += bytes, missed += bytes;
    return reads_free = std::max(reads_free, t) + bytes * gpu.read_cycles;
  }
  void store(u32 bytes, u64 t) {
    written += bytes;
    writes_free = std::max(writes_free, (double)t) + bytes * gpu.write_cycles;
  }
};
