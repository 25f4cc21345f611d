// What execution and units ask of the checks. A fault is recorded as a finding, the lane's access is dropped, and the
// launch goes on. A check never changes what a kernel computes, but for that.
//
// The layers, each of which calls those below it alone: deadlock and exits, definedness; accesses of threads and of
// units (bounds, shared_memory, unit_accesses); races; happens_before; findings.
#pragma once
#include "state/machine.h"

// ---- findings.cpp ---
// A new record, or nullptr where these lines have one already, which counts up.
Finding* report(Machine&, Kind, s32 line, int lane, s32 other = 0, u64 address = 0, u32 other_block = 0);
Finding* report_access(Machine&, Kind, s32 line, int lane, Act, Space, u64 address, u32 bytes, s32 other = 0,
                       int other_thread = -1, u32 other_block = 0);
// A read of what nothing has written, which begins `at` an address in the access: a fault, or noted where the load is
// followed.
void report_unwritten(Machine&, s32 line, int lane, Act, Space, u64 address, u32 bytes, u64 at, s32 other = 0,
                      int other_thread = -1);
// `detail` of a MISALIGNED whose size is at fault, not its address.
const u32 OF_SIZE = NONE;
// `detail` of a STALE_READ by a cache that learns of no store. Of others it says whether the store was released.
const u32 OF_CACHE = 2;
// Which way an mbarrier or a cluster's barrier is misused: `detail` of a BARRIER_MISUSE.
enum Misuse : u32 {
  NOT_INITIALISED, MISPLACED, BAD_COUNT, IN_USE, TOO_MANY_ARRIVALS, BYTES_OUT_OF_RANGE, OVERWRITTEN,
  OLD_STATE, COMPLETES, ARRIVED_TWICE, NEVER_ARRIVED, OF_ANOTHER_BLOCK, OF_ANOTHER_PHASE
};
void report_misuse(Machine&, Misuse, s32 line, int lane, u32 address, u32 value = 0);
// Of a finding at an address in what malloc gave: detail: 1, or 2 where it has been freed; its bytes.
void describe_heap(const Machine&, u64 address, Finding&);
bool is_of_heap(const Machine&, u64 buffer);

// ---- happens_before.cpp ---
// Whether an access of another thread in an epoch comes before what the lane does now. strong: how the lane accesses
// memory: a word that it has read orders its strong accesses without a fence.
bool happens_before(const Machine&, int lane, u32 block, u32 thread, u32 epoch, bool strong);
// Whether the lane has seen that the access came before, by strong accesses or the end of a copy. They would order it
// if each of them acquired and released.
bool is_observed(const Machine&, int lane, u32 block, u32 thread, u32 epoch);
Clock clock_of_lanes(const Machine&, u32 lanes);  // of the warp, their own accesses so far included
// What a lane tells by a strong store, or by an arrival that is relaxed.
Clock release_clock(const Machine&, int lane, Scope);
void acquire(Machine&, u32 lanes, const Clock&);
void fence(Machine&, u32 lanes, Scope);
void fence_proxy(Machine&, u32 lanes);  // fence.proxy.async
// A strong access of a lane. reads: whether it learns what the last store there released.
void synchronize(Machine&, u64 address, u32 bytes, int lane, u32 how, bool reads);
void forget_sync_words(Machine&, u64 address, u32 bytes);  // a plain store takes their clocks away
void order_warp_barrier(Machine&, const u32* members);     // a __syncwarp. members: of each active lane, who is in it
void order_block_barrier(Machine&);                        // of all threads of the block

// ---- races.cpp ---
// Compares an access with those before it that nothing orders, and notes it.
void check_cell(Machine&, Cell&, const LaneAccess&);
void check_cell(Machine&, Cell&, const LaneAccess&, const Operation&);  // of a unit
void forget_prior(Machine&, Cell&);
// How what is stored compares with what the memory holds, or with what another lane of this instruction stores there.
// real: of a buffer.
enum Likeness { DIFFERENT, ROUNDED, SAME };
Likeness compare_values(const Machine&, u32 bytes, const u8* data, int lane, bool together, int other_lane,
                        u32 real = 0);
inline u32 how_of(Act act) { return act == WRITE ? (u32)STORES : act == ATOMIC ? UPDATES | STRONG : 0; }

// ---- shared_memory.cpp ---
void check_shared(Machine&, u32 address, u32 bytes, Act, int lane, s32 line, u32 how = 0);
// As check_shared of each lane, faster.
void check_shared_reads(Machine&, const u32* address, u32 lanes, u32 bytes, s32 line, u32 how = 0);
void check_shared_writes(Machine&, const u32* address, u32 lanes, u32 bytes, s32 line, u32 how);

// ---- bounds.cpp ---
struct Range {  // of addresses; high: the first one behind it
  u64 low, high;
};
// What an access to shared or local memory may reach: the variable that its address comes from, if that is known,
// otherwise all of it.
inline Range reach(Space space, u32 memory_bytes, const MicroOp& op) {
  if (op.extent->space != space) return {0, memory_bytes};
  return {op.extent->low, least(op.extent->high, memory_bytes)};
}
// The memory behind an address, or nullptr after a finding. bytes: a power of two. at_global and at_generic also
// check for races; at_shared and at_local check bounds and alignment alone.
u8* at_shared(Machine&, u32 address, u32 bytes, const MicroOp&, int lane, Act);
u8* at_local(Machine&, u64 address, u32 bytes, const MicroOp&, int lane, Act);
u8* at_global(Machine&, u64 address, u32 bytes, const MicroOp&, int lane, Act, u32 how = 0);
u8* at_generic(Machine&, u64 address, u32 bytes, const MicroOp&, int lane, Act, u32 how = 0);

// ---- unit_accesses.cpp: of an operation, in its name ---
// False after a finding about bounds; what else is wrong is reported, and the operation goes on.
bool check_unit_shared(Machine&, const Operation&, Cta&, u32 address, u32 bytes, Act);
// The memory behind a global address; nullptr after a finding.
u8* check_unit_global(Machine&, const Operation&, u64 address, u32 bytes, Act);

// ---- barriers.cpp ---
// What a DIVERGENT_ALIGNED is about.
enum Divergence : u32 { DIFFERENT_WARPS = 1, INCOMPLETE_GROUP, LEFT_OUT, GONE_PAST };
// Every lane must execute: a finding otherwise, and false.
bool whole_warp(Machine&, const Warp&, s32 line);
// The lanes that a .sync instruction names must all execute it.
void check_members(Machine&, Warp&, s32 line, const u32* members);
void check_left_behind(Machine&, const Warp&, u32 pc, u32 lanes);
void check_block_barrier(Machine&);  // that opens: every thread of the block must wait at the same one

// ---- warpgroups.cpp ---
struct Descriptor;
// Whether all lanes are there, and the warps of the group have executed the same so far. The descriptors are those
// of the first warp that came; false in `alike` where this one has others.
bool whole_group(Machine&, const Warp&, s32 line, bool* alike = nullptr, u64 left = 0, u64 right = 0);
void check_warpgroups(Machine&);  // at the end of a block: whether the warps of each have executed as much
bool check_descriptor(Machine&, const ops::Wgmma&, u64 bits, bool of_right);
void report_different(Machine&, const MicroOp&, u64 descriptor);  // of lanes or warps
// Whether a box has brought the piece at an address in another swizzle than the descriptor's, so that it lies in
// another place.
bool check_swizzle(Machine&, const MicroOp&, const Descriptor&, bool of_right, u32 address);
void claim_registers(Machine&, Warp&, const ops::Wgmma&);  // the sums and factors of a product that begins

// ---- exits.cpp ---
// What is left open by threads that leave: `detail` of a LEFT_IN_FLIGHT.
enum Unfinished : u32 { STORES_OPEN, PRODUCTS_OPEN, COPIES_OPEN, BYTES_OPEN };
void check_exit(Machine&, Warp&, u32 lanes);  // of lanes from the kernel
void check_exit(Machine&, Cta&);              // all threads of the block have left
// Notes an access of another block; false after a finding that the block has left.
bool visit(Machine&, Cta&, const Visit&, Act, u32 bytes);

// ---- deadlock.cpp ---
// Which threads wait when no thread can go on. left: blocks that have not begun, because a GPU holds no more clusters
// than `resident` at once.
void report_stuck(Machine&, u32 resident, u64 left);
