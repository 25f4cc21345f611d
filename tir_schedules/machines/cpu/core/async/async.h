// What execution asks of asynchronous units.
#pragma once
#include "state/machine.h"

// ---- units.cpp ---
// Begins an operation of a unit of the block that runs.
Operation begin_operation(Machine&, u32 thread, const MicroOp&, u32 lanes);
// Moves its data now, as of the block and warp that began it.
void perform(Machine&, Operation&);
// Whether an operation that begins now is performed at once.
bool at_once(Machine&);
// Lanes commit a group of operations, or have waited for it; open: groups that may stay in flight.
void tell_group(const Machine&, Happening, s32 line, u32 lanes, u32 group, u32 open);

// ---- mbarriers.cpp ---
// The mbarrier at an address of the cluster, or nullptr after a finding.
Mbarrier* mbarrier_at(Machine&, u32 address, s32 line, int lane);
// A copy has brought bytes to an mbarrier.
void complete_bytes(Machine&, Cta&, u32 address, const Operation&, u32 bytes);
// A faulty copy delivers no bytes; lanes that wait for them must not block on the tx-count.
void lose_bytes(Machine&, Mbarrier&);
// Whether all lanes that could go on have tested mbarriers that are as they were.
bool awaits_in_vain(const Warp&);

// ---- async_copies.cpp ---
// The cp.async of some lanes that are under way arrive.
void land_copies(Machine&, Warp&, u32 lanes);

// ---- tensor_maps.cpp ---
// A run of bytes that is in one piece on both sides. address: 0 for what lies outside the tensor.
struct Piece {
  u32 shared, bytes;
  u64 address;
};
struct Box {
  bool valid;           // false after a finding: nothing is to be copied
  u32 bytes;            // of the whole box, with what lies outside the tensor: what the mbarrier is told
  u32 sectors, inside;  // of global memory: sectors of 32 bytes, row by row; bytes
  u32 row, buffer;      // bytes of a row; number of the buffer
  std::vector<Piece> pieces;  // shared: address in shared memory, swizzled
};
// What a box at these coordinates, innermost first, covers. map: generic address of the tensor map; shared: where the
// box begins in shared memory.
Box box_at(Machine&, const MicroOp&, int lane, u64 map, u32 rank, const s32* coordinates, u32 shared, Act act,
           bool stores = false);
