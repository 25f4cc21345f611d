// Memory beyond registers and shared memory: the L1 cache of an SM, the port to L2 behind it, and what of L2 comes
// from DRAM first.
#pragma once
#include "granules.h"
#include <algorithm>
#include <list>
#include <unordered_map>
#include <vector>

// Lines of 128 bytes with a bit for each sector of 32, least recently used ones leave first.
struct L1 {
  struct Line {
    u64 number;
    u32 sectors;
    u64 ready[4];
  };
  std::list<Line> lines;  // the latest first
  std::unordered_map<u64, std::list<Line>::iterator> at;
  u64 capacity, changes = 0;  // how often a line or a sector has come or gone
  explicit L1(u64 bytes) : capacity(std::max<u64>(bytes / 128, 1)) {}

  Line& line(u64 number) {
    auto found = at.find(number);
    if (found != at.end()) {
      lines.splice(lines.begin(), lines, found->second);
      return lines.front();
    }
    ++changes;
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

inline u32 sectors_of(const Piece* pieces, u32 count) {
  u32 sectors = 0;
  for (u32 k = 0; k < count; ++k) sectors += __builtin_popcount(pieces[k].sectors);
  return sectors;
}

const double MOST_BUSY = 0.9;  // share of time that DRAM is, for which waits are told
const u64 UNIT_LINES = 4;  // next to each other, whose atomics take turns

struct Memory {
  const Gpu& gpu;
  const u8* cold;  // of each block, a bit for each Kind of line that is not in L2 when it begins
  L1 l1;
  double port_free = 0, pages_free = 0, writes_free = 0;  // when this SM's ports have sent what they were asked for
  double atomics_free = 0;  // when L2 has done the atomics that it was asked for
  double l2_free = 0, dram_free = 0;  // when all SMs' ports have, if these ask for their share all the time
  double dram_from = -1, dram_busy = 0;  // when DRAM was first asked, and for how many cycles it has been since
  Granules granules;  // that came from DRAM, or were written
  double performed = 0;     // when L2 has performed all stores and atomics, which a fence waits for
  double sectors_free = 0;  // when all SMs' atomics have had their share of L2, if these ask for as many
  std::unordered_map<u64, double> done;   // UNIT_LINES -> when all SMs' atomics of these are, if these ask for as many
  std::unordered_map<u64, u64> first;     // position in a block's paths -> when its first warp was there
  u64 requested = 0, missed = 0, written = 0;  // bytes
  Memory(const Gpu& gpu, const u8* cold)
      : gpu(gpu), cold(cold), l1((u64)gpu.l1_bytes), granules(gpu.l2_held) {}

  static u64 name(const Piece& piece, u64 block) { return piece.line ^ (block + 1) << 48; }

  static u32 shared_along(const Piece& piece) { return piece.kind & ALONG_BOTH; }
  // Bytes of this SM's share of L2 that half a line takes, which others that ask for it take as well.
  double share_of(const Piece& piece) const { return 64 / gpu.meeting[shared_along(piece)]; }
  bool is_cold(const Piece& piece, u64 block) const { return cold[block] >> shared_along(piece) & 1; }

  // The cycle from which L1 has all that a load asks for; never where it has not asked for all. It holds until
  // `l1.changes` does not.
  u64 held_from(const Piece* pieces, u32 count, u64 block) const {
    u64 from = 0;
    for (u32 k = 0; k < count; ++k) {
      const auto found = l1.at.find(name(pieces[k], block));
      if (found == l1.at.end() || pieces[k].sectors & ~found->second->sectors) return ~0ull;
      for (u32 s = 0; s < 4; ++s)
        if (pieces[k].sectors >> s & 1) from = std::max(from, found->second->ready[s]);
    }
    return from;
  }

  // When the bytes of a load are there, past the latency of a hit that follows cycle t. cached: whether L1 keeps them.
  // position: of the load in the path of its warp. page_cycles: of a page of DRAM. more: how much later what comes
  // from there is.
  u64 load(const Piece* pieces, u32 count, u64 block, u64 t, bool cached, u64 position, double page_cycles,
           double more = 0) {
    const u64 asked = first.emplace(position, t).first->second;
    u64 ready = t, page = 0;
    for (u32 k = 0; k < count; ++k) {
      const u64 number = name(pieces[k], block);
      requested += 32 * __builtin_popcount(pieces[k].sectors);
      L1::Line* line = cached ? &l1.line(number) : nullptr;
      const u32 absent = pieces[k].sectors & ~(line ? line->sectors : 0);
      if (absent) {
        const bool far = is_cold(pieces[k], block);
        u64 then = fetch(number, __builtin_popcount(absent), t);
        const u64 since = shared_along(pieces[k]) == OWN ? t : asked;
        if (far) then = std::max(then, from_dram(pieces[k], number, absent, since, page, page_cycles, more));
        ready = std::max(ready, then);
        if (!line) continue;
        for (u32 s = 0; s < 4; ++s)
          if (absent >> s & 1) line->ready[s] = then;
        line->sectors |= absent, ++l1.changes;
      }
      for (u32 s = 0; line && s < 4; ++s)
        if (pieces[k].sectors >> s & 1) ready = std::max(ready, line->ready[s]);
    }
    return ready;
  }
  // A line is near an SM or far, at a place that nothing tells: its number says how far.
  double away(u64 number) const {
    const double share = (number * 0x9E3779B97F4A7C15 >> 33) % 10000 / 100.0;
    const u32 last = sizeof SHARES / sizeof *SHARES - 1;
    u32 k = 0;
    while (k + 1 < last && share > SHARES[k + 1]) ++k;
    const double part = (share - SHARES[k]) / (SHARES[k + 1] - SHARES[k]);
    return gpu.l2_latency[k] + std::min(1.0, std::max(0.0, part)) * (gpu.l2_latency[k + 1] - gpu.l2_latency[k]);
  }
  u64 fetch(u64 number, u32 sectors, u64 t) {
    missed += 32 * sectors;
    port_free = std::max(port_free, (double)t) + (sectors < 4 ? gpu.part_cycles : 128 * gpu.read_cycles);
    l2_free += 32 * sectors * gpu.l2_cycles;
    return (u64)(std::max(port_free, l2_free) + away(number));
  }
  // L2 fetches 64 bytes, or the whole line for an access that hints at it, once for all blocks that read them. Blocks
  // that share a line execute the same at the same time, their warps in another order: the first warp of any asks for
  // it. each: cycles of a page. more: of latency.
  u64 from_dram(const Piece& piece, u64 number, u32 sectors, u64 asked, u64& page, double each, double more) {
    const u32 wanted = (sectors & 3 ? 1 : 0) | (sectors >> 2 ? 2 : 0);
    u64* halves[2] = {};
    u32 fresh = 0;
    for (u32 half = 0; half < 2; ++half) {
      if (!((piece.kind & HINTED ? 3 : wanted) >> half & 1)) continue;
      const auto [found, is_fresh] = granules.use(number << 1 | half, share_of(piece));
      halves[half] = &found->ready;
      if (is_fresh) fresh |= 1 << half, occupy_dram(64 * (gpu.dram_cycles + gpu.evict_cycles), asked);
    }
    if (fresh) {
      const u64 mine = (number >> 3) + 1;
      if (page != mine) pages_free = std::max(pages_free, (double)asked) + each, page = mine;
      const u64 then = (u64)(std::max({dram_free, pages_free, asked + waits_for_others(asked)}) + gpu.dram_latency + more);
      for (u32 half = 0; half < 2; ++half)
        if (fresh >> half & 1) *halves[half] = then;
    }
    u64 ready = 0;
    for (u32 half = 0; half < 2; ++half)
      if (wanted >> half & 1) ready = std::max(ready, *halves[half]);
    return ready;
  }
  void occupy_dram(double cycles, u64 t) {
    if (dram_from < 0) dram_from = dram_free = t;
    dram_free += cycles, dram_busy += cycles;
  }
  // Requests of all SMs meet by chance, the more often the larger the share of time is in which DRAM is busy.
  double waits_for_others(u64 t) const {
    const double share = std::min(MOST_BUSY, dram_busy / (t - dram_from + gpu.dram_latency));
    return gpu.dram_wait * share / (1 - share);
  }
  // When the ports have sent bytes that L1 does not keep, for so many requests. If all SMs ask for the same lines, a
  // request for a part of a line takes as long as one for the whole.
  double stream(u32 bytes, u32 requests, double t) {
    requested += bytes, missed += bytes;
    port_free = std::max(port_free, t) + bytes * gpu.read_cycles;
    l2_free += std::max(bytes * gpu.l2_cycles, requests * gpu.request_cycles);
    return std::max(port_free, l2_free);
  }
  // How much longer lines take that are not in L2. more: of a unit that is slower then.
  double beyond_l2(const Piece* pieces, u32 count, u64 block, u64 t, double more) {
    u64 ready = 0, page = 0;
    for (u32 k = 0; k < count; ++k)
      if (is_cold(pieces[k], block))
        ready = std::max(
            ready, from_dram(pieces[k], name(pieces[k], block), pieces[k].sectors, t, page, gpu.box_page_cycles, more));
    const double near = t + gpu.l2_latency[sizeof SHARES / sizeof *SHARES - 1];
    return std::max(0.0, ready - near);
  }
  // parts: sectors that are written in part. L2 has to keep the rest of each.
  void store(const Piece* pieces, u32 count, u32 bytes, u32 parts, u64 block, u64 t) {
    for (u32 k = 0; k < count; ++k) change(pieces[k], block, t);
    written += bytes;
    const double whole = (bytes - 32.0 * parts) * gpu.write_cycles;
    writes_free = std::max(writes_free, (double)t) + whole + parts * gpu.part_write_cycles;
    performed = std::max(performed, writes_free);
  }
  // What a thread keeps in its own memory goes to L2 as well, and stays in L1.
  void keep(u32 bytes, u64 t) { writes_free = std::max(writes_free, (double)t) + bytes * gpu.write_cycles; }
  // When an atomic is done that asks L2 to go over sectors so many times, each of which takes it some cycles. Those
  // of all SMs that meet at lines of a unit are done one after the other.
  double atomic(const Piece* pieces, u32 count, u32 times, double cycles, u64 block, u64 t) {
    double ready = t;
    for (u32 k = 0; k < count; ++k) {
      const u32 along = shared_along(pieces[k]), sectors = __builtin_popcount(pieces[k].sectors);
      change(pieces[k], block, t);
      written += 32 * sectors;
      performed = std::max(performed, (double)t) + sectors * gpu.atomic_performed;
      writes_free = std::max(writes_free, (double)t) + sectors * gpu.atomic_port;
      sectors_free += sectors * gpu.atomic_share;
      double& all = done[(along == OWN ? name(pieces[k], block) : pieces[k].line) / UNIT_LINES];
      const double taken = cycles * times / count, met = gpu.meeting[along];
      all = met > 1 ? all + taken * met : std::max(all, (double)t) + taken;
      ready = std::max({ready, writes_free, sectors_free, all});
    }
    atomics_free = std::max(atomics_free, ready), performed = std::max(performed, ready);
    return ready;
  }
  // L2 keeps what is written. If other lines fill it, it makes room once for each half of a line that becomes dirty,
  // and DRAM takes back the whole half.
  void change(const Piece& piece, u64 block, u64 t) {
    for (u32 half = 0; half < 2; ++half) {
      if (!(piece.sectors >> 2 * half & 3)) continue;
      const double bytes = share_of(piece);
      const auto [found, is_fresh] = granules.use(name(piece, block) << 1 | half, bytes);
      if (is_fresh) found->ready = t;
      if (!found->dirty && cold[block] >> OWN & 1) occupy_dram(bytes * gpu.write_back_cycles, t);
      found->dirty = true;
    }
  }
  // When a store may leave the queue.
  double room_for_stores() const { return std::max(writes_free, atomics_free) - gpu.write_backlog; }
};
