// Which threads wait when no thread can go on, and for what.
#include "check/check.h"

// What an mbarrier of the block is in a ring, as `layout --ring` has it: twice its number among those of its kind, by
// their addresses, and one more where copies tell it of their bytes; and 1. 0: no copy tells any.
static u32 role_of(const Cta& cta, const Mbarrier& b, u32 address) {
  auto is_full = [](const Mbarrier& one) { return one.copy.line || one.bytes; };
  u32 before = 0;
  bool ring = false;
  for (const auto& [at, other] : cta.mbarriers)
    ring |= is_full(other), before += other.valid && at < address && is_full(other) == is_full(b);
  return ring ? 1 + 2 * before + is_full(b) : 0;
}
// What the mbarrier lacks that a lane waits for.
static void report_awaited(Machine& M, const Warp& W, int lane, s32 line) {
  const Awaited& a = *W.awaited;
  const Mbarrier& b = *a.barrier[lane];
  Finding* f = report(M, DEADLOCK, line, lane, 0, a.address[lane]);
  if (!f) return;
  f->act = ATOMIC, f->space = SHARED, f->detail = (u32)b.phase;
  f->extent_bytes = b.pending, f->bytes = (u32)b.bytes, f->role = role_of(*M.cta, b, a.address[lane]);
  const u32 seen = b.seen.empty() ? 0 : b.seen[M.thread_of(lane)];
  f->other_lane = seen && seen < b.phase ? seen : 0;
}
static void report_lane(Machine& M, const Warp& W, int l, u32 resident, u64 left) {
  const bool waits = W.waiting >> l & 1, endless = !waits && !W.barrier[l];
  Finding* f = report(M, endless ? ENDLESS_LOOP : DEADLOCK, W.barrier_line[l], l);
  if (!f) return;
  if (endless) {
    f->detail = 1;
    return;
  }
  const NamedBarrier& barrier = M.cta->named[W.barrier[l]];
  f->detail = !waits ? NONE : W.barrier[l];
  f->extent = barrier.arrived, f->extent_bytes = barrier.expected;
  if (left) f->bytes = resident;
}
void report_stuck(Machine& M, u32 resident, u64 left) {
  for (int w = 0; w < (int)M.cta->warps.size(); ++w) {
    const Warp& W = M.cta->warps[w];
    M.warp = w;
    u32 told = 0;
    ACTIVE(W.live, {
      if (told >> l & 1) continue;
      const bool waits = W.waiting >> l & 1, stalled = W.stalled >> l & 1;
      if (!waits && !stalled && !(W.polling >> l & 1)) continue;  // waits for lanes that do
      u32 lanes = waits ? W.waiting : stalled ? W.stalled : W.polling;
      if (M.program.traits & UNITS) lanes &= lanes_with((const u32*)W.barrier_line, W.barrier_line[l]);
      told |= lanes;
      if (stalled) {
        if (Finding* f = report(M, DEADLOCK, W.barrier_line[l], l)) f->act = WRITE, f->detail = W.waits_for;
      } else if (!waits && W.awaited && W.awaited->lanes >> l & 1) {
        report_awaited(M, W, l, W.barrier_line[l]);
      } else {
        report_lane(M, W, l, resident, left);
      }
    })
  }
}
