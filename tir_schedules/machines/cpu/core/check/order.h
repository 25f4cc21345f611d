// Happens-before: which accesses of other threads a lane may rely on.
//
// Time counts the events that order accesses: barriers and fences. An access has the time it is made at, and
// every event comes after all accesses of its own time. So what a lane knows of another thread is one number:
// the time up to which that thread's accesses come before its own. Within a block most of it is the same for
// all lanes: what was before the last barrier. What single lanes learn, from a flag that another block set or
// at a barrier of some warps, is a Knowledge.
#pragma once
#include <memory>
#include <unordered_map>
#include <vector>
#include "abi.h"

// Beside a How, of a cell: it has been found fault with; it has had an atomic since the last store; an
// mbarrier lies there.
enum OfCell : u32 { FAULTY = 128, UPDATED = 256, OF_BARRIER = 512 };

// Beside the number of a block in a Group: it tells of accesses that a fence has followed that makes them
// known to asynchronous units (fence.proxy.async).
const u32 FENCED = 1u << 31;

// Threads of a block from here on are its asynchronous units: see units.h.
const u32 FIRST_UNIT = 1024;
inline bool is_unit(u32 thread) { return thread >= FIRST_UNIT; }

// Lanes of a warp, and up to when their accesses are known. warp: NONE for all threads of the block.
struct Group {
  u32 block, warp, lanes, time;
};
// What is known of one block: by warp and time, latest first; NONE after all warps.
typedef std::shared_ptr<const std::vector<Group>> OfBlock;
struct Knowledge {
  std::vector<OfBlock> blocks;  // none of them empty; what two know of a block alike, they share
  bool covers(u32 block, u32 thread, u32 time) const;
};
typedef std::shared_ptr<const Knowledge> Known;
Known joined(const Known& a, const Known& b);
Known made(std::vector<Group> groups);
// The same accesses as fenced ones.
Known fenced(const Known& known);

// A fence of a lane: its time, and what the lane knew then.
struct Fence {
  u32 time = 0, block_known = 0, warp_known = 0;
  Known lane, block;
};
// What a lane knows beyond its warp and its block. seen: what flags it has read tell, which holds once a
// fence or a barrier follows; near: of flags that threads of its own block have set.
struct LaneOrder {
  Known known, seen, seen_near, last[2];  // last: what the flag told that was read last, by Scope
  Fence fences[2];  // by Scope
};
// What a flag tells who reads it, by scope of the fence before it was set. last: what the last store added to
// it. block: who set it.
struct Flagged {
  Known told[2], last[2];
  u32 block = 0;
};
typedef std::unordered_map<u64, Flagged> Flags;

// Reads and atomic updates of an element that no later store is known to follow.
struct Other {
  u32 next, time, block, lanes;
  s32 line;
  u16 warp, how;
};
// One access of a lane, for the cells it touches. data: the memory it reaches. Address: generic.
struct Touch {
  u64 address;
  const u8* data;
  u32 bytes, how;
  Space space;
  s32 line;
  int lane;
};
// A barrier of some threads of a block. gathered: what those who have arrived know.
struct NamedBarrier {
  u32 arrived = 0, expected = 0, votes = 0, result = 0;
  bool of_all = true;
  Known gathered;
};
