// mbarriers: objects in shared memory that count arrivals of threads and bytes of asynchronous copies.
// Source: PTX ISA 9.0, Parallel Synchronization and Communication Instructions: mbarrier.
#include "async/async.h"
#include "check/check.h"
#include "observe/observer.h"
#include "operands.h"

const u32 MOST = (1 << 20) - 1;  // arrivals of a phase, and bytes

// ---- where they are ---
struct Lanes {  // addresses of shared memory of the cluster; NONE: of no shared memory
  u32 address[32];
};
template <class Op> static Lanes places(const Op& op) {
  ALIGNED u64 given[32];
  Lanes found;
  op.where().fill(given);
  const u64 window = op.generic() ? SHARED_WINDOW : 0;
  LANES(found.address[l] = given[l] - window < WINDOW_BYTES ? (u32)(given[l] - window) : NONE)
  return found;
}
static u32 lanes_at(const Lanes& at, u32 lanes, int lane) {
  u32 same = 0;
  LANES(same |= (u32)(at.address[l] == at.address[lane]) << l)
  return same & lanes;
}
static bool well_placed(Machine& M, const Place& place, u32 address, s32 line, int lane) {
  if (!place.cta || place.address + 8 > M.launch.shared_bytes) {
    report_access(M, OUT_OF_BOUNDS, line, lane, ATOMIC, SHARED, address, 8);
    return false;
  }
  if (address % 8) report_misuse(M, MISPLACED, line, lane, address);
  return address % 8 == 0;
}
Mbarrier* mbarrier_at(Machine& M, u32 address, s32 line, int lane) {
  const Place place = place_of(M, address);
  if (!well_placed(M, place, address, line, lane)) return nullptr;
  const auto found = place.cta->mbarriers.find(place.address);
  if (found != place.cta->mbarriers.end() && found->second.valid) return &found->second;
  report_misuse(M, NOT_INITIALISED, line, lane, address);
  return nullptr;
}
// As above, for a thread: it must know that the mbarrier has been initialised.
static Mbarrier* used_by(Machine& M, u32 address, s32 line, int lane) {
  const Place place = place_of(M, address);
  const u32 self = M.thread_of(lane);
  if (place.cta && place.cta != M.cta &&
      !visit(M, *place.cta, {M.block_number(), self, M.epoch, address, line, lane, M.warp}, ATOMIC, 8))
    return nullptr;
  Mbarrier* barrier = mbarrier_at(M, address, line, lane);
  if (!barrier) return nullptr;
  const u32 block = place.cta->number + 1;
  if (!happens_before(M, lane, block, barrier->by, barrier->epoch, false))
    report_access(M, RACE, line, lane, ATOMIC, SHARED, address, 8, barrier->line, barrier->by,
                    place.cta == M.cta ? 0 : block);
  return barrier;
}
// By an access of a thread or a unit in an epoch.
static void complete(Mbarrier& b, u32 block, u32 thread, u32 epoch) {
  if (b.pending || (b.bytes && !b.lost)) return;
  b.pending = b.expected, b.bytes = 0, b.lost = false, b.completed = b.arrived;
  b.ended = {block, thread, epoch};
  ++b.phase, ++b.changes;
}

// Something that lanes do to an mbarrier.
static void note(const Machine& M, Happening what, s32 line, u32 lanes, const Place& at, u64 phase, u32 bytes) {
  if (at.cta) tell_event(M, event_of(what, line, lanes, at.address, phase, bytes), *at.cta);
}

// ---- init and inval ---
// Marks the granules of an mbarrier, or takes the mark away where no other one is left.
static void mark(Machine& M, u32 address, int lane, s32 line, bool valid) {
  GRANULES(M, address, 8, {
    Cell& cell = M.cta->cells[g];
    const u32 start = g << M.launch.granule_shift, bytes = 1u << M.launch.granule_shift;
    const bool marked = cell.how & OF_BARRIER;
    if (valid && marked) continue;
    bool other = false;
    for (u32 at = start & ~7u; at < start + bytes; at += 8) {
      const auto found = M.cta->mbarriers.find(at);
      other |= at != address && found != M.cta->mbarriers.end() && found->second.valid;
    }
    if (!valid && other) continue;
    cell.how &= ~OF_BARRIER;
    check_shared(M, greatest(start, address), least(bytes, 8u), WRITE, lane, line);
    if (valid) cell.how |= OF_BARRIER;
  })
}
static void execute(Machine& M, Warp& W, const ops::Initialise& op) {
  const Lanes at = places(op);
  ACTIVE(W.active, {
    const Place place = place_of(M, at.address[l]);
    const u32 count = op.count()[l];
    if (!well_placed(M, place, at.address[l], op.line(), l)) continue;
    if (place.cta != M.cta) {
      report_misuse(M, MISPLACED, op.line(), l, at.address[l]);
      continue;
    }
    if (!count || count > MOST) {
      report_misuse(M, BAD_COUNT, op.line(), l, at.address[l], count);
      continue;
    }
    Mbarrier& b = M.cta->mbarriers[place.address];
    if (b.valid) report_misuse(M, IN_USE, op.line(), l, place.address, b.pending != b.expected || b.bytes);
    mark(M, place.address, l, op.line(), true);
    const u64 changes = b.changes + 1;
    b = Mbarrier();
    b.valid = true, b.expected = b.pending = count, b.changes = changes;
    b.by = M.thread_of(l), b.epoch = M.epoch, b.line = op.line();
    note(M, INITIALISED, op.line(), 1u << l, place, 0, count);
  })
  ++M.epoch, ++M.stores;
}
static void execute(Machine& M, Warp& W, const ops::Invalidate& op) {
  const Lanes at = places(op);
  ACTIVE(W.active, {
    Mbarrier* b = used_by(M, at.address[l], op.line(), l);
    if (!b || place_of(M, at.address[l]).cta != M.cta) continue;
    b->valid = false, ++b->changes;
    mark(M, place_of(M, at.address[l]).address, l, op.line(), false);
  })
  ++M.epoch, ++M.stores;
}
// The thread that has initialised mbarriers lets others, and the copies of the cluster, see it.
static void execute(Machine& M, Warp& W, const ops::FenceInit&) {
  for (auto& [address, b] : M.cta->mbarriers)
    if ((int)b.by / 32 == M.warp && W.active >> b.by % 32 & 1) b.fenced = true;
  fence(M, W.active, DEVICE);
}

// ---- arrivals and bytes ---
using Arrival = ops::Arrival;
static u64 state_of(const Mbarrier& b) { return b.phase << 20 | b.pending; }
static void count_arrivals(Machine& M, Mbarrier& b, u32 how, u32 count, s32 line, int lane, u32 address) {
  if (!count || count > MOST) return report_misuse(M, BAD_COUNT, line, lane, address, count);
  if (how & Arrival::NO_COMPLETE && count >= b.pending)
    report_misuse(M, COMPLETES, line, lane, address);
  else if (count > b.pending)
    return report_misuse(M, TOO_MANY_ARRIVALS, line, lane, address, b.expected);
  b.pending -= least(count, b.pending);
  if (how & Arrival::DROPS) b.expected -= least(count, b.expected);
}
// An arrival in a phase has to come behind the end of the one before: otherwise it may as well be counted in that one,
// which has taken another in its place, and does not wait for this one.
static void check_phase(Machine& M, const Mbarrier& b, s32 line, int lane, u32 address) {
  const auto& e = b.ended;
  if (!b.phase || !e.block || happens_before(M, lane, e.block, e.thread, e.epoch, true)) return;
  if (!is_observed(M, lane, e.block, e.thread, e.epoch))
    report_misuse(M, OF_ANOTHER_PHASE, line, lane, address, b.expected);
}
static void execute(Machine& M, Warp& W, const ops::Tell& op) {
  const Lanes at = places(op);
  const u32 how = op.how();
  u32 done = 0;
  ACTIVE(W.active, {
    const u32 address = at.address[l];
    Mbarrier* b = used_by(M, address, op.line(), l);
    if (op.state()) op.state()[l] = b ? state_of(*b) : 0;
    if (!b) continue;
    if (how & Arrival::ARRIVES && !(done >> l & 1)) {
      const u32 together = how & Arrival::RELAXED ? 1u << l : lanes_at(at, W.active, l);
      const Clock known = clock_of_lanes(M, together);
      if (how & Arrival::RELAXED) b->arrived = join(b->arrived, join(release_clock(M, l, DEVICE), as_observed(known)));
      else b->arrived = join(b->arrived, known);
      done |= together;
      if (M.waits) b->elapsed.join(W.elapsed);
      const u32 arrivals = op.count() ? op.count()[l] : 1;
      const u32 counted = how & Arrival::EXPECTS ? op.bytes()[l] : arrivals * __builtin_popcount(together);
      note(M, how & Arrival::EXPECTS ? EXPECTED : ARRIVED, op.line(), together, place_of(M, address), b->phase, counted);
    }
    if (how & (Arrival::EXPECTS | Arrival::COMPLETES_BYTES)) {
      const u32 bytes = op.bytes()[l];
      const s64 sum = b->bytes + (how & Arrival::EXPECTS ? (s64)bytes : -(s64)bytes);
      if (bytes > MOST || sum > MOST || sum < -(s64)MOST)
        report_misuse(M, BYTES_OUT_OF_RANGE, op.line(), l, address, bytes);
      else b->bytes = sum;
    }
    if (how & Arrival::ARRIVES) {
      check_phase(M, *b, op.line(), l, address);
      count_arrivals(M, *b, how, op.count() ? op.count()[l] : 1, op.line(), l, address);
    }
    complete(*b, M.block_number(), M.thread_of(l), M.epoch);
  })
  ++M.epoch, ++M.stores;
}
void lose_bytes(Machine& M, Mbarrier& b) {
  b.lost = true;
  complete(b, 0, 0, 0);
  ++M.stores;
}
void complete_bytes(Machine& M, Cta& to, u32 address, const Operation& operation, u32 bytes) {
  Mbarrier& b = to.mbarriers[address];
  b.bytes -= bytes;
  tell_event(M, event_of(LANDED, operation.line, 1u << operation.lane, address, b.phase, bytes), to);
  b.arrived = join(b.arrived, completion(operation));
  if (operation.cta != &to) b.arrived = join(b.arrived, as_observed(operation.clock));
  if (b.bytes < -(s64)MOST)
    report_misuse(M, BYTES_OUT_OF_RANGE, operation.line, operation.lane, address, bytes);
  complete(b, operation.block, operation.thread, operation.epoch);
  ++M.stores;
}
static void execute(Machine& M, Warp& W, const ops::ArriveWithCopies& op) {
  const Lanes at = places(op);
  land_copies(M, W, W.active);
  ACTIVE(W.active, {
    Mbarrier* b = used_by(M, at.address[l], op.line(), l);
    if (!b) continue;
    b->arrived = join(b->arrived, clock_of_lanes(M, 1u << l));
    if (M.waits) b->elapsed.join(W.elapsed);
    if (op.noinc()) {
      note(M, ARRIVED, op.line(), 1u << l, place_of(M, at.address[l]), b->phase, 1);
      check_phase(M, *b, op.line(), l, at.address[l]);
      count_arrivals(M, *b, Arrival::ARRIVES, 1, op.line(), l, at.address[l]);
    }
    complete(*b, M.block_number(), M.thread_of(l), M.epoch);
  })
  ++M.epoch, ++M.stores;
}

// ---- waits ---
// Whether the lane has not awaited this phase before.
static bool await(Warp& W, const Mbarrier& b, u32 address, int lane) {
  if (!W.awaited) W.awaited = std::make_unique<Awaited>();
  Awaited& a = *W.awaited;
  const bool again = a.lanes >> lane & 1 && a.barrier[lane] == &b && a.phase[lane] == (u32)b.phase;
  a.lanes |= 1u << lane;
  a.barrier[lane] = &b, a.changes[lane] = b.changes, a.address[lane] = address, a.phase[lane] = b.phase;
  return !again;
}
// Whether the phase that a lane names is over. value: its parity, or the state that an arrival gave.
static bool is_over(Machine& M, const Mbarrier& b, bool parity, u64 value, s32 line, int lane, u32 address) {
  if (parity) return (b.phase & 1) != (value & 1);
  const u64 phase = value >> 20;
  if (b.phase > phase + 1 || b.phase < phase) report_misuse(M, OLD_STATE, line, lane, address);
  return b.phase != phase;
}
static void execute(Machine& M, Warp& W, const ops::Test& op) {
  const Lanes at = places(op);
  const bool parity = op.parity(), relaxed = op.relaxed();
  const Mbarrier* barrier[32];
  u32 over = 0, awaiting = 0;
  ACTIVE(W.active, {
    const u32 address = at.address[l];
    Mbarrier* const b = used_by(M, address, op.line(), l);
    barrier[l] = b;
    const u64 value = parity ? ((const u32*)op.value())[l] : ((const u64*)op.value())[l];
    const bool done = !b || is_over(M, *b, parity, value, op.line(), l, address);  // none: it goes on
    op.result()[l] = done;
    if (!done) awaiting |= (u32)await(W, *b, address, l) << l;
    if (!done || !b) continue;
    over |= 1u << l;
    if (M.waits) W.elapsed.join(b->elapsed);
    b->seen.resize(M.threads), b->seen[M.thread_of(l)] = b->phase;
  })
  if (W.awaited && W.awaited->lanes & over) W.awaited->lanes &= ~over, ++M.stores;
  while (M.unit_events && awaiting) {
    const int first = __builtin_ctz(awaiting);
    const u32 together = lanes_at(at, awaiting, first);
    note(M, TESTED, op.line(), together, place_of(M, at.address[first]), barrier[first]->phase, 0);
    awaiting &= ~together;
  }
  while (over) {
    const int first = __builtin_ctz(over);
    const u32 together = relaxed ? 1u << first : lanes_at(at, over, first);
    note(M, PASSED, op.line(), together, place_of(M, at.address[first]), barrier[first]->phase - 1, 0);
    LaneClock& own = M.cta->lanes[M.warp * 32 + first];
    if (relaxed) own.pending = join(own.pending, barrier[first]->completed);
    else acquire(M, together, barrier[first]->completed);
    over &= ~together;
  }
}
// Whether all lanes that could go on have tested mbarriers that are as they were.
bool awaits_in_vain(const Warp& W) {
  if (!W.awaited || !W.polling || W.stalled || W.polling & ~W.awaited->lanes) return false;
  if (W.live & ~(W.waiting | W.held | W.polling)) return false;
  const Awaited& a = *W.awaited;
  ACTIVE(W.polling, if (a.barrier[l]->changes != a.changes[l]) return false)
  return true;
}
static void execute(Machine&, Warp& W, const ops::PendingCount& op) {
  ACTIVE(W.active, op.result()[l] = op.state()[l] & MOST)
}
static void execute(Machine& M, Warp& W, const ops::FenceProxy&) { fence_proxy(M, W.active); }
