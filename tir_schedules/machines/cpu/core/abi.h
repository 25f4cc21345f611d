// The layout of every structure that Python and the core share, and the numberings both use. The Python side
// is ../abi.py; abi.cpp tells what stands here, and tests/machines/test_abi.py compares the two.
#pragma once
#include "numeric.h"

// A global address is (buffer + 1) << BUFFER_SHIFT plus a byte offset, so that no stray offset reaches
// another buffer. Generic addresses of shared and local memory lie in windows below the first buffer.
const int BUFFER_SHIFT = 40;
const u64 SHARED_WINDOW = 1ull << 36, LOCAL_WINDOW = 1ull << 37, WINDOW_BYTES = 1ull << 32;
// Functions have addresses too, FUNCTION_BYTES apart, the first one at FUNCTION_WINDOW + FUNCTION_BYTES.
const u64 FUNCTION_WINDOW = 1ull << 38, FUNCTION_BYTES = 16;
const u32 NONE = ~0u;

enum Kind : u32 {  // of a finding
  RACE, IN_FLIGHT, LOCKSTEP, DIVERGENT_BARRIER, OUT_OF_BOUNDS, MISALIGNED, WRITE_TO_INPUT, BAD_FREE,
  OVERLAPPING_WRITES, UNINITIALIZED, DIVERGENT_ALIGNED, STACK_OVERFLOW, ASSERTION, TRAP, ENDLESS_LOOP, KINDS
};
enum Space : u32 { SHARED, GLOBAL, LOCAL, GENERIC };
enum Act : u32 { READ, WRITE, ATOMIC };
enum Flag : u32 { COUNT = 1, REVERSE = 2 };
enum Exit : u32 { BRANCH, BARRIER, LEAVE, CALL, RETURN, SWITCH };
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
struct BasicBlock {
  u32 first, count, cost, exit, guard, guard_negated, taken, otherwise;
  s32 line;
};
struct Program {
  const MicroOp* micro_ops;
  const BasicBlock* blocks;
  const u8* initial_registers;
  u32 register_bytes, special[SPECIALS];   // special: offsets of the special registers
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
// The block that runs alone, and the warp whose requests are kept. met, held, valued: how many requests there
// were, how many of them are kept, and of how many of these the values are known.
struct Watch {
  Request* requests;
  u32 block[3], warp, limit, met, held, valued;
};

// What a kernel prints, and the message of an assertion, which ends in a zero. bytes: of the text; cut:
// whether more was printed than there was room for.
struct Said {
  char *text, *message;
  u32 limit, message_limit, bytes, cut;
};

// ---- memory ---
// The last store to an element of an output; line 0: none.
struct OutputShadow {
  s32 line;
  u32 atomic;
  u64 thread;
};
struct Buffer {
  u8* data;
  u64 bytes;
  OutputShadow* shadow;   // nullptr: no output
  u32 element, constant;  // element: log2 of its bytes
};
// The place of a register that may be undefined. lanes: those in which it is. line: of the read of local
// memory that the value comes from, 0 for a variable; address, bytes, extent: of that read.
struct Undefined {
  u32 lanes;
  s32 line;
  u64 address;
  u32 bytes, extent, extent_bytes;
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
};
