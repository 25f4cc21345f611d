// What the parts of the machine share: a launch, the block that runs, its warps, and what is recorded.
//
// Every PTX instruction is one function over the 32 lanes of a warp. A register is an array of 32 values at a
// fixed offset of the warp's register file; an instruction names its registers by those offsets.
#pragma once
#include <initializer_list>
#include <memory>
#include <vector>
#include "abi.h"

#define ALIGNED alignas(64)
#define LANES(...) \
  for (int l = 0; l < 32; ++l) { __VA_ARGS__; }
#define ACTIVE(mask, ...)                   \
  for (u32 m_ = (mask); m_; m_ &= m_ - 1) { \
    const int l = __builtin_ctz(m_);        \
    __VA_ARGS__;                            \
  }
// In an instruction's function: its kth operand, as bytes and as 32-bit registers.
#define OPERAND(k) (R + op.operands[k])
#define WORDS(k) ((u32*)OPERAND(k))
// For each granule g of shared memory that an access touches.
#define GRANULES(M, address, bytes, ...)                                                               \
  for (u32 g = (address) >> (M).granule_shift, last_ = ((address) + (bytes) - 1) >> (M).granule_shift; \
       g <= last_; ++g) {                                                                              \
    __VA_ARGS__;                                                                                       \
  }

// The last accesses to `1 << granule_shift` bytes of shared memory. Epochs count barriers, syncs count
// __syncwarp. plain: the last write that was no atomic.
struct SharedShadow {
  u32 write_epoch, write_sync, read_epoch, read_sync, read_warps, plain_epoch;
  s32 write_line, read_line, plain_line;
  u16 write_thread, read_thread, plain_thread, in_flight;
  u8 write_atomic : 1, undefined : 1, read_by_many;  // undefined: what was written is
};
struct AsyncCopy {
  u32 target, bytes, group, lane;
  s32 line;
  u8 data[16];
};

// Calls that lanes are in. made: where they return to, and their stack as it was before. saved: registers of
// recursive functions. target: the block that a call through a pointer, or a switch, goes to next. top: the
// end of the stack in local memory; used: bytes of it that count against its limit.
struct CallState {
  struct Call {
    u32 back_to, top, used;
  };
  struct Saved {
    unsigned __int128 value;
    bool undefined;
  };
  std::vector<Call> made[32];
  std::vector<Saved> saved[32];
  u32 target[32], top[32], used[32] = {};
};
struct Allocation {  // what malloc gave
  u64 bytes;
  bool freed;
};
// buffers: those of the launch, then one for each Allocation in `made`, the first of which is `first`.
struct Heap {
  std::vector<Buffer> buffers;
  std::vector<Allocation> made;
  u64 first = 0, used = 0;
  ~Heap();
};

struct Warp {
  ALIGNED s32 mask[32];  // -1 for lanes that execute the current instruction
  u32 pc[32];            // basic block each lane is at
  u32 carry[32] = {};    // the carry flag of each lane
  u32 active = 0, live = 0, waiting = 0, started = 0;
  s32 barrier_line[32];
  u32 groups[32];                 // cp.async groups each lane has committed
  u32 sync = 1, synced[32] = {};  // __syncwarps so far; the count after the last that a lane took part in
  u64 issued = 0;                 // instructions, against the budget
  u64 clock = 0;                  // what %clock64 gave last
  std::vector<AsyncCopy> copies;
  std::unique_ptr<CallState> calls;  // of a warp that calls nothing: nullptr
};

struct Machine {
  const u8* params;
  u32 grid[3], block[3], block_index[3];
  const Buffer* buffers;
  u32 buffer_count;
  u8* shared;
  u32 shared_bytes;
  u8 *local, *local_written;      // of every byte, whether it was
  u32 local_bytes, local_stride;  // of a lane; from lane to lane
  u32 flags, granule_shift;
  u64 budget;
  const volatile u32* stop;  // not 0: the launch is to end
  Counter* counters;
  const Merge* merges;
  Watch* watch;  // nullptr: none
  BlockCount* block_counts;
  Finding* findings;
  u32 finding_limit, finding_count = 0;  // limit: records of one kind
  const s32* origins;                    // PTX line -> number of the source line it comes from
  int warp = 0;
  u32 epoch = 1, first_epoch = 1, threads = 0;
  u64 block_number = 0;
  std::vector<SharedShadow> shadow;
  Warp* warps = nullptr;
  Said* said;
  Heap heap;
  u64 heap_bytes;
  u32 stack_start, stack_limit;

  Finding* report(Kind kind, s32 line, int lane, s32 other = 0, u64 address = 0);
  Finding* report_access(Kind kind, s32 line, int lane, Act act, Space space, u64 address, u32 bytes,
                         s32 other = 0, int other_thread = -1);
  // Number of the buffer, from 1; all that malloc gave is one, with what lies just before it.
  u64 buffer_of(u64 address) const {
    if (heap.buffers.empty()) return address >> BUFFER_SHIFT;
    return least<u64>((address + (1ull << (BUFFER_SHIFT - 1))) >> BUFFER_SHIFT, heap.first + 1);
  }
  u64 thread(int lane) const { return block_number * threads + warp * 32 + lane; }
  // The memory behind an address, or nullptr after a finding. bytes: a power of two.
  u8* at_shared(u32 address, u32 bytes, const MicroOp& op, int lane, Act act) {
    return at_own(SHARED, shared, shared_bytes, address, bytes, op, lane, act);
  }
  u8* at_local(u64 address, u32 bytes, const MicroOp& op, int lane, Act act) {
    return at_own(LOCAL, local + (u64)(warp * 32 + lane) * local_stride, local_bytes, address, bytes, op,
                  lane, act);
  }
  u8* at_own(Space space, u8* memory, u32 memory_bytes, u64 address, u32 bytes, const MicroOp& op, int lane,
             Act act);
  u8* at_global(u64 address, u32 bytes, const MicroOp& op, int lane, Act act);
  u8* at_generic(u64 address, u32 bytes, const MicroOp& op, int lane, Act act);
  void touch(u32 address, u32 bytes, Act act, int lane, s32 line);
  void touch_reads(const u32* addresses, u32 lanes, u32 bytes, s32 line);
};

inline u32 ballot(const u32* predicate) {
  u32 result = 0;
  for (int l = 0; l < 32; ++l) result |= (u32)(predicate[l] != 0) << l;
  return result;
}
// Each lane's address: a register, of 64 bits or of 32, and an offset.
template <class T> static inline void addresses(const u8* base, bool wide, s64 offset, T* result) {
  if (wide) LANES(result[l] = (T)(((const u64*)base)[l] + offset))
  else LANES(result[l] = (T)(((const u32*)base)[l] + (T)offset))
}
// Every lane must execute: a finding otherwise, and false.
bool whole_warp(Machine& machine, const Warp& warp, s32 line);

CallState& calls_of(Machine&, Warp&);
// The lanes of a block that ends in a call, a return or a switch go on. taken: those that do so.
void leave_block(Machine&, Warp&, const BasicBlock&, u32 lanes, u32 taken);
void stop_launch(Machine&);  // at the end of the current block
// What a call hands over, at an offset of local memory.
u64 argument(Machine&, int lane, u32 offset, u32 bytes);
void give_back(Machine&, int lane, u32 offset, u64 value, u32 bytes);
void mark_written(Machine&, u64 address, int lane);
// Of a finding at an address in what malloc gave: detail: 1, or 2 where it has been freed; its bytes.
void describe_heap(const Machine&, u64 address, Finding&);

void count_shared(Machine&, s32 counter, const u32* address, u32 mask, u32 width, bool store);
// Wavefronts of one access to shared memory; adds its phases to `phases`.
int shared_wavefronts(const u32* address, u32 mask, u32 width, bool store, int& phases);
void count_rows(Machine&, s32 counter, const u32* rows, int matrices);
void count_global(Machine&, s32 counter, const u64* address, u32 mask, u32 width);
// One cp.async. mask: lanes that copy; reads: those that read their source at all.
void count_copy(Machine&, s32 shared_counter, s32 global_counter, const u32* target, const u64* source,
                u32 mask, u32 reads, u32 width, bool bypass);
void watch_request(Machine&, s32 counter, const u32* address, u32 mask, u32 width, u64 cost, u64 ideal);
void watch_values(Machine&);
void watch_copies(Machine&, s32 counter, const Counter& before, const std::vector<AsyncCopy>& copies,
                  u64 first);

// The functions of one family of instructions by name. Each family's file defines one at its end, which adds
// itself to the list.
struct NamedFunction {
  const char* name;
  Function function;
};
struct Family {
  std::vector<NamedFunction> functions;
  const Family* next;
  static const Family* all;
  Family(std::initializer_list<NamedFunction> named) : functions(named), next(all) { all = this; }
};
