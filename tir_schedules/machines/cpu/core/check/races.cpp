// Races by happens-before: two accesses to one element that nothing orders, one of which writes. Each element has a
// cell: its last store, and the reads and atomic updates since then. An access is compared with these; what comes
// before them needs no more attention, because what is unordered with an earlier access is unordered with a later one.
#include "check/check.h"

// Two floats that differ by so many units of the last place at most have been rounded in different ways.
const u64 ROUNDINGS = 64;
static u64 number_at(const u8* data, u32 bytes) {
  u64 value = 0;
  memcpy(&value, data, bytes);
  return value;
}
// Floats in a word, of as many bytes and bits of the exponent; not zeros, denormals or NaNs, which small integers are.
static bool is_rounded(const u8* one, const u8* other, u32 word, u32 bytes, u32 exponent) {
  if (!exponent || word % bytes) return false;
  const u32 mantissa = bytes * 8 - 1 - exponent;
  for (u32 at = 0; at < word; at += bytes) {
    const u64 a = number_at(one + at, bytes), b = number_at(other + at, bytes);
    const u64 power = a >> mantissa & ((1ull << exponent) - 1);
    if (a != b && ((a > b ? a - b : b - a) > ROUNDINGS || !power || power + 1 == 1ull << exponent)) return false;
  }
  return true;
}
Likeness compare_values(const Machine& M, u32 bytes, const u8* data, int lane, bool together, int other_lane,
                        u32 real) {
  const Incoming& in = M.incoming;
  if (!in.values) return DIFFERENT;
  if (together) {
    auto at = [&](int l) { return in.wide ? ((const u64*)in.address)[l] : ((const u32*)in.address)[l]; };
    if (at(lane) != at(other_lane)) return DIFFERENT;
  }
  if (!real) real = in.width == 4 ? 4 << 8 | 8 : in.width == 8 ? 8 << 8 | 11 : 1;
  Likeness likeness = SAME;
  for (u32 at = 0; at < bytes; at += in.width) {
    const u8* values = (const u8*)in.values[at / in.width];
    const u8 *here = values + lane * in.width, *there = together ? values + other_lane * in.width : data + at;
    if (!memcmp(here, there, in.width)) continue;
    if (!is_rounded(here, there, in.width, greatest(1u, real >> 8), real >> 8 ? real & 255 : 0)) return DIFFERENT;
    likeness = ROUNDED;
  }
  return likeness;
}
static void report_overwritten(Machine& M, const LaneAccess& t) {
  const Act act = t.how & STORES ? WRITE : t.how & UPDATES ? ATOMIC : READ;
  const u64 address = t.address - SHARED_WINDOW;
  Finding* f = report_access(M, BARRIER_MISUSE, t.line, t.lane, act, SHARED, address, t.bytes);
  if (f) f->detail = OVERWRITTEN;
}
static u64 address_in_space(const LaneAccess& t) { return t.address - (t.space == SHARED ? SHARED_WINDOW : 0); }
static bool clash(u32 how, u32 other, bool same_block) {
  if (!((how | other) & (STORES | UPDATES))) return false;
  if ((how | other) & GUESSED && (how | other) & UPDATES) return false;
  return !(how & other & STRONG) || (!same_block && (how | other) & OF_BLOCK);
}

// ---- the list of prior accesses ---
static void drop(Machine& M, u32& link) {
  const u32 gone = link;
  link = M.prior[gone].next, M.prior[gone].next = M.free_prior, M.free_prior = gone;
}
void forget_prior(Machine& M, Cell& c) {
  while (c.prior) drop(M, c.prior);
}
static void push(Machine& M, Cell& c, PriorAccess access) {
  u32 number = M.free_prior;
  if (number) M.free_prior = M.prior[number].next;
  else number = M.prior.size(), M.prior.emplace_back();
  access.next = c.prior;
  M.prior[number] = access, c.prior = number;
}
// Entries kept of one cell, and of one that has been found fault with; up to how many no entry is looked at again.
const u32 MOST_ENTRIES = 64, MOST_OF_FAULTY = 4, FEW = 8;
// The lanes of a warp that access an element in one way and in one epoch are one entry; it goes to the front. Entries
// that come before this access need no more attention.
static void add_access(Machine& M, Cell& c, const LaneAccess& t) {
  const u32 block = M.block_number();
  const u32 how = t.how & (STRONG | UPDATES | OF_BLOCK | VOLATILE | GUESSED | TOGETHER);
  const u16 warp = M.warp;
  if (c.prior) {  // mostly it is what this warp did just now
    PriorAccess& o = M.prior[c.prior];
    if (o.block == block && o.warp == warp && o.how == how && o.epoch == M.epoch) {
      o.lanes |= 1u << t.lane, o.line = t.line;
      return;
    }
  }
  if (how & UPDATES) c.how |= UPDATED;
  u32 lanes = 1u << t.lane, kept = 0;
  const u32 most = c.how & FAULTY ? MOST_OF_FAULTY : MOST_ENTRIES;
  for (u32* link = &c.prior; *link;) {
    PriorAccess& o = M.prior[*link];
    const bool own = o.block == block && o.warp == warp && o.how == how;
    if (own && o.epoch == M.epoch) {
      lanes |= o.lanes, o.lanes = 0;
    } else if (own || (kept > FEW && o.how == how)) {
      u32 ordered = 0;
      ACTIVE(o.lanes, ordered |= (u32)happens_before(M, t.lane, o.block, o.warp * 32 + l, o.epoch, false) << l)
      o.lanes &= ~ordered;
    }
    if (o.lanes && ++kept < most) {
      link = &o.next;
      continue;
    }
    drop(M, *link);
  }
  push(M, c, {0, M.epoch, block, lanes, t.line, warp, (u16)how});
}
// A read of a unit takes the place of the one before it, because a lane that waits for this one has waited for that.
static void add_access(Machine& M, Cell& c, const LaneAccess& t, const Operation& o) {
  const u32 warp = o.thread / 32, lane = 1u << o.thread % 32;
  for (u32* link = &c.prior; *link;) {
    PriorAccess& other = M.prior[*link];
    if (other.block == o.block && other.warp == warp) {
      if (other.epoch == o.epoch && other.lanes == lane) return;
      other.lanes &= ~lane;
    }
    if (other.lanes) link = &other.next;
    else drop(M, *link);
  }
  push(M, c, {0, o.epoch, o.block, lane, t.line, (u16)warp, 0});
}

// ---- of a thread ---
// A strong read, which clashes with no strong store, gets an older value than one that it has been told of where it
// only observes what it was told by: without fences, no release pattern synchronizes with an acquire pattern (PTX ISA
// 9.0, Release and Acquire Patterns; Causality Order). What the thread itself has read once, it reads again (Program
// order, Coherence).
static void check_stale(Machine& M, Cell& c, const LaneAccess& t) {
  const u32 block = M.block_number(), self = M.thread_of(t.lane);
  bool seen = false;
  auto is_stale = [&](u32 how, u32 other_block, u32 other_thread, u32 epoch, s32 line) {
    seen |= (other_block == block && other_thread == self) ||
            happens_before(M, t.lane, other_block, other_thread, epoch, false);
    if (seen || !(how & (STORES | UPDATES)) || !is_observed(M, t.lane, other_block, other_thread, epoch)) return;
    Finding* f = report_access(M, STALE_READ, t.line, t.lane, READ, t.space, address_in_space(t), t.bytes, line,
                               other_thread, other_block == block ? 0 : other_block);
    if (f) f->detail = happens_before(M, t.lane, other_block, other_thread, epoch, true);  // released, not acquired
    seen = true;
  };
  for (u32 k = c.prior; k && !seen; k = M.prior[k].next) {  // latest first
    const PriorAccess o = M.prior[k];
    if (o.how & STRONG) ACTIVE(o.lanes, is_stale(o.how, o.block, o.warp * 32 + l, o.epoch, o.line))
  }
  if (!seen && c.block && c.how & STRONG) is_stale(c.how, c.block, c.thread, c.epoch, c.plain_line);
}
// ld.global.nc is for data that no thread of the kernel writes (PTX ISA 9.0, ld.global.nc).
static void check_coherence(Machine& M, const Cell& c, const LaneAccess& t) {
  auto report_stored = [&](u32 block, u32 thread, s32 line) {
    Finding* f = report_access(M, STALE_READ, t.line, t.lane, READ, t.space, address_in_space(t), t.bytes, line, thread,
                               block == M.block_number() ? 0 : block);
    if (f) f->detail = OF_CACHE;
  };
  if (c.block) return report_stored(c.block, c.thread, c.plain_line);
  for (u32 k = c.how & UPDATED ? c.prior : 0; k; k = M.prior[k].next) {
    const PriorAccess& o = M.prior[k];
    if (o.how & UPDATES) return report_stored(o.block, o.warp * 32 + __builtin_ctz(o.lanes), o.line);
  }
}
void check_cell(Machine& M, Cell& c, const LaneAccess& t) {
  if (M.traced) return;
  if (t.how & NON_COHERENT) check_coherence(M, c, t);
  const u32 block = M.block_number(), self = M.thread_of(t.lane);
  auto clashes = [&](u32 how, u32 other_block, u32 other_warp) {
    const bool near = other_block == block;
    const bool in_step = near && other_warp == self / 32 && t.space == SHARED && how & t.how & VOLATILE &&
                         (how | t.how) & STORES;
    if (how & TOGETHER && near && other_warp == self / 32) return false;  // no lane left it before all had read
    return in_step || clash(t.how, how, near);
  };
  if (c.how & OF_BARRIER) return report_overwritten(M, t);
  bool reported = false;
  auto ordered = [&](u32 other_block, u32 other_thread, u32 epoch) {
    return happens_before(M, t.lane, other_block, other_thread, epoch, t.how & STRONG);
  };
  auto compare = [&](u32 how, u32 other_block, u32 other_thread, u32 epoch, s32 line) {
    const bool near = other_block == block, lanes = near && other_thread / 32 == self / 32;
    if (reported || ordered(other_block, other_thread, epoch)) return;
    const bool stores = how & t.how & STORES;
    Kind kind = stores && t.space == GLOBAL ? OVERLAPPING_WRITES : lanes ? LOCKSTEP : RACE;
    if (is_unit(other_thread)) kind = how & STORES ? IN_FLIGHT : SLOT_IN_USE;
    const bool together = lanes && line == t.line && epoch == M.epoch;
    const bool of_lane = stores && !is_unit(other_thread);
    const u32 real = t.space == GLOBAL ? M.global.buffers[(t.address >> BUFFER_SHIFT) - 1].real : 0;
    const Likeness like =
        of_lane ? compare_values(M, t.bytes, t.data, t.lane, together, other_thread % 32, real) : DIFFERENT;
    if (like != DIFFERENT) kind = SAME_VALUE;
    const Act act = t.how & STORES ? WRITE : t.how & UPDATES ? ATOMIC : READ;
    Finding* f = report_access(M, kind, t.line, t.lane, act, t.space, address_in_space(t), t.bytes, line, other_thread,
                               near ? 0 : other_block);
    if (f) f->detail = like == ROUNDED;
    reported = kind != SAME_VALUE, c.how |= FAULTY;
  };
  const bool with_store = c.block && clashes(c.how, c.block, c.thread / 32);
  bool any = with_store;
  const bool matters = t.how & (STORES | UPDATES) || c.how & UPDATED;  // reads do not clash with reads
  for (u32 k = matters ? c.prior : 0; k && !any; k = M.prior[k].next)
    any = clashes(M.prior[k].how, M.prior[k].block, M.prior[k].warp);
  // Latest first. An access that comes after a strong one to the element comes after those that this one has seen.
  bool observed = false;
  for (u32 k = any ? c.prior : 0; k; k = M.prior[k].next) {
    const PriorAccess o = M.prior[k];
    if (!(observed && o.how & STRONG) && clashes(o.how, o.block, o.warp))
      ACTIVE(o.lanes, compare(o.how, o.block, o.warp * 32 + l, o.epoch, o.line))
    if (o.how & STRONG && !observed) ACTIVE(o.lanes, observed |= ordered(o.block, o.warp * 32 + l, o.epoch))
  }
  if (with_store && !(observed && c.how & STRONG)) compare(c.how, c.block, c.thread, c.epoch, c.plain_line);
  const bool looks = (t.how & (STRONG | STORES | UPDATES | POLLED | GUESSED)) == STRONG;
  if (looks && !reported && M.program.traits & OBSERVES) check_stale(M, c, t);
  if (t.how & (STORES | UPDATES)) c.line = t.line;
  if (!(t.how & STORES)) return add_access(M, c, t);
  forget_prior(M, c);
  c.epoch = M.epoch, c.block = block, c.thread = self, c.how = t.how | (c.how & FAULTY), c.plain_line = t.line;
}

// ---- of a unit ---
static const Verdicts::Verdict& verdict_about(Verdicts& verdicts, const Operation& o, u32 block, u32 thread,
                                              u32 epoch) {
  if (o.epoch != verdicts.operation || o.thread != verdicts.unit || o.block != verdicts.of_block) {
    for (Verdicts::Verdict& each : verdicts.known) each.block = 0;
    verdicts.operation = o.epoch, verdicts.unit = o.thread, verdicts.of_block = o.block;
  }
  Verdicts::Verdict& v = verdicts.known[(thread ^ thread >> 5 ^ block) % Verdicts::KEPT];
  if (v.block == block && v.thread == thread && v.epoch == epoch) return v;
  const bool own = block == o.block && thread == o.thread && epoch == o.epoch;
  v.block = block, v.thread = thread, v.epoch = epoch;
  v.ordered = own || (o.clock && o.clock->covers(block, thread, epoch));
  v.fenced = !o.proxy || is_unit(thread) || (o.clock && o.clock->covers(block | FENCED, thread, epoch));
  return v;
}
void check_cell(Machine& M, Cell& c, const LaneAccess& t, const Operation& o) {
  if (M.traced) return;
  if (c.how & OF_BARRIER) return report_overwritten(M, t);
  const bool writes = t.how & STORES;
  bool reported = false;
  auto compare = [&](bool stores, u32 block, u32 thread, u32 epoch, s32 line) {
    if (reported) return;
    const Verdicts::Verdict& verdict = verdict_about(M.verdicts, o, block, thread, epoch);
    if (verdict.ordered && verdict.fenced) return;
    Kind kind = RACE;
    if (verdict.ordered) kind = UNFENCED_PROXY;
    else if (is_unit(thread)) kind = stores ? IN_FLIGHT : SLOT_IN_USE;
    else if (stores && writes && t.space == GLOBAL) kind = OVERLAPPING_WRITES;
    Finding* f = report_access(M, kind, t.line, t.lane, writes ? WRITE : READ, t.space, address_in_space(t), t.bytes,
                               line, thread, block == M.block_number() ? 0 : block);
    if (f) f->detail = !stores;
    reported = true, c.how |= FAULTY;
  };
  for (u32 k = writes || c.how & UPDATED ? c.prior : 0; k; k = M.prior[k].next) {
    const PriorAccess other = M.prior[k];
    const bool updates = other.how & UPDATES;
    if (writes || updates)
      ACTIVE(other.lanes, compare(updates, other.block, other.warp * 32 + l, other.epoch, other.line))
  }
  if (c.block) compare(true, c.block, c.thread, c.epoch, c.plain_line);
  if (!writes) return add_access(M, c, t, o);
  forget_prior(M, c);
  c = {t.line, o.epoch, o.block, 0, (u16)o.thread, (u16)(STORES | (c.how & FAULTY)), t.line};
}
