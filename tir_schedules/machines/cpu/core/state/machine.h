// What a launch, a cluster, a block and a warp are while they run. No behaviour lives here.
//
// Every PTX instruction is one function over the 32 lanes of a warp. A register is an array of 32 values at a fixed
// offset of the warp's register file; an instruction names its registers by those offsets.
#pragma once
#include <deque>
#include <memory>
#include <random>
#include <vector>
#include "lanes/lanes.h"
#include "state/order.h"
#include "state/units.h"

// For each granule g of shared memory that an access touches.
#define GRANULES(M, address, bytes, ...)                                        \
  for (u32 shift_ = (M).launch.granule_shift, g = (address) >> shift_,          \
           last_ = ((address) + (bytes) - 1) >> shift_; g <= last_; ++g) {      \
    __VA_ARGS__;                                                                \
  }

struct Cluster;
struct Observer;

// Calls that lanes are in. made: where they return to, and their stack as it was before. saved: registers of
// recursive functions. target: the block that a call through a pointer, or a switch, goes to next. top: the end of
// the stack in local memory; used: bytes of it that count against its limit.
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

// What lanes wait for at the end of a block (Exit WAIT).
enum WaitsFor : u32 { CLUSTER, PRODUCTS_OF_OTHERS };

// active: lanes that execute the current instruction. waiting: at a barrier of the block; held: for other lanes of
// the warp; polling: went round a loop that waits for memory; stalled: at the end of a block that waits, and refused:
// those that it does not let go on; released: may execute what they were held at; excused: as their members are
// there, at another instruction; missed: that lanes have waited for.
struct Warp : WarpLanes {
  u32 pc[32];  // basic block each lane is at
  u32 active = 0, live = 0, waiting = 0, held = 0, polling = 0, stalled = 0, refused = 0, released = 0, excused = 0,
      missed = 0;
  bool started = false, idle = false;
  s32 barrier_line[32];
  u32 barrier[32];  // number of the one each lane waits at
  // issued: instructions, against the budget, which is short after a fault that ends a kernel on a GPU; state,
  // stores: when it last polled.
  u64 issued = 0, budget = 0, state = 0, stores = 0;
  std::vector<u8> sample;  // registers some rounds of a long loop ago
  u64 rounds = 0, sampled_stores = 0;
  u32 looked = 0;  // at memory, in this turn
  u64 clock = 0;  // what %clock64 gave last
  Elapsed elapsed;
  // Epoch of the last __syncwarp of all lanes; and of the last that two lanes were in, empty where there was a
  // __syncwarp of all lanes alone.
  u32 synced = 0;
  std::vector<u32> pairs;
  u32 groups[32];  // cp.async groups each lane has committed
  std::vector<AsyncCopy> copies;
  std::unique_ptr<Awaited> awaited;  // nullptr: no mbarrier
  std::deque<Operation> products;    // parts of them that nothing has waited for
  std::vector<u32> product_groups;   // the epoch in which each was committed
  std::shared_ptr<ProductRegisters> products_of;  // nullptr: no wgmma
  // At the barrier of the cluster: lanes that have arrived in this phase; that have yet to wait.
  u32 at_cluster = 0, to_wait = 0;
  WaitsFor waits_for = CLUSTER;      // of those that are stalled
  // Where a lane's load last found nothing written, by the PTX line of the load and the element; of followed loads.
  std::unordered_map<u64, std::array<u64, 32>> unwritten;
  std::unique_ptr<CallState> calls;  // nullptr: it calls no function

  // Up to which epoch the accesses of another lane come before those of this one.
  u32 synced_with(int lane, int other) const {
    if (pairs.empty()) return synced;
    return pairs[lane * 32 + other] > synced ? pairs[lane * 32 + other] : synced;
  }
};

// An access of another block of the cluster to a block's shared memory: the last one of its warp or unit.
struct Visit {
  u32 block, thread, epoch, address;
  s32 line;
  int lane, warp;
  Act act = READ;
};
// A block that runs (CTA), and all it has to itself. number: in the order of indices. began, met: epochs in which it
// began, and in which its threads last met at a barrier.
struct Cta {
  u32 index[3];
  u64 number = 0;
  bool idle = false;  // whether a turn of all its warps changed nothing
  std::vector<Warp> warps;
  // Memory: pointers to aligned bytes of the vectors. written: of every byte of local memory, whether it was.
  u8 *shared, *local, *registers;
  std::vector<u8> shared_bytes, local_bytes, written, register_bytes;
  // Order. synced: epoch of the last barrier of all its threads; acquired: the clock that all its threads have since
  // then; released: what they had put behind fences before it, by Scope; fenced: epoch of its last fence.
  u32 began = 1, met = 1, synced = 0, fenced = 0;
  Clock acquired, released[2];
  std::vector<LaneClock> lanes;
  SyncWords sync_words;
  NamedBarrier named[16];
  std::vector<SharedShadow> shadow;      // of shared memory, by granule
  std::vector<ReplacedStore> replaced;   // as shadow; empty where there are no atomics
  std::vector<Cell> cells;               // as shadow; empty where barriers of the block alone order accesses
  // Units, and the cluster. rank: in it. finished: all its threads have left; left: their clocks. visits: of others.
  Cluster* cluster = nullptr;
  u32 rank = 0;
  bool finished = false;
  std::unordered_map<u32, Mbarrier> mbarriers;  // by address
  std::unordered_map<u32, BulkCopies> bulk;     // by thread
  std::unordered_map<u64, Visit> visits;        // by block and thread
  Clock left;
  std::vector<Warpgroup> warpgroups;  // empty where no instruction is one of a warpgroup
};
// Blocks that run together, one or more. pending: copies whose data has not arrived. arrived: the clock of those that
// have arrived at the barrier of the cluster; completed: what a lane acquires that waits there.
struct Cluster {
  u64 number = 0;
  std::deque<Cta> blocks;
  std::deque<Operation> pending;
  Clock arrived, completed;
};

struct Allocation {  // what malloc gave
  u64 bytes;
  bool freed;
};
// What lies behind global addresses. buffers: those of the launch, then one for each Allocation in `made`, the first
// of which is `first`; `owned` has them once there is an Allocation.
struct GlobalMemory {
  const Buffer* buffers;
  u32 count;
  std::vector<Buffer> owned;
  std::vector<Allocation> made;
  u64 first = 0, used = 0;
  SyncWords sync_words;
  ~GlobalMemory() {
    for (u64 k = first; k < owned.size(); ++k) free(owned[k].data);
  }
};
// What the lanes are about to store: registers, bytes of each, addresses. values: nullptr when they store nothing.
struct Incoming {
  void* const* values = nullptr;
  const void* address = nullptr;
  u32 width = 0;
  bool wide = false;  // whether addresses have 64 bits
};
// The load that runs, where what it finds unwritten is followed. width: of an element, 0: none is.
struct FollowedLoad {
  u32 width = 0;
  Undefined found[4] = {};
};

struct Waits;
struct Machine {
  const LaunchArguments& launch;
  const Program& program;
  const u32 threads, local_stride;  // of a block; bytes from a lane's local memory to the next one's
  // What executes. stores: and atomics that changed what was there; it grows with whatever may end a wait.
  Cta* cta = nullptr;
  int warp = 0;
  u64 stores = 0;
  const volatile u32* stop;  // not 0: the launch is to end
  BlockCount* block_counts;
  std::mt19937_64 random;
  bool alone = true, interacts = false;  // whether no other thread runs blocks; whether blocks touch the same
  u32 looks = 1;                         // at memory that a loop waits for, in a turn of its warp
  bool insists = false;                  // that lanes look again at mbarriers that have not changed
  GlobalMemory global;
  // What checks know.
  u32 epoch = 1;  // see state/vector_clock.h
  Finding* findings;
  u32 finding_limit, finding_count = 0;  // limit: records of one kind
  std::vector<PriorAccess> prior{1};     // number 0: the end of a list
  u32 free_prior = 0;
  Incoming incoming;
  FollowedLoad followed;
  Verdicts verdicts;
  Swizzles swizzles;
  std::unordered_map<u64, bool> behind;  // by barrier and block: whether lanes there have gone past the barrier
  // What listens to what execution does: see observe/observer.h. Empty: nothing does.
  std::vector<Observer*> observers;
  bool unit_events = false;  // whether one of them listens to what units do
  Waits* waits = nullptr;    // what tells how long blocks wait for each other, if anything does
  Watch* traced = nullptr;   // where basic blocks are noted, if anywhere; then races are not looked for

  explicit Machine(const LaunchArguments& a)
      : launch(a), program(*a.program), threads(a.block[0] * a.block[1] * a.block[2]),
        local_stride((a.local_bytes + 15) & ~15u), stop(a.stop), block_counts(a.block_counts), random(a.seed),
        global{a.buffers, a.buffer_count}, findings(a.findings), finding_limit(a.finding_limit) {}
  u32 thread_of(int lane) const { return warp * 32 + lane; }
  u32 block_number() const { return (u32)cta->number + 1; }  // as clocks and cells have it
  u8* local_of(int lane) const { return cta->local + (u64)thread_of(lane) * local_stride; }
  u8* local_written_of(int lane) const { return cta->written.data() + (u64)thread_of(lane) * local_stride; }
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

// The lane whose value a shuffle takes for lane l; its own where the segment has no such lane.
inline int shuffle_source(ops::ShuffleMode mode, int l, u32 operand, u32 clamp, bool& valid) {
  using Mode = ops::ShuffleMode;
  const int segment = clamp >> 8 & 31, limit = clamp & 31, b = operand & 31;
  const int bound = (l & segment) | (limit & ~segment);
  int from = l;
  switch (mode) {
    case Mode::UP: from = l - b; break;
    case Mode::DOWN: from = l + b; break;
    case Mode::BUTTERFLY: from = l ^ b; break;
    case Mode::INDEX: from = (l & segment) | (b & ~segment); break;
  }
  valid = mode == Mode::UP ? from >= bound : from <= bound;
  return valid ? from : l;
}

// ---- addresses of shared memory of a cluster ---
// A block of the cluster and an address in its shared memory; cta: nullptr where there is no such block.
struct Place {
  Cta* cta;
  u32 address;
};
const u32 IN_BLOCK = (1u << RANK_SHIFT) - 1;  // the rest of an address of the cluster
inline Place place_of(const Machine& M, u32 address) {
  const u32 rank = address >> RANK_SHIFT;
  if (!rank) return {M.cta, address};
  std::deque<Cta>& blocks = M.cta->cluster->blocks;
  return {rank <= blocks.size() ? &blocks[rank - 1] : nullptr, address & IN_BLOCK};
}
// An address of a block's shared memory, as a finding shows it.
inline u32 shown_address(const Machine& M, const Cta& cta, u32 address) {
  return &cta == M.cta ? address : (cta.rank + 1) << RANK_SHIFT | address;
}
