// Instructions in which lanes of a warp look at each other: shuffles, votes, reductions, __syncwarp. A lane
// looks at those that its mask names: groups of lanes, each with a mask of its own, may execute one
// instruction together.
#include "exec/exec.h"

static void execute(Machine& M, Warp& W, const ops::Shuffle& op) {
  const u32 *source = op.source(), *operand = op.lane(), *clamp = op.clamp(), *members = op.members();
  u32 *result = op.result(), *valid = op.valid();
  u32 values[32], is_valid[32];
  check_members(M, W, op.line(), members);
  ACTIVE(W.active, {
    bool found;
    const int from = shuffle_source(op.mode(), l, operand[l], clamp[l], found);
    is_valid[l] = found;
    if (!(W.live >> from & 1))
      if (Finding* f = report(M, DIVERGENT_ALIGNED, op.line(), l)) f->detail = W.active;
    values[l] = source[from];
    if (!(W.active & members[l] & 1u << from))
      values[l] = NONE;  // of a lane that takes no part: undefined, which may go unused
  })
  ACTIVE(W.active, result[l] = values[l]; if (valid) valid[l] = is_valid[l])
}
static void execute(Machine& M, Warp& W, const ops::Vote& op) {
  using Mode = ops::VoteMode;
  const u32* members = op.members();
  if (members) check_members(M, W, op.line(), members);
  u32 all = op.mode() == Mode::ACTIVE_MASK ? NONE : ballot(op.predicate());
  if (op.negated()) all = ~all;
  u32 results[32], *result = (u32*)op.result();
  ACTIVE(W.active, {
    const u32 group = members ? W.active & members[l] : W.active, yes = all & group;
    switch (op.mode()) {
      case Mode::ANY: results[l] = yes != 0; break;
      case Mode::ALL: results[l] = yes == group; break;
      case Mode::UNIFORM: results[l] = yes == group || !yes; break;
      default: results[l] = yes;
    }
  })
  ACTIVE(W.active, result[l] = results[l])
}
static void execute(Machine& M, Warp& W, const ops::Reduce& op) {
  using Reduction = ops::Reduction;
  const bool is_signed = op.is_signed();
  const u32 *source = op.source(), *members = op.members();
  check_members(M, W, op.line(), members);
  u32 *to = op.result();
  u32 results[32], groups[32];
  ACTIVE(W.active, {
    groups[l] = W.active & members[l];
    const int first = groups[l] ? __builtin_ctz(groups[l]) : l;
    if (first < l && groups[first] == groups[l]) {
      results[l] = results[first];
      continue;
    }
    u32 result = source[first];
    ACTIVE(groups[l] & ~(1u << first), {
      const u32 x = source[l];
      switch (op.operation()) {
        case Reduction::ADD: result += x; break;
        case Reduction::MIN: result = is_signed ? (u32)least<s32>(result, x) : least<u32>(result, x); break;
        case Reduction::MAX: result = is_signed ? (u32)greatest<s32>(result, x) : greatest<u32>(result, x); break;
        case Reduction::AND: result &= x; break;
        case Reduction::OR: result |= x; break;
        case Reduction::XOR: result ^= x; break;
      }
    })
    results[l] = result;
  })
  ACTIVE(W.active, to[l] = results[l])
}
static void execute(Machine& M, Warp& W, const ops::Match& op) {
  const u32 *members = op.members(), *narrow = (const u32*)op.source();
  const u64* wide = (const u64*)op.source();
  u32 same[32] = {0}, *result = op.result();
  check_members(M, W, op.line(), members);
  ACTIVE(W.active, for (int k = 0; k < 32; ++k) {
    const bool equal = op.bytes() == 8 ? wide[l] == wide[k] : narrow[l] == narrow[k];
    if (W.active & members[l] & 1u << k) same[l] |= (u32)equal << k;
  })
  ACTIVE(W.active, result[l] = same[l])
}
static void execute(Machine&, Warp& W, const ops::Elect& op) {
  u32 leader = __builtin_ctz(W.active), *predicate = op.predicate(), *elected = op.elected();
  ACTIVE(W.active, predicate[l] = l == (int)leader; if (elected) elected[l] = leader)
}
static void execute(Machine& M, Warp& W, const ops::WarpBarrier& op) {
  if (W.active & ~W.excused) check_members(M, W, op.line(), op.members());
  order_warp_barrier(M, op.members());
}
