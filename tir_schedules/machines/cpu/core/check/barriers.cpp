// Which threads an instruction or a barrier asks for, and which do not come.
#include "check/check.h"

bool whole_warp(Machine& M, const Warp& W, s32 line) {
  if (W.active == NONE) return true;
  if (Finding* f = report(M, DIVERGENT_ALIGNED, line, __builtin_ctz(~W.active))) f->detail = W.active;
  return false;
}
// Each lane must also be among those that it names. A lane that left the kernel while the others waited did not come.
void check_members(Machine& M, Warp& W, s32 line, const u32* members) {
  const u32 missed = W.missed;
  W.missed &= ~W.active;
  ACTIVE(W.active, {
    const u32 named = members[l] & (W.live | missed);
    if ((named & ~W.active) == 0 && named >> l & 1) continue;
    if (Finding* f = report(M, DIVERGENT_ALIGNED, line, l)) f->detail = W.active;
    return;
  })
}
// Every thread of the block that has not left must be at one and the same barrier (CUDA programming guide, compute
// capability 7.x: a barrier is "reached by all non-exited threads in the block").
void check_block_barrier(Machine& M) {
  const std::vector<Warp>& all_warps = M.cta->warps;
  s32 line = 0;
  const int warps = all_warps.size(), self = M.warp;
  for (int w = 0; w < warps && !line; ++w)
    if (all_warps[w].live) line = all_warps[w].barrier_line[__builtin_ctz(all_warps[w].live)];
  for (int w = 0; w < warps; ++w) {
    const Warp& W = all_warps[w];
    const u32 elsewhere = W.live & ~lanes_with((const u32*)W.barrier_line, line);
    if (!elsewhere) continue;
    const int l = __builtin_ctz(elsewhere);
    M.warp = w;
    if (Finding* f = report(M, DIVERGENT_BARRIER, line, l, W.barrier_line[l]))
      f->other_warp = w, f->other_lane = l;
    M.warp = self;
    return;
  }
}
