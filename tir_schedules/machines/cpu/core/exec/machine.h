// What the parts of the machine share: a launch, the block that runs, its warps, and what is recorded.
//
// Every PTX instruction is one function over the 32 lanes of a warp. A register is an array of 32 values at a
// fixed offset of the warp's register file; an instruction names its registers by those offsets.
#pragma once
#include <atomic>
#include <initializer_list>
#include <random>
#include <memory>
#include <vector>
#include "lanes/lanes.h"
#include "check/order.h"
#include "async/units.h"
#include "async/warpgroup.h"

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

// The last accesses to `1 << granule_shift` bytes of shared memory, of a kernel whose threads meet at
// barriers of the whole block alone. read_warps: those that have read since the last of these; read_lanes: of
// the warp that read last, at that time.
struct SharedShadow {
  u32 write_time, read_time, read_warps, read_lanes;
  s32 write_line, read_line;
  u16 write_thread, in_flight;
  u8 read_warp;
  u8 write_atomic : 1, undefined : 1;  // undefined: what was written is
};
struct Store {  // the last one before an atomic took its place in the shadow
  u32 time;
  s32 line;
  u16 thread;
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

// active: lanes that execute the current instruction. waiting: at a barrier of the block; held: for other
// lanes of the warp; polling: went round a loop that waits for memory; stalled: at the end of a block that
// waits, and refused: those that it does not let go on; released: may execute what they were held at;
// excused: as their members are there, at another instruction; missed: that lanes have waited for. known:
// time of the last __syncwarp of all lanes; pairs: of the last that two lanes were in, empty where there was
// none of some lanes only.
struct Warp : WarpLanes {
  u32 pc[32];  // basic block each lane is at
  u32 active = 0, live = 0, waiting = 0, held = 0, polling = 0, stalled = 0, refused = 0,
      released = 0, excused = 0, missed = 0;
  bool started = false, idle = false;
  s32 barrier_line[32];
  u32 barrier[32];                // number of the one each lane waits at
  u32 groups[32];                 // cp.async groups each lane has committed
  u32 known = 0;
  std::vector<u32> pairs;
  // issued: instructions, against the budget; state, stores: when it last polled.
  u64 issued = 0, state = 0, stores = 0;
  std::vector<u8> sample;         // registers some rounds of a long loop ago
  u64 rounds = 0, sampled_stores = 0;
  u64 clock = 0;  // what %clock64 gave last
  std::vector<AsyncCopy> copies;
  std::unique_ptr<Awaited> awaited;  // nullptr: no mbarrier
  std::deque<Operation> products;    // parts of them that nobody has waited for
  std::vector<u32> product_groups;   // when each was committed
  // At the barrier of the cluster: lanes that have arrived in this phase; that have yet to wait.
  u32 at_cluster = 0, to_wait = 0, waits_for = 0;  // waits_for: of those that are stalled
  std::shared_ptr<ProductRegisters> products_of;  // of a warp without: nullptr
  std::unique_ptr<CallState> calls;  // of a warp that calls nothing: nullptr

  u32 knows(int lane, int other) const {
    if (pairs.empty()) return known;
    return pairs[lane * 32 + other] > known ? pairs[lane * 32 + other] : known;
  }
};
struct Cluster;
// An access of another block of the cluster to a block's shared memory: the last one of its warp or unit.
struct Visit {
  u32 block, thread, time, address;
  s32 line;
  int lane, warp;
  Act act = READ;
};
// A block that runs, and all it has to itself. number: in the order of indices. began, met: times when it
// began, and when its threads last met at a barrier. known: time of the last barrier of all its threads;
// learnt: what its threads all know of others since then.
struct Cta {
  u32 index[3];
  u64 number = 0;
  bool idle = false;  // whether a turn of all its warps changed nothing
  u32 began = 1, met = 1, known = 0, fenced = 0;  // fenced: time of its last fence
  std::vector<u8> shared, local, written, registers;
  std::vector<SharedShadow> shadow;
  std::vector<Store> replaced;  // as shadow; empty where there are no atomics
  std::vector<Cell> cells;  // of shared memory, by granule
  std::vector<Warp> warps;
  std::vector<LaneOrder> lanes;
  NamedBarrier named[16];
  Known learnt, passed_on[2];
  Flags flags;
  // rank: in its cluster. finished: all its threads have left; left: what these knew. visits: of others.
  Cluster* cluster = nullptr;
  u32 rank = 0;
  bool finished = false;
  std::unordered_map<u32, Mbarrier> mbarriers;    // by address
  std::unordered_map<u32, BulkCopies> bulk;       // by thread
  std::unordered_map<u64, Visit> visits;          // by block and thread
  Known left;
  std::vector<Warpgroup> warpgroups;  // empty where no instruction is one of a warpgroup
};
// Blocks that run together, one or more. pending: copies whose data has not arrived. gathered: what those
// know who have arrived at the barrier of the cluster; told: what those learn who wait there.
struct Cluster {
  u64 number = 0;
  std::deque<Cta> blocks;
  std::deque<Operation> pending;
  Known gathered, told;
};
struct Range {  // of addresses; high: the first one behind it
  u64 low, high;
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
  const Program* program;
  int warp = 0;
  u32 traits = 0, began = 1, met = 1, threads = 0;
  u64 block_number = 0, stores = 0;  // stores: and atomics that changed what was there
  SharedShadow* shadow = nullptr;
  Warp* warps = nullptr;
  Said* said;
  Heap heap;
  u64 heap_bytes;
  u32 stack_start, stack_limit;
  Cta* cta = nullptr;
  u32 now = 1;                       // see order.h
  std::vector<Other> others{1};      // number 0: none
  u32 free_other = 0;
  Flags flags_of_memory;
  u32 cluster[3] = {1, 1, 1};
  u32 thread_registers = 0;          // at the launch; 0: not known
  bool insists = false;  // that lanes look again at mbarriers that have not changed
  Watch* watched = nullptr;  // what `watch` is while its block runs
  Verdicts verdicts;
  Swizzles swizzles;
  u64 seed;
  std::mt19937_64 random;
  bool alone = true, interacts = false;  // whether no other thread runs blocks; whether blocks touch the same
  // What the lanes are about to store: registers, bytes of each, addresses.
  void* const* incoming = nullptr;
  const void* incoming_address = nullptr;
  u32 incoming_width = 0;
  bool incoming_wide = false;  // whether addresses have 64 bits

  Finding* report(Kind kind, s32 line, int lane, s32 other = 0, u64 address = 0, u32 other_block = 0);
  Finding* report_access(Kind kind, s32 line, int lane, Act act, Space space, u64 address, u32 bytes,
                         s32 other = 0, int other_thread = -1, u32 other_block = 0);
  // Number of the buffer, from 1; all that malloc gave is one, with what lies just before it.
  u64 buffer_of(u64 address) const {
    if (heap.buffers.empty()) return address >> BUFFER_SHIFT;
    return least<u64>((address + (1ull << (BUFFER_SHIFT - 1))) >> BUFFER_SHIFT, heap.first + 1);
  }
  // The memory behind an address, or nullptr after a finding. bytes: a power of two.
  u8* at_shared(u32 address, u32 bytes, const MicroOp& op, int lane, Act act) {
    return at_own(SHARED, shared, shared_bytes, address, bytes, op, lane, act);
  }
  u8* at_local(u64 address, u32 bytes, const MicroOp& op, int lane, Act act) {
    return at_own(LOCAL, local + (u64)(warp * 32 + lane) * local_stride, local_bytes, address, bytes, op,
                  lane, act);
  }
  // What an access to shared or local memory may reach: the variable that its address comes from, if that is
  // known, otherwise all of it.
  Range reach(Space space, u32 memory_bytes, const MicroOp& op) const {
    if (op.extent->space != space) return {0, memory_bytes};
    return {op.extent->low, least(op.extent->high, memory_bytes)};
  }
  u8* at_own(Space space, u8* memory, u32 memory_bytes, u64 address, u32 bytes, const MicroOp& op, int lane,
             Act act);
  u8* at_global(u64 address, u32 bytes, const MicroOp& op, int lane, Act act, u32 how = 0);
  u8* at_generic(u64 address, u32 bytes, const MicroOp& op, int lane, Act act, u32 how = 0);
  // In shared memory of any block of the cluster.
  u8* at_cluster(u32 address, u32 bytes, const MicroOp& op, int lane, Act act, u32 how);
  void touch(u32 address, u32 bytes, Act act, int lane, s32 line, u32 how = 0);
  void touch_reads(const u32* addresses, u32 lanes, u32 bytes, s32 line);
  void touch_writes(const u32* addresses, u32 lanes, u32 bytes, s32 line, u32 how);
  // Whether what is stored is what the memory holds, or what another lane of this instruction stores there.
  bool claim(Cell& cell);
  bool same_value(u32 bytes, const u8* data, int lane, bool together, int other_lane) const;

  // ---- order.cpp ---
  void touch_cell(Cell& cell, const Touch& touch);
  bool ordered(int lane, u32 block, u32 thread, u32 time, bool strong) const;
  void add_other(Cell& cell, const Touch& touch);
  void drop_others(Cell& cell);
  void drop_other(u32& link);
  void fence(u32 lanes, Scope scope);
  void fence_proxy(u32 lanes);
  void report_overwritten(const Touch& touch);
  // Of an operation's access.
  void touch_unit(Cell& cell, const Touch& touch, const Operation& operation);
  // Where the flags of a generic address are; of another block of the cluster it becomes the address there.
  Flags& flags_at(u64& address);
  // A strong access of a lane: what it learns from who stored there, what it tells who reads there.
  void synchronize(u64 address, u32 bytes, int lane, u32 how, bool reads);
  void forget_flag(u64 address, u32 bytes);
  Known told(int lane, Scope scope) const;
  void pass_on(u32 earlier);
  Known snapshot(u32 lanes) const;
  void learn(u32 lanes, const Known& known);
  void meet_in_warp(const u32* members);
  void meet_in_block();
};

inline u32 ballot(const u32* predicate) {
  u32 result = 0;
  for (int l = 0; l < 32; ++l) result |= (u32)(predicate[l] != 0) << l;
  return result;
}
inline u32 lanes_with(const u32* values, u32 value) {
  u32 mask = 0;
  LANES(mask |= (u32)(values[l] == value) << l)
  return mask;
}
// Each lane's address: a register, of 64 bits or of 32, and an offset.
template <class T> static inline void addresses(const u8* base, bool wide, s64 offset, T* result) {
  if (wide) LANES(result[l] = (T)(((const u64*)base)[l] + offset))
  else LANES(result[l] = (T)(((const u32*)base)[l] + (T)offset))
}
enum ShuffleMode { UP, DOWN, BUTTERFLY, INDEX };
// The lane whose value a shuffle takes for lane l; its own where the segment has none.
inline int shuffle_source(u32 mode, int l, u32 operand, u32 clamp, bool& valid) {
  const int segment = clamp >> 8 & 31, limit = clamp & 31, b = operand & 31;
  const int bound = (l & segment) | (limit & ~segment);
  int from = l;
  switch (mode) {
    case UP: from = l - b; break;
    case DOWN: from = l + b; break;
    case BUTTERFLY: from = l ^ b; break;
    case INDEX: from = (l & segment) | (b & ~segment); break;
  }
  valid = mode == UP ? from >= bound : from <= bound;
  return valid ? from : l;
}
const u32 REGISTERS = 1 << 16;  // of a multiprocessor
// Every lane must execute: a finding otherwise, and false.
bool whole_warp(Machine& machine, const Warp& warp, s32 line);
void check_warpgroups(Machine&);

// ---- units.cpp, mbarrier.cpp, bulk.cpp, cluster.cpp ---
// A block of the cluster and an address in its shared memory; cta: nullptr where there is none.
struct Place {
  Cta* cta;
  u32 address;
};
const u32 IN_BLOCK = (1u << RANK_SHIFT) - 1;  // the rest of an address of the cluster
Place place_of(const Machine&, u32 address);
u8* shared_of(Cta&);
// Notes a remote access; false after a finding that the block has left.
bool visit(Machine&, Cta&, const Visit&, Act act, u32 bytes);
// The mbarrier at an address of the cluster, or nullptr after a finding.
Mbarrier* mbarrier_at(Machine&, u32 address, s32 line, int lane);
// A copy has brought bytes to an mbarrier. known: what its completion tells.
void bring(Machine&, Cta&, u32 address, const Operation&, u32 bytes);
// A copy that is at fault brings nothing, which nobody shall wait for.
void lose(Machine&, Mbarrier&);
// The cp.async of some lanes that are under way arrive.
void land_copies(Machine&, Warp&, u32 lanes);
bool awaits_in_vain(const Warp&);
void report_awaited(Machine&, const Warp&, int lane, s32 line);
void report_misuse(Machine&, Misuse, s32 line, int lane, u32 address, u32 value = 0);
void leave(Machine&, Warp&, u32 lanes);  // the kernel
// Blocks of a cluster run together until all have left, or none can go on.
enum Progress { FINISHED, STUCK, STOPPED };
Progress run_cluster(Machine&, Cluster&);

// ---- block.cpp ---
// Runs the warps of M.cta until all have left, or none of them can go on.
Progress run_block(Machine& M);
void enter(Machine& M, Cta& cta);
// ---- deadlock.cpp ---
// resident: clusters that a GPU holds at once.
void report_stuck(Machine& M, u32 resident, u64 left);
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
int row_wavefronts(const u32* rows, int matrices);
// Sectors of one access to global memory.
int global_sectors(const u64* address, u32 mask, u32 width);
struct CopyCost {
  int wavefronts, sectors;
};
CopyCost copy_cost(const u32* target, const u64* source, u32 mask, u32 reads, u32 width, bool bypass);
void count_rows(Machine&, s32 counter, const u32* rows, int matrices);
void count_global(Machine&, s32 counter, const u64* address, u32 mask, u32 width);
// One cp.async. mask: lanes that copy; reads: those that read their source at all.
void count_copy(Machine&, s32 shared_counter, s32 global_counter, const u32* target, const u64* source,
                u32 mask, u32 reads, u32 width, bool bypass);
void watch_request(Machine&, s32 counter, const u32* address, u32 mask, u32 width, u64 cost, u64 ideal);
void watch_values(Machine&);
// Keeps what a unit, or a thread with one, does in a launch that is watched. Its number, NONE where it is not
// kept. place: the block whose shared memory it is about.
u32 note_event(Machine&, const Event&, const Cta& place);
void note_moved(Machine&, const Moved&);
// ---- record.cpp ---
struct Counted {
  s32 counter;
  Counting counting;
  u32 mask, width, cost, ideal;
};
// Keeps an access of the block that is watched, where its records are asked for.
void record_access(Machine&, const Counted&, const u32* address, s32 source_counter = -1,
                   const u64* source = nullptr, u32 reads = 0, u32 source_cost = 0);
void record_access(Machine&, const Counted&, const u64* address);
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
