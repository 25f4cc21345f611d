// What the parts of the machine share: a launch, the block that is running, its warps, and what is recorded meanwhile.
//
// Every PTX instruction is one function over the 32 lanes of a warp. A register is an array of 32 values at a fixed offset
// of the warp's register file; an instruction names its registers by those offsets.
#pragma once
#include <vector>
#include "numeric.h"

#define ALIGNED alignas(64)
#define LANES(...) for (int l = 0; l < 32; ++l) { __VA_ARGS__; }
#define ACTIVE(mask, ...) for (u32 m_ = (mask); m_; m_ &= m_ - 1) { const int l = __builtin_ctz(m_); __VA_ARGS__; }
// In an instruction's function: its kth operand, as bytes and as 32-bit registers.
#define OPERAND(k) (R + I.operands[k])
#define WORDS(k) ((u32*)OPERAND(k))
// In a table of functions by name.
#define NAMED(text, function) if (!strcmp(name, text)) return function;
// For each granule g of shared memory that an access touches.
#define GRANULES(M, address, bytes, ...)                                                                    \
  for (u32 g = (address) >> (M).granule_shift, last_ = ((address) + (bytes) - 1) >> (M).granule_shift; g <= last_; ++g) { \
    __VA_ARGS__;                                                                                            \
  }

// A global address is (buffer + 1) << BUFFER_SHIFT plus a byte offset, so that no stray offset reaches another buffer.
// Generic addresses of shared and local memory lie in windows below the first buffer.
const int BUFFER_SHIFT = 40;
const u64 SHARED_WINDOW = 1ull << 36, LOCAL_WINDOW = 1ull << 37, WINDOW_BYTES = 1ull << 32;
const u32 NONE = ~0u;

enum Kind : u32 {  // the order of FINDING_KINDS in findings.py
  RACE, IN_FLIGHT, LOCKSTEP, DIVERGENT_BARRIER, OUT_OF_BOUNDS, MISALIGNED, WRITE_TO_INPUT, OVERLAPPING_WRITES, UNINITIALIZED,
  DIVERGENT_ALIGNED, ENDLESS_LOOP
};
enum Space : u32 { SHARED, GLOBAL, LOCAL, GENERIC };
enum Act : u32 { READ, WRITE, ATOMIC };
enum Flag : u32 { COUNT = 1, REVERSE = 2 };

// A fault met for the first time at these source lines, and how often it was met there.
struct Finding {
  u32 kind, act, space, bytes;
  s32 line, other_line;    // PTX lines; other: the access it conflicts with, 0 if none
  s32 warp, lane, other_warp, other_lane;
  u32 block[3];
  u32 detail;              // a lane mask, or a stride in bytes
  u32 extent, extent_bytes;  // of the variable the address comes from, 0 where that is not known, and its bytes
  u64 address, count;
};
struct Counter {
  u64 requests, cost, ideal;
  void add(u64 more, u64 least) { requests++, cost += more, ideal += least; }
};
struct BlockCount { u64 warps, threads; };           // how often a basic block was entered: by warps, by their lanes
struct Merge { s32 offset; u32 width; };             // the wider access that ptxas makes of this one; width 0: none
// A warp's access to shared memory, as it is counted. value: the first bytes at each lane's address when it is done.
struct Request { u32 counter, mask, width, cost, ideal, address[32], value[32]; };
// The block that runs, it alone, and the warp whose requests are kept. met, held, valued: how many there were, how many of them
// are kept, and of how many of these the values are known.
struct Watch { Request* requests; u32 block[3], warp, limit, met, held, valued; };

// The bytes of one variable in its space: what an address that comes from it may reach. high: NONE up to the end of the space.
struct Extent { u32 space, low, high, number; };

struct OutputShadow { s32 line; u32 atomic; u64 thread; };   // last store to an element; line 0: none
struct Buffer { u8* data; u64 bytes; OutputShadow* shadow; u32 element, constant; };
// The last accesses to `1 << granule_shift` bytes of shared memory. Epochs count barriers, syncs count __syncwarp. plain: the last
// write that was no atomic.
struct SharedShadow {
  u32 write_epoch, write_sync, read_epoch, read_sync, read_warps, plain_epoch;
  s32 write_line, read_line, plain_line;
  u16 write_thread, read_thread, plain_thread, in_flight;
  u8 write_atomic : 1, undefined : 1, read_by_many;   // undefined: what was written is
};
struct AsyncCopy { u32 target, bytes, group, lane; s32 line; u8 data[16]; };

struct Warp {
  ALIGNED s32 mask[32];       // -1 for lanes that execute the current instruction
  u32 pc[32];                 // basic block each lane is at
  u32 active = 0, live = 0, waiting = 0, started = 0;
  s32 barrier_line[32];
  u32 groups[32];             // cp.async groups each lane has committed
  u32 sync = 1, synced[32] = {};   // __syncwarps so far; the count after the last that a lane took part in
  u64 issued = 0;             // instructions, against the budget
  std::vector<AsyncCopy> copies;
};

struct Instruction;
struct Machine {
  const u8* params;
  u32 grid[3], block[3], block_index[3];
  const Buffer* buffers;
  u32 buffer_count;
  u8* shared;
  u32 shared_bytes;
  u8 *local, *local_written;       // of every byte, whether it was
  u32 local_bytes, local_stride;   // of a lane; from lane to lane
  u32 flags, granule_shift;
  u64 budget;
  const volatile u32* stop;   // not 0: the launch is to end
  Counter* counters;
  const Merge* merges;
  Watch* watch;               // nullptr: none
  BlockCount* block_counts;
  Finding* findings;
  u32 finding_limit, finding_count = 0;   // limit: records of one kind
  const s32* origins;         // PTX line -> number of the source line it comes from
  int warp = 0;
  u32 epoch = 1, first_epoch = 1, threads = 0;
  u64 block_number = 0;
  std::vector<SharedShadow> shadow;
  Warp* warps = nullptr;

  Finding* report(Kind kind, s32 line, int lane, s32 other = 0, u64 address = 0);
  Finding* report_access(Kind kind, s32 line, int lane, Act act, Space space, u64 address, u32 bytes, s32 other = 0,
                         int other_thread = -1);
  u64 thread(int lane) const { return block_number * threads + warp * 32 + lane; }
  // The memory behind an address, or nullptr after a finding. bytes: a power of two.
  u8* at_shared(u32 address, u32 bytes, const Instruction& I, int lane, Act act) {
    return at_own(SHARED, shared, shared_bytes, address, bytes, I, lane, act);
  }
  u8* at_local(u64 address, u32 bytes, const Instruction& I, int lane, Act act) {
    return at_own(LOCAL, local + (u64)(warp * 32 + lane) * local_stride, local_bytes, address, bytes, I, lane, act);
  }
  u8* at_own(Space space, u8* memory, u32 memory_bytes, u64 address, u32 bytes, const Instruction& I, int lane, Act act);
  u8* at_global(u64 address, u32 bytes, const Instruction& I, int lane, Act act);
  u8* at_generic(u64 address, u32 bytes, const Instruction& I, int lane, Act act);
  void touch(u32 address, u32 bytes, Act act, int lane, s32 line);
};

typedef void (*Function)(Machine&, Warp&, u8* registers, const Instruction&);
struct Instruction { Function run; const u32* operands; const Extent* extent; s64 offset; u32 guard, guard_negated; s32 line, counter; };
enum Exit : u32 { BRANCH, BARRIER, LEAVE };
struct BasicBlock { u32 first, count, cost, exit, guard, guard_negated, taken, otherwise; s32 line; };
struct Program {
  const Instruction* instructions;
  const BasicBlock* blocks;
  const u8* initial_registers;
  u32 register_bytes, special[14];    // offsets of tid.xyz laneid warpid ctaid.xyz ntid.xyz nctaid.xyz
};

inline u32 ballot(const u32* predicate) {
  u32 result = 0;
  for (int l = 0; l < 32; ++l) result |= (u32)(predicate[l] != 0) << l;
  return result;
}
// Every lane must execute: a finding otherwise, and false.
bool whole_warp(Machine& machine, const Warp& warp, s32 line);

void count_shared(Machine&, s32 counter, const u32* address, u32 mask, u32 width, bool store);
// Wavefronts of one access to shared memory; adds its phases to `phases`.
int shared_wavefronts(const u32* address, u32 mask, u32 width, bool store, int& phases);
void count_rows(Machine&, s32 counter, const u32* rows, int matrices);
void count_global(Machine&, s32 counter, const u64* address, u32 mask, u32 width);
// One cp.async. mask: lanes that copy; reads: those that read their source at all.
void count_copy(Machine&, s32 shared_counter, s32 global_counter, const u32* target, const u64* source, u32 mask, u32 reads,
                u32 width, bool bypass);
void watch_request(Machine&, s32 counter, const u32* address, u32 mask, u32 width, u64 cost, u64 ideal);
void watch_values(Machine&);
void watch_copies(Machine&, s32 counter, const Counter& before, const std::vector<AsyncCopy>& copies, u64 first);
Function tensor_function(const char* name);
Function memory_function(const char* name);
Function warp_function(const char* name);
Function undefined_function(const char* name);
