// Who waits when nobody can go on, and for what.
#include "exec/machine.h"

// Nobody can go on. left: blocks that have not begun, of which a GPU holds no more than `resident` at once.
void report_stuck(Machine& M, u32 resident, u64 left) {
  for (int w = 0; w < (int)M.cta->warps.size(); ++w) {
    const Warp& W = M.warps[w];
    M.warp = w;
    u32 told = 0;
    ACTIVE(W.live, {
      if (told >> l & 1) continue;
      const bool waits = W.waiting >> l & 1, stalled = W.stalled >> l & 1;
      if (!waits && !stalled && !(W.polling >> l & 1)) continue;  // waits for lanes that do
      u32 lanes = waits ? W.waiting : stalled ? W.stalled : W.polling;
      if (M.traits & UNITS) lanes &= lanes_with((const u32*)W.barrier_line, W.barrier_line[l]);
      told |= lanes;
      if (stalled) {
        if (Finding* f = M.report(DEADLOCK, W.barrier_line[l], l)) f->act = WRITE, f->detail = W.waits_for;
        continue;
      }
      if (!waits && W.awaited && W.awaited->lanes >> l & 1) {
        report_awaited(M, W, l, W.barrier_line[l]);
        continue;
      }
      const bool endless = !waits && !W.barrier[l];
      Finding* f = M.report(endless ? ENDLESS_LOOP : DEADLOCK, W.barrier_line[l], l);
      if (!f) continue;
      if (endless) {
        f->detail = 1;
        continue;
      }
      const NamedBarrier& barrier = M.cta->named[W.barrier[l]];
      f->detail = !waits ? NONE : W.barrier[l];
      f->extent = barrier.arrived, f->extent_bytes = barrier.expected;
      if (left) f->bytes = resident;
    })
  }
}
