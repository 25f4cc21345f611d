// The layout of every structure that Python and the core share, and the numberings both use. The Python side
// is ../abi.py; abi.cpp tells what stands here, and tests/machines/test_abi.py compares the two.
#pragma once
#include "lanes/numeric.h"

// A global address is (buffer + 1) << BUFFER_SHIFT plus a byte offset, so that no stray offset reaches
// another buffer. Generic addresses of shared and local memory lie in windows below the first buffer.
const int BUFFER_SHIFT = 40;
// An address of shared memory of a cluster is (rank of the block + 1) << RANK_SHIFT plus that in the block.
const int RANK_SHIFT = 24;
const u64 SHARED_WINDOW = 1ull << 36, LOCAL_WINDOW = 1ull << 37, WINDOW_BYTES = 1ull << 32;
// Functions have addresses too, FUNCTION_BYTES apart, the first one at FUNCTION_WINDOW + FUNCTION_BYTES.
const u64 FUNCTION_WINDOW = 1ull << 38, FUNCTION_BYTES = 16;
const u32 NONE = ~0u;

enum Kind : u32 {  // of a finding
  BAD_TENSOR_MAP, BAD_DESCRIPTOR, BARRIER_MISUSE, SLOT_IN_USE, UNFENCED_PROXY, UNFENCED_WGMMA,
  WGMMA_REGISTERS, RACE, IN_FLIGHT, LOCKSTEP, DIVERGENT_BARRIER, OUT_OF_BOUNDS, MISALIGNED, WRITE_TO_INPUT,
  BAD_FREE, OVERLAPPING_WRITES, UNINITIALIZED, DIVERGENT_ALIGNED, CLUSTER_EXIT, LEFT_IN_FLIGHT,
  TOO_MANY_REGISTERS, STACK_OVERFLOW, ASSERTION, TRAP, DEADLOCK, ENDLESS_LOOP, SAME_VALUE, KINDS
};
enum Space : u32 { SHARED, GLOBAL, LOCAL, GENERIC };
enum Act : u32 { READ, WRITE, ATOMIC };
// EARLY: what asynchronous units do is done at once, and not as late as allowed.
enum Flag : u32 { COUNT = 1, REVERSE = 2, SHUFFLE = 4, EARLY = 8 };
// What a kernel may do, as far as its text tells. CLOCKS: it orders accesses by more than barriers of all
// threads; POLLS: it has loops that wait for memory; NAMED: it has barriers of some threads; UNITS: it has
// asynchronous units, mbarriers or clusters.
enum Trait : u32 { CLOCKS = 1, POLLS = 2, NAMED = 4, UNITS = 8 };
// How memory is accessed. STRONG: volatile, relaxed or by a synchronising instruction; of two such accesses
// neither is a race. OF_BLOCK: strong for threads of the same block alone.
enum How : u32 {
  STORES = 1, STRONG = 2, UPDATES = 4, OF_BLOCK = 8, VOLATILE = 16, ACQUIRES = 32, RELEASES = 64
};
enum Scope : u32 { THREADS_OF_BLOCK, DEVICE };
// WAIT: lanes go on once the micro-op that ends the block says so.
enum Exit : u32 { BRANCH, BARRIER, LEAVE, CALL, RETURN, SWITCH, WAIT };
enum Special : u32 {
  TID_X, TID_Y, TID_Z, LANEID, WARPID, CTAID_X, CTAID_Y, CTAID_Z, NTID_X, NTID_Y, NTID_Z,
  NCTAID_X, NCTAID_Y, NCTAID_Z, SPECIALS
};

// ---- a kernel ---
struct Machine;
struct Warp;
struct MicroOp;
typedef void (*Function)(Machine&, Warp&, u8* registers, const MicroOp&);

// The bytes of one variable in its space: what an address that comes from it may reach.
struct Extent {
  u32 space, low, high, number;   // high: NONE up to the end of the space
};
// One call of a function for a warp. operands: register offsets and constants, as the function says.
struct MicroOp {
  Function run;
  const u32* operands;
  const Extent* extent;
  s64 offset;
  u32 guard, guard_negated;
  s32 line, counter;
};
// end: the micro-op of what ends it, NONE where that needs no operands. members: the register that names the
// lanes which execute its first instruction together, NONE: none need; gathers: these may be at several such
// instructions. polls: the branch back to `taken` closes a loop that waits: see Polls.
// What a loop waits for. OF_BARRIERS: mbarriers alone.
enum Polls : u32 { NOTHING, OF_MEMORY, OF_BARRIERS };
struct BasicBlock {
  u32 first, count, cost, exit, guard, guard_negated, taken, otherwise;
  s32 line;
  u32 end, members, gathers, polls;
};
struct Program {
  const MicroOp* micro_ops;
  const BasicBlock* blocks;
  const u8* initial_registers;
  u32 register_bytes, special[SPECIALS];   // special: offsets of the special registers
  u32 traits, block_count, counter_count;
};

// ---- what is recorded of a launch ---
// A fault met for the first time at these source lines, and how often it was met there.
struct Finding {
  u32 kind, act, space, bytes;
  s32 line, other_line;      // PTX lines; other: the access it conflicts with, 0 if none
  s32 warp, lane, other_warp, other_lane;
  u32 block[3];
  u32 detail;                // a lane mask, or a stride in bytes
  u32 extent, extent_bytes;  // of the variable the address comes from, 0 where that is not known; its bytes
  u64 address, count;
  u32 other_block, role;     // other_block: from 1 in the order of indices; 0: this one. role: see role_of
};
struct Counter {
  u64 requests, cost, ideal;
  void add(u64 more, u64 more_ideal) { requests++, cost += more, ideal += more_ideal; }
};
// How often a basic block was entered: by warps, by their lanes.
struct BlockCount {
  u64 warps, threads;
};
// The wider access that ptxas makes of this one; width 0: none; NONE: another access counts for it.
struct Merge {
  s32 offset;
  u32 width;
};
// A warp's access to shared memory, as it is counted. value: the first bytes at each address afterwards.
struct Request {
  u32 counter, mask, width, cost, ideal, address[32], value[32];
};
// How an access is counted. STORE_COUNT: as an atomic is, too; BYPASS_COUNT: a cp.async past the L1 cache.
enum Counting : u32 { LOAD_COUNT, STORE_COUNT, ROWS_COUNT, GLOBAL_COUNT, COPY_COUNT, BYPASS_COUNT };
// A warp's access to shared or global memory as it is counted, and how often it was made. counter: NONE for a
// copy's side that is not counted. address: in shared memory, and of an access to global memory there;
// source: of a copy. reads: lanes of a copy that read. cost, ideal: wavefronts of shared memory, or sectors;
// source_cost: sectors of a copy.
struct Record {
  u32 counter, source_counter, counting, warp, mask, reads, width, times, cost, ideal, source_cost, pad;
  u64 address[32], source[32];
};
// TESTED: in vain, what is waited for. DRAINED, STORES_DRAINED: products or stores have been waited for. MET: at
// a barrier of threads.
enum Happening : u32 {
  INITIALISED, TESTED, PASSED, ARRIVED, EXPECTED, BEGUN, LANDED, MULTIPLIED, COMMITTED, DRAINED, STORED,
  STORES_COMMITTED, STORES_DRAINED, MET
};
// Something that a warp or a unit does. actor, place: ranks of the blocks of who does it and of the shared
// memory it is about. address: of an mbarrier, or what a copy or product begins at; other: of the mbarrier that
// a copy tells, or of a product's right factor. phase: of the mbarrier; the number of a group of products or
// stores, or of a meeting. bytes: that a copy moves or an mbarrier expects; arrivals; groups that may stay open.
// columns of a product. row: bytes of that of a box; options of a product. buffer: number of what a box is of,
// from 1.
struct Event {
  u32 what, actor, place, warp, lanes, address, other, phase, bytes, row, buffer;
  s32 line;
};
// A piece that a copy or a product moves. event: its number. at: which of its pieces: bytes from the beginning
// of a box; of a product from 0, row by row, or k by k where it lies across, with RIGHT_FACTOR for those of the
// right one.
const u32 RIGHT_FACTOR = 1u << 31;
struct Moved {
  u32 event, at, address, bytes;
};
// The block that runs alone, and the warp whose requests are kept. met, held, valued: how many requests there
// were, how many of them are kept, and of how many of these the values are known. records: nullptr, or room
// for those of all its warps; slots: a table of twice `record_limit` places, each empty or the number of a
// record, from 1 on; lost: how many accesses found no room.
// ended: whether the block does so, alone.
struct Watch {
  Request* requests;
  Record* records;
  u32* slots;
  u32 block[3], warp, limit, met, held, valued, record_limit, recorded, lost, ended;
  // What units and mbarriers of the block do, in order; and the pieces that the first of them move.
  Event* events;
  Moved* moved;
  u32 event_limit, events_met, moved_limit, moved_held, rank, pad;
};

// What a kernel prints, and the message of an assertion, which ends in a zero. bytes: of the text; cut:
// whether more was printed than there was room for.
struct Said {
  char *text, *message;
  u32 limit, message_limit, bytes, cut;
};

// ---- memory ---
// The accesses to one element of memory that later ones may clash with. line: of the last store, 0: none.
// time, block, thread, how: of the last store that was no atomic; block 0: none. others: see Order::others.
struct Cell {
  s32 line;
  u32 time, block, others;
  u16 thread, how;
  s32 plain_line;
};
struct Buffer {
  u8* data;
  u64 bytes;
  Cell* cells;                              // nullptr: nobody writes it
  u32 element, constant, initialized, pad;  // element: log2 of its bytes
};
// The place of a register that may be undefined. lanes: those in which it is. line: of the read of local
// memory or the shuffle that the value comes from, 0 for a variable; address, bytes, extent: of that read.
struct Undefined {
  u32 lanes;
  s32 line;
  u64 address;
  u32 bytes, extent, extent_bytes;
};

// The tensor map that a kernel is given as a parameter of 128 bytes: the fields are the machine's own.
// Dimension 0 is the innermost. mark: MAP_MARK. address: of the array; element: its bytes; swizzle: bytes of
// a row over which pieces of 16 change places, 0: none.
const u64 MAP_MARK = 0x70616d20726f736eull;
struct TensorMap {
  u64 mark, address, shape[5], pitches[4];
  u32 box[5], rank, element, swizzle, pad[2];
};

struct LaunchArguments {
  const Program* program;
  const u8* params;
  const Buffer* buffers;
  Counter* counters;
  const Merge* merges;
  BlockCount* block_counts;
  Finding* findings;
  Watch* watch;               // nullptr: none
  const s32* origins;         // PTX line -> number of the source line it comes from
  const volatile u32* stop;   // not 0: the launch is to end
  Said* said;
  u64 budget, heap_bytes;
  u32 grid[3], block[3];
  u32 buffer_count, shared_bytes, local_bytes, flags, granule_shift, finding_limit;
  u32 stack_start, stack_limit;  // of the frames of recursive functions, in local memory; their bytes at most
  u32 cluster[3];
  // resident: blocks that a GPU holds at once; cores: threads to run them; registers: of a thread, as ptxas says,
  // 0: not known.
  u32 seed, resident, cores, registers;
};
