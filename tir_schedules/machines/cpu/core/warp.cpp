// Instructions in which lanes of a warp look at each other: shuffles, votes, reductions, __syncwarp.
#include "machine.h"

// The lanes a .sync instruction names must all execute it, and each lane must be among those it names.
static void check_members(Machine& M, const Warp& W, s32 line, const u32* members) {
  ACTIVE(W.active, {
    const u32 named = members[l] & W.live;
    if ((named & ~W.active) == 0 && named >> l & 1) continue;
    if (Finding* f = M.report(DIVERGENT_ALIGNED, line, l)) f->detail = W.active;
    return;
  })
}
enum ShuffleMode { UP, DOWN, BUTTERFLY, INDEX };
// operands: mode, source, lane operand, clamp, result, predicate or NONE, members
static void shuffle(Machine& M, Warp& W, u8* R, const Instruction& I) {
  const u32 *source = WORDS(1), *operand = WORDS(2), *clamp = WORDS(3);
  u32 values[32], valid[32];
  check_members(M, W, I.line, WORDS(6));
  ACTIVE(W.active, {
    const int segment = clamp[l] >> 8 & 31, limit = clamp[l] & 31, b = operand[l] & 31;
    const int bound = (l & segment) | (limit & ~segment);
    int from = l;
    switch (I.operands[0]) {
      case UP: from = l - b; break;
      case DOWN: from = l + b; break;
      case BUTTERFLY: from = l ^ b; break;
      case INDEX: from = (l & segment) | (b & ~segment); break;
    }
    valid[l] = I.operands[0] == UP ? from >= bound : from <= bound;
    if (!valid[l]) from = l;
    values[l] = source[from];
    if (W.active >> from & 1) continue;   // else the value is that of a lane that does not take part
    values[l] = NONE;
    if (Finding* f = M.report(DIVERGENT_ALIGNED, I.line, l)) f->detail = W.active;
  })
  ACTIVE(W.active, WORDS(4)[l] = values[l]; if (I.operands[5] != NONE) WORDS(5)[l] = valid[l])
}
enum VoteMode { BALLOT, ANY, ALL, UNIFORM, ACTIVE_MASK };
// operands: mode, whether the predicate is negated, predicate, result, members or NONE
static void vote(Machine& M, Warp& W, u8* R, const Instruction& I) {
  if (I.operands[4] != NONE) check_members(M, W, I.line, WORDS(4));
  u32 yes = I.operands[0] == ACTIVE_MASK ? NONE : ballot(WORDS(2)), result = 0;
  if (I.operands[1]) yes = ~yes;
  yes &= W.active;
  switch (I.operands[0]) {
    case ANY: result = yes != 0; break;
    case ALL: result = yes == W.active; break;
    case UNIFORM: result = yes == W.active || !yes; break;
    default: result = yes;
  }
  ACTIVE(W.active, WORDS(3)[l] = result)
}
enum Reduction { R_ADD, R_MIN, R_MAX, R_AND, R_OR, R_XOR };
// operands: operation, whether signed, source, result, members
static void reduce(Machine& M, Warp& W, u8* R, const Instruction& I) {
  check_members(M, W, I.line, WORDS(4));
  const bool is_signed = I.operands[1];
  u32 result = 0;
  bool first = true;
  ACTIVE(W.active, {
    const u32 x = WORDS(2)[l];
    if (first) { result = x, first = false; continue; }
    switch (I.operands[0]) {
      case R_ADD: result += x; break;
      case R_MIN: result = is_signed ? (u32)least<s32>(result, x) : least<u32>(result, x); break;
      case R_MAX: result = is_signed ? (u32)greatest<s32>(result, x) : greatest<u32>(result, x); break;
      case R_AND: result &= x; break;
      case R_OR: result |= x; break;
      case R_XOR: result ^= x; break;
    }
  })
  ACTIVE(W.active, WORDS(3)[l] = result)
}
// match.any; operands: bytes, source, result, members
static void match(Machine& M, Warp& W, u8* R, const Instruction& I) {
  check_members(M, W, I.line, WORDS(3));
  u32 same[32] = {0};
  const u64* wide = (const u64*)OPERAND(1);
  ACTIVE(W.active, for (int k = 0; k < 32; ++k)
    if (W.active >> k & 1) same[l] |= (u32)(I.operands[0] == 8 ? wide[l] == wide[k] : WORDS(1)[l] == WORDS(1)[k]) << k)
  ACTIVE(W.active, WORDS(2)[l] = same[l])
}
// operands: predicate, elected lane or NONE
static void elect(Machine&, Warp& W, u8* R, const Instruction& I) {
  const u32 leader = __builtin_ctz(W.active);
  ACTIVE(W.active, WORDS(0)[l] = l == (int)leader; if (I.operands[1] != NONE) WORDS(1)[l] = leader)
}
// operands: members
static void warp_barrier(Machine& M, Warp& W, u8* R, const Instruction& I) {
  check_members(M, W, I.line, WORDS(0));
  W.sync++;
}

Function warp_function(const char* name) {
  NAMED("shfl", shuffle) NAMED("vote", vote) NAMED("redux", reduce) NAMED("match", match) NAMED("elect", elect)
  NAMED("bar.warp", warp_barrier)
  return nullptr;
}
