// The seam between executing and listening. Execution says what happened; counting, recording and watching listen. An
// observer is added to a launch once, when it starts, so that a launch without any costs an empty loop.
//
// counter: number of the instruction among those that are counted, negative for one that is not.
#pragma once
#include "state/machine.h"
#include <functional>
#include <queue>

struct SharedAccess {  // of the lanes whose access happens
  s32 counter;
  const u32* address;
  u32 lanes, width;
  bool store;  // or atomic
};
struct MatrixRows {  // ldmatrix, stmatrix: eight rows of 16 bytes for each matrix
  s32 counter;
  const u32* rows;
  u32 matrices;
  u32 lanes() const { return matrices == 4 ? NONE : (1u << 8 * matrices) - 1; }  // that name a row
};
struct GlobalAccess {  // or one of local memory, which has no counter
  s32 counter;
  const u64* address;
  u32 lanes, width;
  s32 line;
  Act act;
};
// One cp.async. reads: lanes that read their source at all; available: how many bytes, nullptr: all. copies: those
// that are under way.
struct AsyncCopies {
  s32 counter, global_counter, line;
  const u32 *target, *available;
  const u64* source;
  u32 lanes, reads, width;
  bool bypass;
  const AsyncCopy* copies;
  u64 count;
};
struct BoxCopy {  // sectors: of global memory, row by row; bytes: inside the tensor
  s32 counter;
  u32 sectors, bytes;
};
// The pieces of global memory, one after another, that the bulk copy of a lane reads or writes. tile: which filling of
// an mbarrier it is part of.
struct BulkPiece {
  u64 address;
  u32 bytes, lane;
  s32 line;
  Act act;
  u64 tile;
  bool first;  // of its copy
};
struct WarpgroupProduct {  // rows: of A and B in shared memory
  s32 counter;
  u32 rows;
};
// What a unit, or a thread with one, does to a block's shared memory, and the pieces that it moves.
struct UnitEvent {
  Event event;
  const Cta& place;
  std::vector<Moved> moved;
};

struct Observer {
  virtual ~Observer() = default;
  virtual void on(const Machine&, const SharedAccess&) {}
  virtual void on(const Machine&, const MatrixRows&) {}
  virtual void on(const Machine&, const GlobalAccess&) {}
  virtual void on(const Machine&, const AsyncCopies&) {}
  virtual void on(const Machine&, const BoxCopy&) {}
  virtual void on(const Machine&, const BulkPiece&) {}
  virtual void on(const Machine&, const WarpgroupProduct&) {}
  virtual void on(const Machine&, const UnitEvent&) {}
  virtual void on_performed(const Machine&) {}  // an access: memory holds what it has stored
};
template <class T> inline void tell(const Machine& M, const T& what) {
  for (Observer* observer : M.observers) observer->on(M, what);
}
inline void tell_performed(const Machine& M) {
  for (Observer* observer : M.observers) observer->on_performed(M);
}
// Fields of Event that are not given are 0.
inline Event event_of(Happening what, s32 line, u32 lanes, u32 address, u64 phase, u32 bytes) {
  Event event{what};
  event.line = line, event.lanes = lanes, event.address = address, event.phase = (u32)phase, event.bytes = bytes;
  return event;
}
// Of a unit of the current warp.
inline void tell_event(const Machine& M, Event event, const Cta& place) {
  if (!M.unit_events) return;
  event.warp = M.warp;
  tell(M, UnitEvent{event, place, {}});
}

// ---- counting.cpp ---
struct CountAccesses : Observer {
  Counter* counters;
  explicit CountAccesses(Counter* counters) : counters(counters) {}
  using Observer::on;
  void on(const Machine&, const SharedAccess&) override;
  void on(const Machine&, const MatrixRows&) override;
  void on(const Machine&, const GlobalAccess&) override;
  void on(const Machine&, const AsyncCopies&) override;
  void on(const Machine&, const BoxCopy&) override;
  void on(const Machine&, const WarpgroupProduct&) override;
};
// The access that ptxas makes of this one and its neighbours. addresses: room for its addresses. False where another
// access counts for it, or nothing is counted.
bool merge(const Machine&, SharedAccess&, u32* addresses);

// ---- of a block that is watched ---
struct Watcher : Observer {
  Watch& watch;
  explicit Watcher(Watch& watch) : watch(watch) {}
};
// ---- watching.cpp: the requests of one warp to shared memory, in order ---
struct KeepRequests : Watcher {
  using Watcher::Watcher, Observer::on;
  void on(const Machine&, const SharedAccess&) override;
  void on(const Machine&, const MatrixRows&) override;
  void on(const Machine&, const AsyncCopies&) override;
  void on_performed(const Machine&) override;
};
// ---- watching.cpp: what units do ---
struct KeepUnitEvents : Watcher {
  using Watcher::Watcher, Observer::on;
  void on(const Machine&, const UnitEvent&) override;
};
bool is_watched(const Machine&, const Watch&);  // whether the block that runs is
// ---- touching.cpp: who accesses each element of an array ---
struct KeepTouches : Watcher {
  using Watcher::Watcher, Observer::on;
  void on(const Machine&, const GlobalAccess&) override;
  void on(const Machine&, const AsyncCopies&) override;
  void on(const Machine&, const BulkPiece&) override;
};

// ---- steps.cpp: what the warps of a block execute, in order, and what their accesses cost ---
struct KeepSteps : Watcher {
  using Watcher::Watcher, Observer::on;
  u32 step = NONE;                // that the last row of a unit was made in
  std::vector<LinePiece> pieces;  // of the copy that is told next
  u64 row = 0, row_end = 0;       // of these, the one that is told now: where it begins, and where it ends as far as known
  u32 extra = 0;                  // of those before it: see extra_of
  void on(const Machine&, const SharedAccess&) override;
  void on(const Machine&, const MatrixRows&) override;
  void on(const Machine&, const GlobalAccess&) override;
  void on(const Machine&, const AsyncCopies&) override;
  void on(const Machine&, const BulkPiece&) override;
  void on(const Machine&, const UnitEvent&) override;
  void end_row(bool stores);
};
void note_step(const Machine&, u32 block, u32 lanes);
void note_barrier(const Machine&, s32 line, u32 lanes, u32 number);  // that lanes have come to
void forget_step(const Machine&);  // the last: no lane has got through

// ---- waits.cpp: how long blocks wait for words that others store ---
// cycles: of a warp in each basic block, negative in a loop that waits for memory. link: from a store until a look at the
// word finds it. resident: blocks that run at once. last: when the last block ends.
typedef std::priority_queue<f64, std::vector<f64>, std::greater<f64>> Ends;  // of blocks, the first one next
struct Waits {
  const f64* cycles;
  f64 link;
  u64 resident, begun = 0;
  Elapsed last;
  Waits(const Watch& watch, u64 resident) : cycles(watch.cycles), link(watch.link), resident(resident) {}
  void begin(std::vector<Warp>&), end(const std::vector<Warp>&), meet(std::vector<Warp>&);
  void advance(Warp& W, u32 block, int times) {
    waits = cycles[block] < 0;
    if (waits) return;
    W.elapsed.alone += times * cycles[block], W.elapsed.among += times * cycles[block];
  }
  void look(Machine&, u64 address, u32 bytes) const;
  void leave(const Machine&, u64 address, u32 bytes, bool updates);

 private:
  struct Left {  // in a word. block: that stored it last
    u32 block;
    f64 among;
  };
  std::unordered_map<u64, Left> words;  // by address / 4
  Ends alone, among;                    // when blocks end in whose place others have yet to begin
  bool waits = false;                   // whether the warp that runs is in a loop that waits
};

// ---- recording.cpp: all accesses of one block, each once with how often it was made ---
struct RecordAccesses : Watcher {
  using Watcher::Watcher, Observer::on;
  void on(const Machine&, const SharedAccess&) override;
  void on(const Machine&, const MatrixRows&) override;
  void on(const Machine&, const GlobalAccess&) override;
  void on(const Machine&, const AsyncCopies&) override;
};
