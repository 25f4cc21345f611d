// Asynchronous units: what copies and multiplies while threads go on. The order of accesses knows each unit as a
// thread of its block, with a number behind those of all threads, so that clocks and cells cover what it does.
//
// Lanes of a warp begin an operation, which acquires their clocks. Its accesses are checked at once, in its name
// (check/unit_accesses.cpp). Its data is moved by `perform`, at once, or as late as allowed (Flag EARLY says which).
// A lane that waits for it acquires `completion(operation)`; until then nothing orders its accesses.
#pragma once
#include <deque>
#include <functional>
#include <unordered_map>
#include "operands.h"
#include "state/vector_clock.h"

struct Machine;
struct Cta;

// Numbers of units among the threads of a block: the bulk copies that each thread groups, which read and which write;
// the products of each warp's part of a warpgroup; the copies that each mbarrier is told of, by its place in shared
// memory.
const u32 BULK_READS = FIRST_UNIT, BULK_WRITES = 2048, PRODUCTS = 3072, COPIES = 3104;
inline u32 bulk_reader(u32 thread) { return BULK_READS + thread; }
inline u32 bulk_writer(u32 thread) { return BULK_WRITES + thread; }
inline u32 product_unit(u32 warp) { return PRODUCTS + warp; }
inline u32 copy_unit(u32 barrier) { return COPIES + barrier / 8; }
// The thread whose unit it is, the first one of a warp; -1 where it may be of any.
inline int thread_of_unit(u32 unit) {
  return unit < PRODUCTS ? (int)(unit % FIRST_UNIT) : unit < COPIES ? (int)(unit - PRODUCTS) * 32 : -1;
}

// cta, warp, lane: what began it. block, thread, epoch: in whose name it accesses memory, and when. clock: of the
// lanes that began it. proxy: whether it sees only what is fenced for the asynchronous proxy. group: of a bulk copy
// or a product, NONE before it is committed. perform: empty once it is done.
struct Operation {
  Cta* cta;
  u32 block, thread, epoch;
  s32 line;
  int warp, lane;
  bool proxy = true;
  u32 group = NONE;
  Clock clock;
  std::function<void(Machine&)> perform;
};
// The clock of a lane that has waited for the operation, and for those of its unit before it.
inline Clock completion(const Operation& o) {
  return clock_of({{o.block, o.thread / 32, 1u << o.thread % 32, o.epoch}});
}
// What an operation's clock says of accesses of others; kept, because most of its accesses meet the same ones.
struct Verdicts {
  static const u32 KEPT = 64;
  struct Verdict {
    u32 block = 0, thread, epoch;
    bool ordered, fenced;
  };
  Verdict known[KEPT];
  u32 operation = 0, unit = 0, of_block = 0;
};

// ---- cp.async ---
struct AsyncCopy {
  u32 target, bytes, group, lane;
  s32 line;
  u8 data[16];
};

// ---- bulk copies and boxes of tensor maps ---
// Bulk copies of a thread out of shared memory. groups: the epoch in which each was committed. open: those that it
// has not waited for.
struct BulkCopies {
  std::vector<u32> groups;
  std::deque<Operation> open;
};
// The swizzle in which boxes are copied into shared memory, by the line of the copy; MIXED: in several.
typedef std::unordered_map<s32, u32> Swizzles;
const u32 MIXED = 1;

// ---- mbarriers ---
// An mbarrier in shared memory. expected: arrivals of a phase; pending: of this one; bytes: that copies are still to
// bring (tx-count). phase: of those that have completed since it was initialised; changes: grows with whatever
// happens to it that ends a wait. arrived: the clock of those that have arrived; completed: what a lane acquires that
// waits. seen: phases that each thread of the block has seen to be over. copy: the last one that is to tell it of its
// bytes. ended: the arrival, or the copy, that completed the phase before; block 0: none is known. valid: false once
// it has been invalidated. lost: whether copies of this phase were at fault, and bring no
// bytes. by, epoch, fenced: the thread that initialised it, when, and whether a fence.mbarrier_init has followed.
struct Mbarrier {
  u32 expected = 0, pending = 0, by = 0, epoch = 0;
  s64 bytes = 0;
  u64 phase = 0, changes = 0;
  s32 line = 0;
  bool valid = false, fenced = false, lost = false;
  Clock arrived, completed;
  Elapsed elapsed;  // of those that have arrived, in any phase
  std::vector<u32> seen;
  struct {
    u32 epoch = 0;
    s32 line = 0;
    int warp = 0, lane = 0;
  } copy;
  struct {
    u32 block = 0, thread = 0, epoch = 0;
  } ended;
};
// What lanes of a warp that have tested an mbarrier in vain wait for. changes: of it, then.
struct Awaited {
  u32 lanes = 0;
  const Mbarrier* barrier[32];
  u64 changes[32];
  u32 address[32], phase[32];
};

// ---- warpgroups ---
// Of a register: number: of the last product of its warp that has it among its sums, or its factors, 0: there is no
// product yet; fence: how many fences there were when the warp last wrote it itself, and where that was.
struct RegisterUse {
  ops::Wgmma op = {};
  u64 number = 0;
  u32 fence = 0;
  s32 written = 0;
  bool factor = false;
};
// Registers of a warp by place, in steps of PLACE bytes. products, fences: how many it has issued; fences_before: of
// these, before the last product.
const u32 PLACE = 64, REMEMBERED = 256;
struct ProductRegisters {
  u64 products = 0;
  u32 fences = 0, fences_before = 0;
  std::vector<RegisterUse> uses;
};
// Instructions of a warpgroup: how many each warp has executed, and the last ones that any has.
struct Warpgroup {
  struct Issued {
    s32 line;
    u64 left, right;
  };
  u32 issued[4] = {}, furthest = 0;
  u32 asked[4] = {};  // registers of a thread that each warp asked for last
  s32 line = 0;       // where that was
  Issued last[REMEMBERED];
};
