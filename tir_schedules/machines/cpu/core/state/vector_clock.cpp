// Joining vector clocks, which is what orders accesses: every operation costs as much as the entries that it joins.
#include "state/vector_clock.h"
#include <algorithm>

static bool before(const ClockEntry& a, const ClockEntry& b) {
  return a.block != b.block ? a.block < b.block : a.warp != b.warp ? a.warp < b.warp : a.epoch > b.epoch;
}
bool VectorClock::covers(u32 block, u32 thread, u32 epoch) const {
  auto earlier = [](const BlockClock& clock, u32 number) { return clock->front().block < number; };
  const auto found = std::lower_bound(blocks.begin(), blocks.end(), block, earlier);
  if (found == blocks.end() || (*found)->front().block != block) return false;
  for (const ClockEntry& e : **found)
    if (epoch <= e.epoch &&
        (e.warp == NONE ? !is_unit(thread) : e.warp == thread / 32 && e.lanes >> thread % 32 & 1))
      return true;
  return false;
}
// The latest epoch of each lane; lanes of a warp whose epochs are alike are one entry.
static BlockClock join_block(const BlockClock& a, const BlockClock& b) {
  if (a == b) return a;
  std::vector<ClockEntry> all, kept;
  all.reserve(a->size() + b->size());
  std::merge(a->begin(), a->end(), b->begin(), b->end(), std::back_inserter(all), before);
  u32 whole = 0, warp = NONE, there = 0;
  for (const ClockEntry& e : all)
    if (e.warp == NONE && e.epoch > whole) whole = e.epoch;
  for (const ClockEntry& e : all) {
    if (e.warp == NONE || (e.epoch <= whole && !is_unit(e.warp * 32))) continue;
    if (e.warp != warp) warp = e.warp, there = 0;
    const u32 lanes = e.lanes & ~there;
    if (!lanes) continue;
    if (there && kept.back().epoch == e.epoch) kept.back().lanes |= lanes;
    else kept.push_back({e.block, warp, lanes, e.epoch});
    there |= lanes;
  }
  if (whole) kept.push_back({all.front().block, NONE, NONE, whole});
  const u64 bytes = kept.size() * sizeof(ClockEntry);
  for (const BlockClock& each : {a, b})
    if (kept.size() == each->size() && !memcmp(kept.data(), each->data(), bytes)) return each;
  return std::make_shared<const std::vector<ClockEntry>>(std::move(kept));
}
Clock join(const Clock& a, const Clock& b) {
  if (!a || a == b) return b;
  if (!b) return a;
  std::vector<BlockClock> blocks;
  blocks.reserve(a->blocks.size() + b->blocks.size());
  auto x = a->blocks.begin(), y = b->blocks.begin();
  while (x != a->blocks.end() && y != b->blocks.end()) {
    const u32 one = (*x)->front().block, other = (*y)->front().block;
    if (one == other) blocks.push_back(join_block(*x++, *y++));
    else blocks.push_back(one < other ? *x++ : *y++);
  }
  blocks.insert(blocks.end(), x, a->blocks.end()), blocks.insert(blocks.end(), y, b->blocks.end());
  for (const Clock& each : {a, b})
    if (blocks == each->blocks) return each;
  return std::make_shared<const VectorClock>(VectorClock{std::move(blocks)});
}
Clock clock_of(std::vector<ClockEntry> entries) {
  if (entries.empty()) return nullptr;
  std::sort(entries.begin(), entries.end(), before);
  std::vector<BlockClock> blocks;
  for (auto first = entries.begin(), end = first; first != entries.end(); first = end) {
    end = std::find_if(first, entries.end(), [&](const ClockEntry& e) { return e.block != first->block; });
    blocks.push_back(std::make_shared<const std::vector<ClockEntry>>(first, end));
  }
  return std::make_shared<const VectorClock>(VectorClock{std::move(blocks)});
}

Clock proxy_fenced(const Clock& clock) {
  if (!clock) return nullptr;
  std::vector<ClockEntry> entries;
  for (const BlockClock& of_block : clock->blocks)
    for (ClockEntry e : *of_block) {
      if (e.block & (FENCED | OBSERVED) || is_unit(e.warp == NONE ? 0 : e.warp * 32)) continue;
      e.block |= FENCED, entries.push_back(e);
    }
  return clock_of(std::move(entries));
}
Clock as_observed(const Clock& clock) {
  if (!clock) return nullptr;
  std::vector<ClockEntry> ordered, observed;
  for (const BlockClock& of_block : clock->blocks)
    for (ClockEntry e : *of_block) {
      if (e.block & FENCED) continue;
      std::vector<ClockEntry>& entries = e.block & OBSERVED ? observed : ordered;
      e.block |= OBSERVED, entries.push_back(e);
    }
  return join(clock_of(std::move(ordered)), clock_of(std::move(observed)));
}
