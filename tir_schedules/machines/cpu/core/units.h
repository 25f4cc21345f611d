// Asynchronous units: what copies and multiplies while threads go on. The order of accesses (order.h) knows
// each as a thread of its block, with a number behind those of all threads, so that Group, Known and Cell
// cover what it does.
//
// An operation is begun by lanes of a warp: it learns what they know, of which some is fenced for the
// asynchronous proxy (see FENCED in order.h). All its accesses are checked and noted then, in its name, by
// `touch_shared` and `reach_global`. Its data is moved by `perform`, at once, or as late as allowed (Flag
// EARLY says which).
// Who waits for it learns `completion(operation)`; until then its accesses are ordered with nobody's.
#pragma once
#include <deque>
#include <functional>
#include "order.h"

struct Machine;
struct Warp;
struct MicroOp;
struct Cta;

// Numbers of units among the threads of a block: the bulk copies that each thread groups, the products of each
// warp's part of a warpgroup, the copies that each mbarrier is told of, by its place in shared memory.
const u32 BULK_UNITS = 1024, PRODUCT_UNITS = 2048, COPY_UNITS = 2080;
inline bool is_unit(u32 thread) { return thread >= BULK_UNITS; }
inline u32 bulk_unit(u32 thread) { return BULK_UNITS + thread; }
inline u32 product_unit(u32 warp) { return PRODUCT_UNITS + warp; }
inline u32 copy_unit(u32 barrier) { return COPY_UNITS + barrier / 8; }

// thread, time: in whose name it accesses memory, and when. known: what the lanes that began it knew.
// warp, lane: the first of them. group: of a bulk copy or product, NONE before it is committed.
struct Operation {
  Cta* cta;
  u32 block, thread, time;
  s32 line;
  int warp, lane;
  u32 group = NONE;
  Known known;
  std::function<void(Machine&)> perform;
};
// Begins an operation of a unit of the block that runs.
Operation begun(Machine&, u32 thread, const MicroOp&, u32 lanes);
// Checks an operation's access to shared memory of a block, and notes it. False after a finding about bounds;
// what else is wrong is reported, and the operation goes on.
bool touch_shared(Machine&, const Operation&, Cta&, u32 address, u32 bytes, Act);
// The memory behind a global address, checked and noted as an operation's access; nullptr after a finding.
u8* reach_global(Machine&, const Operation&, u64 address, u32 bytes, Act);
// What those know who have waited for the operation, and for those of its unit before it.
Known completion(const Operation&);

// ---- products of a warpgroup: wgmma.mma_async ---
// Begins a warp's part of a product; keeps it, or performs it at once. commit and wait are in units.cpp:
// "wgmma.commit_group", and "wgmma.wait_group" of a block that ends in Exit WAIT, whose operand is how many
// groups may stay in flight.
Operation begun_product(Machine&, const MicroOp&);
void issue_product(Machine&, Warp&, Operation&&);

// ---- boxes of a tensor map: tensor_map.cpp ---
// A run of bytes that is in one piece on both sides. address: 0 for what lies outside the tensor.
struct Piece {
  u32 shared, bytes;
  u64 address;
};
struct Box {
  bool valid;   // false after a finding: nothing is to be copied
  u32 bytes;    // of the whole box, with what lies outside the tensor: what the mbarrier is told
  u32 sectors;  // of 32 bytes of global memory, row by row
  std::vector<Piece> pieces;  // shared: address in shared memory, swizzled
};
// What a box at these coordinates, innermost first, covers. map: generic address of the tensor map; shared:
// where the box begins in shared memory.
Box box_at(Machine&, const MicroOp&, int lane, u64 map, u32 rank, const s32* coordinates, u32 shared, Act act);
