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
// Whether lanes at a block may come to another one. unknown: what is said where it is not known where they go on.
static bool leads_to(const Program& program, u32 from, u32 to, bool unknown) {
  std::vector<bool> seen(program.block_count);
  std::vector<u32> left{from};
  while (!left.empty()) {
    const u32 at = left.back();
    left.pop_back();
    if (at == to) return true;
    if (seen[at]) continue;
    seen[at] = true;
    const BasicBlock& block = program.blocks[at];
    const bool known = block.exit != RETURN && block.exit != SWITCH && (block.exit != CALL || block.taken != NONE);
    if (!known && unknown) return true;
    if (known && block.exit != LEAVE) left.push_back(block.taken);
    if (block.guard != NONE || block.exit == CALL) left.push_back(block.otherwise);
  }
  return false;
}
// Lanes execute a block while others of their warp wait at an aligned barrier. If it comes behind the barrier, and
// none leads back, they have gone past it. Lanes that only leave the kernel may do so.
void check_left_behind(Machine& M, const Warp& W, u32 pc, u32 lanes) {
  const Program& program = M.program;
  const BasicBlock& block = program.blocks[pc];
  const u32 at = W.pc[__builtin_ctz(W.waiting)];
  const BasicBlock& barrier = program.blocks[at];
  if (!block.count) return;
  auto [known, is_new] = M.behind.try_emplace((u64)at << 32 | pc, false);
  if (is_new) known->second = leads_to(program, barrier.taken, pc, false) && !leads_to(program, pc, at, true);
  if (!known->second || !M.behind.try_emplace((u64)at << 32 | NONE, true).second) return;  // once for each barrier
  const int lane = __builtin_ctz(W.waiting);
  if (Finding* f = report(M, DIVERGENT_ALIGNED, barrier.line, lane, program.micro_ops[block.first].line))
    f->extent = GONE_PAST, f->detail = W.waiting, f->other_warp = M.warp, f->other_lane = __builtin_ctz(lanes);
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
