// What threads and blocks leave behind: copies and products under way, and accesses of other blocks of the cluster to
// the shared memory of a block that may be gone.
#include "check/check.h"

bool visit(Machine& M, Cta& cta, const Visit& made, Act act, u32 bytes) {
  if (cta.finished) {
    report_access(M, CLUSTER_EXIT, made.line, made.lane, act, SHARED, made.address, bytes);
    return false;
  }
  Visit& kept = cta.visits[(u64)made.block << 16 | made.thread];
  kept = made, kept.act = act;
  return true;
}
static void report_left(Machine& M, const Operation& o, Unfinished what) {
  if (Finding* f = report(M, LEFT_IN_FLIGHT, o.line, o.lane)) f->detail = what;
}
void check_exit(Machine& M, Warp& W, u32 lanes) {
  Cta& cta = *M.cta;
  if (!cta.bulk.empty()) ACTIVE(lanes, {
    const auto found = cta.bulk.find(M.thread_of(l));
    if (found != cta.bulk.end() && !found->second.open.empty())
      report_left(M, found->second.open.front(), STORES_OPEN);
  })
  if (!W.products.empty() && lanes == W.live) report_left(M, W.products.front(), PRODUCTS_OPEN);
  cta.left = join(cta.left, clock_of_lanes(M, lanes));
  ++M.epoch;
}
// What other blocks, and copies, did to its shared memory must come before the exits of its threads.
void check_exit(Machine& M, Cta& cta) {
  const u32 block = cta.number + 1;
  auto ordered = [&](u32 of_block, u32 thread, u32 epoch) {
    return cta.left && cta.left->covers(of_block, thread, epoch);
  };
  for (const auto& [address, b] : cta.mbarriers) {
    if (b.copy.line && !ordered(block, copy_unit(address), b.copy.epoch)) {
      M.warp = b.copy.warp;
      if (Finding* f = report(M, LEFT_IN_FLIGHT, b.copy.line, b.copy.lane, 0, address)) f->detail = COPIES_OPEN;
    } else if (b.valid && b.bytes) {
      M.warp = b.by / 32;
      if (Finding* f = report(M, LEFT_IN_FLIGHT, b.line, b.by % 32, 0, address))
        f->space = SHARED, f->detail = BYTES_OPEN, f->bytes = (u32)b.bytes;
    }
  }
  for (const auto& [key, v] : cta.visits) {
    if (v.block == block || ordered(v.block, v.thread, v.epoch)) continue;
    M.warp = v.warp;
    report_access(M, CLUSTER_EXIT, v.line, v.lane, v.act, SHARED, v.address, 0);
  }
}
