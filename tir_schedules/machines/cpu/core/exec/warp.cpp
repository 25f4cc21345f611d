// Instructions in which lanes of a warp look at each other: shuffles, votes, reductions, __syncwarp. A lane
// looks at those that its mask names: groups of lanes, each with a mask of its own, may execute one
// instruction together.
#include "exec/exec.h"

// operands: mode, source, lane operand, clamp, result, predicate or NONE, members
static void shuffle(Machine& M, Warp& W, u8* R, const MicroOp& op) {
  const u32 *source = WORDS(1), *operand = WORDS(2), *clamp = WORDS(3);
  u32 values[32], valid[32];
  check_members(M, W, op.line, WORDS(6));
  ACTIVE(W.active, {
    bool is_valid;
    const int from = shuffle_source(op.operands[0], l, operand[l], clamp[l], is_valid);
    valid[l] = is_valid;
    if (!(W.live >> from & 1))
      if (Finding* f = report(M, DIVERGENT_ALIGNED, op.line, l)) f->detail = W.active;
    values[l] = source[from];
    if (!(W.active & WORDS(6)[l] & 1u << from))
      values[l] = NONE;  // of a lane that takes no part: undefined, which may go unused
  })
  ACTIVE(W.active, WORDS(4)[l] = values[l]; if (op.operands[5] != NONE) WORDS(5)[l] = valid[l])
}
enum VoteMode { BALLOT, ANY, ALL, UNIFORM, ACTIVE_MASK };
// operands: mode, whether the predicate is negated, predicate, result, members or NONE
static void vote(Machine& M, Warp& W, u8* R, const MicroOp& op) {
  if (op.operands[4] != NONE) check_members(M, W, op.line, WORDS(4));
  u32 all = op.operands[0] == ACTIVE_MASK ? NONE : ballot(WORDS(2));
  if (op.operands[1]) all = ~all;
  u32 results[32];
  ACTIVE(W.active, {
    const u32 group = op.operands[4] == NONE ? W.active : W.active & WORDS(4)[l], yes = all & group;
    switch (op.operands[0]) {
      case ANY: results[l] = yes != 0; break;
      case ALL: results[l] = yes == group; break;
      case UNIFORM: results[l] = yes == group || !yes; break;
      default: results[l] = yes;
    }
  })
  ACTIVE(W.active, WORDS(3)[l] = results[l])
}
enum Reduction { R_ADD, R_MIN, R_MAX, R_AND, R_OR, R_XOR };
// operands: operation, whether signed, source, result, members
static void reduce(Machine& M, Warp& W, u8* R, const MicroOp& op) {
  check_members(M, W, op.line, WORDS(4));
  const bool is_signed = op.operands[1];
  const u32 *source = WORDS(2), *members = WORDS(4);
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
      switch (op.operands[0]) {
        case R_ADD: result += x; break;
        case R_MIN: result = is_signed ? (u32)least<s32>(result, x) : least<u32>(result, x); break;
        case R_MAX: result = is_signed ? (u32)greatest<s32>(result, x) : greatest<u32>(result, x); break;
        case R_AND: result &= x; break;
        case R_OR: result |= x; break;
        case R_XOR: result ^= x; break;
      }
    })
    results[l] = result;
  })
  ACTIVE(W.active, WORDS(3)[l] = results[l])
}
// match.any; operands: bytes, source, result, members
static void match(Machine& M, Warp& W, u8* R, const MicroOp& op) {
  check_members(M, W, op.line, WORDS(3));
  u32 same[32] = {0};
  const u64* wide = (const u64*)OPERAND(1);
  ACTIVE(W.active, for (int k = 0; k < 32; ++k) {
    const bool equal = op.operands[0] == 8 ? wide[l] == wide[k] : WORDS(1)[l] == WORDS(1)[k];
    if (W.active & WORDS(3)[l] & 1u << k) same[l] |= (u32)equal << k;
  })
  ACTIVE(W.active, WORDS(2)[l] = same[l])
}
// operands: predicate, elected lane or NONE
static void elect(Machine&, Warp& W, u8* R, const MicroOp& op) {
  const u32 leader = __builtin_ctz(W.active);
  ACTIVE(W.active, WORDS(0)[l] = l == (int)leader; if (op.operands[1] != NONE) WORDS(1)[l] = leader)
}
// operands: members
static void warp_barrier(Machine& M, Warp& W, u8* R, const MicroOp& op) {
  if (W.active & ~W.excused) check_members(M, W, op.line, WORDS(0));
  order_warp_barrier(M, WORDS(0));
}

static const Family warp{{"shfl", shuffle}, {"vote", vote},   {"redux", reduce},
                         {"match", match},  {"elect", elect}, {"bar.warp", warp_barrier}};
