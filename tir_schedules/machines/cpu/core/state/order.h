// What orders accesses: the clocks of lanes, words that threads synchronize at, and accesses that later ones may
// clash with.
#pragma once
#include <unordered_map>
#include "state/vector_clock.h"

// A fence of a lane: its epoch, those of the last barrier of the block and of the warp, and the clocks then.
struct Fence {
  u32 epoch = 0, block_synced = 0, warp_synced = 0;
  Clock lane, block;
};
// The clock of a lane beyond those of its warp and its block. pending: what it has read of synchronization words
// without acquiring it, which comes before its accesses once a fence or a barrier follows; pending_in_block: of
// words that threads of its own block released. last: the clock that it read last, by Scope; told: likewise, of
// what the writer knew.
struct LaneClock {
  Clock acquired, pending, pending_in_block, last[2], told;
  Fence fences[2];  // by Scope
};
// A word that is stored to and loaded by strong accesses. released: the clock that a reader learns, by the scope of
// the fence before the store; last: what the last store added to it. told: all that those who stored knew then, as
// OBSERVED (Trait OBSERVES). block: of the thread that stored.
struct SyncWord {
  Clock released[2], last[2], told;
  u32 block = 0;
};
typedef std::unordered_map<u64, SyncWord> SyncWords;  // by address / 4

// How far a warp has come, in cycles since the launch began: if blocks wait for no other, and with these waits. Counted
// where there are Waits, see observe/waits.cpp.
struct Elapsed {
  f64 alone = 0, among = 0;
  void join(const Elapsed& other) {
    alone = greatest(alone, other.alone), among = greatest(among, other.among);
  }
};

// A barrier of some threads of a block (bar.sync with a number). clock: of those that have arrived.
struct NamedBarrier {
  u32 arrived = 0, expected = 0, votes = 0, result = 0;
  u32 whole = 0;  // warps whose lanes that are not there any more count as arrived
  bool of_all = true;
  Clock clock;
  Elapsed elapsed;  // of those that have arrived
};

// Beside a How, of a cell: it has been found fault with; it has had an atomic since the last store; an mbarrier
// lies there.
enum OfCell : u32 { FAULTY = 512, UPDATED = 1024, OF_BARRIER = 2048 };
// Reads and atomic updates of an element since the last store that are not known to come before a later access.
// Those of a warp that are alike are one entry of a linked list.
struct PriorAccess {
  u32 next, epoch, block, lanes;
  s32 line;
  u16 warp, how;
};
// One access of a lane, for the cells it touches. address: generic; data: the memory it reaches.
struct LaneAccess {
  u64 address;
  const u8* data;
  u32 bytes, how;
  Space space;
  s32 line;
  int lane;
};

// The last accesses to `1 << granule_shift` bytes of shared memory, of a kernel whose threads meet at barriers of the
// whole block alone. read_warps: those that have read since the last of these; read_lanes: of the warp that read
// last, in that epoch.
struct SharedShadow {
  u32 write_epoch, read_epoch, read_warps, read_lanes;
  s32 write_line, read_line;
  u16 write_thread, in_flight;
  u8 read_warp;
  u8 write_atomic : 1, undefined : 1;  // undefined: what was written is
};
struct ReplacedStore {  // the last one before an atomic took its place in the shadow
  u32 epoch;
  s32 line;
  u16 thread;
};
