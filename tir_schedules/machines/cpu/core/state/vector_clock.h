// Vector clocks: which accesses of other threads come before what a lane does now.
//
// An epoch is a number that counts the events that order accesses: barriers, fences, beginnings of operations. An
// access has the epoch in which it is made, and each event comes after all accesses of its own epoch. A vector clock
// holds, for each thread, the epoch up to which that thread's accesses come before (happens-before, PTX ISA 9.0,
// Memory Consistency Model). Threads whose epochs are alike share an entry, because a barrier makes them alike.
// A clock never changes once it is made, so that many lanes share one.
#pragma once
#include <memory>
#include <vector>
#include "abi.h"

// Beside the number of a block in an entry: the accesses are also visible to the asynchronous proxy, because a
// fence.proxy.async has followed them.
const u32 FENCED = 1u << 31;
// Beside it, too: the accesses have been seen to come before, by strong accesses or the end of a copy, whether or not
// anything orders them.
const u32 OBSERVED = 1u << 30;

// Threads of a block from here on are its asynchronous units: see state/units.h.
const u32 FIRST_UNIT = 1024;
inline bool is_unit(u32 thread) { return thread >= FIRST_UNIT; }

// Lanes of a warp, and the epoch up to which their accesses come before. warp: NONE for all threads of the block.
struct ClockEntry {
  u32 block, warp, lanes, epoch;
};
// The entries of one block: by warp, the latest epoch first; NONE after all warps. Never empty.
typedef std::shared_ptr<const std::vector<ClockEntry>> BlockClock;
struct VectorClock {
  std::vector<BlockClock> blocks;  // in the order of their numbers; clocks that agree about a block share it
  bool covers(u32 block, u32 thread, u32 epoch) const;
};
typedef std::shared_ptr<const VectorClock> Clock;  // nullptr: nothing comes before
Clock join(const Clock& a, const Clock& b);
Clock clock_of(std::vector<ClockEntry> entries);
// The same accesses, visible to the asynchronous proxy.
Clock proxy_fenced(const Clock& clock);
// All accesses that a clock knows of, as OBSERVED alone.
Clock as_observed(const Clock& clock);
