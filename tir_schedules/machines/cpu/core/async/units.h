// Asynchronous units: what copies and multiplies while threads go on. The order of accesses (order.h) knows
// each as a thread of its block, with a number behind those of all threads, so that Group, Known and Cell
// cover what it does.
//
// An operation is begun by lanes of a warp: it learns what they know, of which some is fenced for the
// asynchronous proxy (see FENCED in order.h). All its accesses are checked and noted then, in its name, by
// `touch_shared` and `reach_global`. Its data is moved by `perform`, at once, or as late as allowed (Flag
// EARLY says which). Who waits for it learns `completion(operation)`; until then its accesses are ordered
// with nobody's.
#pragma once
#include <deque>
#include <functional>
#include <unordered_map>
#include "check/order.h"

struct Machine;
struct Warp;
struct MicroOp;
struct Cta;

// Numbers of units among the threads of a block: the bulk copies that each thread groups, which read and
// which write; the products of each warp's part of a warpgroup; the copies that each mbarrier is told of, by
// its place in shared memory.
const u32 BULK_READS = FIRST_UNIT, BULK_WRITES = 2048, PRODUCTS = 3072, COPIES = 3104;
inline u32 bulk_reader(u32 thread) { return BULK_READS + thread; }
inline u32 bulk_writer(u32 thread) { return BULK_WRITES + thread; }
inline u32 product_unit(u32 warp) { return PRODUCTS + warp; }
inline u32 copy_unit(u32 barrier) { return COPIES + barrier / 8; }
// The thread whose unit it is, the first one of a warp; -1 where it may be of any.
inline int thread_of_unit(u32 unit) {
  return unit < PRODUCTS ? (int)(unit % FIRST_UNIT) : unit < COPIES ? (int)(unit - PRODUCTS) * 32 : -1;
}

// cta, warp, lane: who began it. block, thread, time: in whose name it accesses memory, and when. known: what
// those knew that began it. proxy: whether it sees only what is fenced for it. group: of a bulk copy or a
// product, NONE before it is committed. perform: empty once it is done.
struct Operation {
  Cta* cta;
  u32 block, thread, time;
  s32 line;
  int warp, lane;
  bool proxy = true;
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
// Moves its data now, as of the block and warp that began it.
void perform(Machine&, Operation&);
// Whether an operation that begins now is performed at once.
bool at_once(Machine&);

// What an operation's knowledge says of accesses of others; kept, as most of its accesses meet the same ones.
struct Verdicts {
  static const u32 KEPT = 64;
  struct Verdict {
    u32 block = 0, thread, time;
    bool ordered, fenced;
  };
  Verdict known[KEPT];
  u32 operation = 0, unit = 0, of_block = 0;
  const Verdict& about(const Operation&, u32 block, u32 thread, u32 time);
};

// ---- products of a warpgroup: wgmma.mma_async --- Begins a warp's part of a product; keeps it in
// W.products, performed or not. "wgmma.commit_group" is in units.cpp, and "wgmma.wait_group" of a block that
// ends in Exit WAIT; its operand is how many groups may stay in flight.
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
  u32 sectors, inside;  // of global memory: sectors of 32 bytes, row by row; bytes
  u32 row, buffer;      // bytes of a row; number of the buffer
  std::vector<Piece> pieces;  // shared: address in shared memory, swizzled
};
void count_box(Machine&, s32 counter, const Box&);
// The swizzle in which boxes are copied into shared memory, by the line of the copy; MIXED: in several.
typedef std::unordered_map<s32, u32> Swizzles;
const u32 MIXED = 1;
// What a box at these coordinates, innermost first, covers. map: generic address of the tensor map; shared:
// where the box begins in shared memory.
Box box_at(Machine&, const MicroOp&, int lane, u64 map, u32 rank, const s32* coordinates, u32 shared,
           Act act, bool stores = false);

// ---- mbarriers --- An mbarrier in shared memory. expected: arrivals of a phase; pending: of this one;
// bytes: that copies are still to bring. phase: of those that have completed since it was initialised;
// changes: grows with whatever happens to it that ends a wait. gathered: what those know who have arrived;
// told: what those learn who wait. seen: phases that each thread of the block has seen to be over. copy: the
// last one that is to tell it of its bytes. valid: false once it has been invalidated. lost: whether copies
// of this phase were at fault, and bring nothing. by, time, fenced: the thread that initialised it, when, and
// whether a fence.mbarrier_init has followed.
struct Mbarrier {
  u32 expected = 0, pending = 0, by = 0, time = 0;
  s64 bytes = 0;
  u64 phase = 0, changes = 0;
  s32 line = 0;
  bool valid = false, fenced = false, lost = false;
  Known gathered, told;
  std::vector<u32> seen;
  struct {
    u32 time = 0;
    s32 line = 0;
    int warp = 0, lane = 0;
  } copy;
};
// What lanes of a warp that have tested an mbarrier in vain wait for. changes: of it, then.
struct Awaited {
  u32 lanes = 0;
  const Mbarrier* barrier[32];
  u64 changes[32];
  u32 address[32], phase[32];
};
// Bulk copies of a thread out of shared memory. groups: when each was committed. open: those that it has not
// waited for.
struct BulkCopies {
  std::vector<u32> groups;
  std::deque<Operation> open;
};

// What is left open by who leaves: `detail` of a LEFT_IN_FLIGHT.
enum Unfinished : u32 { STORES_OPEN, PRODUCTS_OPEN, COPIES_OPEN, BYTES_OPEN };

// What lanes wait for at the end of a block (Exit WAIT).
enum WaitsFor : u32 { CLUSTER, PRODUCTS_OF_OTHERS };

// Which way an mbarrier or a cluster's barrier is misused: `detail` of a BARRIER_MISUSE.
enum Misuse : u32 {
  NOT_INITIALISED, MISPLACED, BAD_COUNT, IN_USE, TOO_MANY_ARRIVALS, BYTES_OUT_OF_RANGE, OVERWRITTEN,
  OLD_STATE, COMPLETES, ARRIVED_TWICE, NEVER_ARRIVED, OF_ANOTHER_BLOCK
};
