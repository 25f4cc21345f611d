// Happens-before: see order.h. Source: PTX ISA 9.0, Memory Consistency Model. Where it differs: a barrier of
// a block also completes what a flag of another block tells, as if a fence stood before it.
#include "exec/machine.h"
#include <algorithm>

static bool before(const Group& a, const Group& b) {
  return a.block != b.block ? a.block < b.block : a.warp != b.warp ? a.warp < b.warp : a.time > b.time;
}
bool Knowledge::covers(u32 block, u32 thread, u32 time) const {
  auto earlier = [](const OfBlock& known, u32 number) { return known->front().block < number; };
  const auto found = std::lower_bound(blocks.begin(), blocks.end(), block, earlier);
  if (found == blocks.end() || (*found)->front().block != block) return false;
  for (const Group& g : **found)
    if (time <= g.time &&
        (g.warp == NONE ? !is_unit(thread) : g.warp == thread / 32 && g.lanes >> thread % 32 & 1))
      return true;
  return false;
}
// Of each lane of a block what is known latest; lanes of a warp that are known up to one time are one group.
static OfBlock joined_of_block(const OfBlock& a, const OfBlock& b) {
  if (a == b) return a;
  std::vector<Group> all, kept;
  all.reserve(a->size() + b->size());
  std::merge(a->begin(), a->end(), b->begin(), b->end(), std::back_inserter(all), before);
  u32 whole = 0, warp = NONE, there = 0;
  for (const Group& g : all)
    if (g.warp == NONE && g.time > whole) whole = g.time;
  for (const Group& g : all) {
    if (g.warp == NONE || (g.time <= whole && !is_unit(g.warp * 32))) continue;
    if (g.warp != warp) warp = g.warp, there = 0;
    const u32 lanes = g.lanes & ~there;
    if (!lanes) continue;
    if (there && kept.back().time == g.time) kept.back().lanes |= lanes;
    else kept.push_back({g.block, warp, lanes, g.time});
    there |= lanes;
  }
  if (whole) kept.push_back({all.front().block, NONE, NONE, whole});
  const u64 bytes = kept.size() * sizeof(Group);
  for (const OfBlock& each : {a, b})
    if (kept.size() == each->size() && !memcmp(kept.data(), each->data(), bytes)) return each;
  return std::make_shared<const std::vector<Group>>(std::move(kept));
}
Known joined(const Known& a, const Known& b) {
  if (!a || a == b) return b;
  if (!b) return a;
  std::vector<OfBlock> blocks;
  blocks.reserve(a->blocks.size() + b->blocks.size());
  auto x = a->blocks.begin(), y = b->blocks.begin();
  while (x != a->blocks.end() && y != b->blocks.end()) {
    const u32 one = (*x)->front().block, other = (*y)->front().block;
    if (one == other) blocks.push_back(joined_of_block(*x++, *y++));
    else blocks.push_back(one < other ? *x++ : *y++);
  }
  blocks.insert(blocks.end(), x, a->blocks.end()), blocks.insert(blocks.end(), y, b->blocks.end());
  for (const Known& each : {a, b})
    if (blocks == each->blocks) return each;
  return std::make_shared<const Knowledge>(Knowledge{std::move(blocks)});
}
Known made(std::vector<Group> groups) {
  if (groups.empty()) return nullptr;
  std::sort(groups.begin(), groups.end(), before);
  std::vector<OfBlock> blocks;
  for (auto first = groups.begin(), end = first; first != groups.end(); first = end) {
    end = std::find_if(first, groups.end(), [&](const Group& g) { return g.block != first->block; });
    blocks.push_back(std::make_shared<const std::vector<Group>>(first, end));
  }
  return std::make_shared<const Knowledge>(Knowledge{std::move(blocks)});
}

Known fenced(const Known& known) {
  if (!known) return nullptr;
  std::vector<Group> groups;
  for (const OfBlock& of_block : known->blocks)
    for (Group g : *of_block) {
      if (g.block & FENCED || is_unit(g.warp == NONE ? 0 : g.warp * 32)) continue;
      g.block |= FENCED, groups.push_back(g);
    }
  return made(std::move(groups));
}

// Whether an access of another thread at a time comes before what the lane does now. strong: how the lane
// accesses memory: a flag it has read orders its strong accesses without a fence.
bool Machine::ordered(int lane, u32 block, u32 thread, u32 time, bool strong) const {
  const u32 self = warp * 32 + lane;
  if (block == block_number + 1 && !is_unit(thread)) {
    if (thread == self || time <= cta->known) return true;
    if ((int)thread / 32 == warp && time <= warps[warp].knows(lane, thread % 32)) return true;
  }
  if (!(traits & CLOCKS)) return false;
  const LaneOrder& own = cta->lanes[self];
  for (const Known* known : {&own.known, (const Known*)&cta->learnt})
    if (*known && (*known)->covers(block, thread, time)) return true;
  if (!strong) return false;
  for (const Known* seen : {&own.seen, &own.seen_near})
    if (*seen && (*seen)->covers(block, thread, time)) return true;
  return false;
}

// ---- what clashes ---
static bool clash(u32 how, u32 other, bool same_block) {
  if (!((how | other) & (STORES | UPDATES))) return false;
  return !(how & other & STRONG) || (!same_block && (how | other) & OF_BLOCK);
}
// Each access is compared with the last store and with the reads and updates since then; what comes before it
// needs no more attention, as whoever is not ordered with that is not ordered with this.
void Machine::touch_cell(Cell& c, const Touch& t) {
  const u32 block = block_number + 1, self = warp * 32 + t.lane;
  auto clashes = [&](u32 how, u32 other_block, u32 other_warp) {
    const bool near = other_block == block;
    const bool in_step = near && other_warp == self / 32 && t.space == SHARED && how & t.how & VOLATILE &&
                         (how | t.how) & STORES;
    return in_step || clash(t.how, how, near);
  };
  if (c.how & OF_BARRIER) return report_overwritten(t);
  bool reported = false;
  auto compare = [&](u32 how, u32 other_block, u32 other_thread, u32 time, s32 line) {
    const bool near = other_block == block, lanes = near && other_thread / 32 == self / 32;
    if (reported || ordered(t.lane, other_block, other_thread, time, t.how & STRONG)) return;
    const bool stores = how & t.how & STORES;
    Kind kind = stores && t.space == GLOBAL ? OVERLAPPING_WRITES : lanes ? LOCKSTEP : RACE;
    if (is_unit(other_thread)) kind = how & STORES ? IN_FLIGHT : SLOT_IN_USE;
    const bool together = lanes && line == t.line && time == now;
    const bool of_lane = stores && !is_unit(other_thread);
    if (of_lane && same_value(t.bytes, t.data, t.lane, together, other_thread % 32)) kind = SAME_VALUE;
    const Act act = t.how & STORES ? WRITE : t.how & UPDATES ? ATOMIC : READ;
    const u64 address = t.address - (t.space == SHARED ? SHARED_WINDOW : 0);
    report_access(kind, t.line, t.lane, act, t.space, address, t.bytes, line, other_thread, near ? 0 : other_block);
    reported = kind != SAME_VALUE, c.how |= FAULTY;
  };
  const bool with_store = c.block && clashes(c.how, c.block, c.thread / 32);
  bool any = with_store;
  const bool matters = t.how & (STORES | UPDATES) || c.how & UPDATED;  // reads do not clash with reads
  for (u32 k = matters ? c.others : 0; k && !any; k = others[k].next)
    any = clashes(others[k].how, others[k].block, others[k].warp);
  // Latest first. Who comes after a strong access to the element comes after those that it has seen.
  bool observed = false;
  for (u32 k = any ? c.others : 0; k; k = others[k].next) {
    const Other o = others[k];
    if (!(observed && o.how & STRONG) && clashes(o.how, o.block, o.warp))
      ACTIVE(o.lanes, compare(o.how, o.block, o.warp * 32 + l, o.time, o.line))
    if (o.how & STRONG && !observed)
      ACTIVE(o.lanes, observed |= ordered(t.lane, o.block, o.warp * 32 + l, o.time, t.how & STRONG))
  }
  if (with_store && !(observed && c.how & STRONG)) compare(c.how, c.block, c.thread, c.time, c.plain_line);
  if (t.how & (STORES | UPDATES)) c.line = t.line;
  if (!(t.how & STORES)) return add_other(c, t);
  drop_others(c);
  c.time = now, c.block = block, c.thread = self, c.how = t.how | (c.how & FAULTY), c.plain_line = t.line;
}
// Entries kept of one cell, and of one that has been found fault with; up to which none is looked at again.
const u32 OTHERS = 64, OF_FAULTY = 4, FEW = 8;
// The lanes of a warp that access an element in one way and at one time are one entry; it goes to the front.
// Entries that come before this access need no more attention.
void Machine::add_other(Cell& c, const Touch& t) {
  const u32 block = block_number + 1, how = t.how & (STRONG | UPDATES | OF_BLOCK | VOLATILE);
  if (c.others) {  // mostly it is what this warp did just now
    Other& o = others[c.others];
    if (o.block == block && o.warp == warp && o.how == how && o.time == now) {
      o.lanes |= 1u << t.lane, o.line = t.line;
      return;
    }
  }
  if (how & UPDATES) c.how |= UPDATED;
  u32 lanes = 1u << t.lane, kept = 0;
  const u32 most = c.how & FAULTY ? OF_FAULTY : OTHERS;
  for (u32* link = &c.others; *link;) {
    Other& o = others[*link];
    const bool own = o.block == block && o.warp == warp && o.how == how;
    if (own && o.time == now) {
      lanes |= o.lanes, o.lanes = 0;
    } else if (own || (kept > FEW && o.how == how)) {
      u32 known = 0;
      ACTIVE(o.lanes, known |= (u32)ordered(t.lane, o.block, o.warp * 32 + l, o.time, false) << l)
      o.lanes &= ~known;
    }
    if (o.lanes && ++kept < most) {
      link = &o.next;
      continue;
    }
    drop_other(*link);
  }
  u32 number = free_other;
  if (number) free_other = others[number].next;
  else number = others.size(), others.emplace_back();
  others[number] = {c.others, now, block, lanes, t.line, (u16)warp, (u16)how};
  c.others = number;
}
void Machine::drop_others(Cell& c) {
  while (c.others) drop_other(c.others);
}
void Machine::drop_other(u32& link) {
  const u32 gone = link;
  link = others[gone].next, others[gone].next = free_other, free_other = gone;
}

// ---- what orders ---
void Machine::fence(u32 lanes, Scope scope) {
  if (!(traits & CLOCKS)) return;
  ACTIVE(lanes, {
    LaneOrder& own = cta->lanes[warp * 32 + l];
    own.known = joined(own.known, own.seen_near), own.seen_near = nullptr;
    if (scope == DEVICE) own.known = joined(own.known, own.seen), own.seen = nullptr;
    for (u32 s = 0; s <= scope; ++s) {
      Fence& f = own.fences[s];
      f.time = now, f.block_known = cta->known, f.warp_known = warps[warp].known;
      f.lane = own.known, f.block = cta->learnt;
    }
  })
  cta->fenced = now++;
}
static void add_fence(const Fence& f, u32 warp, u32 lanes, u32 block, std::vector<Group>& groups) {
  if (f.block_known) groups.push_back({block, NONE, NONE, f.block_known});
  if (f.warp_known > f.block_known) groups.push_back({block, warp, NONE, f.warp_known});
  groups.push_back({block, warp, lanes, f.time});
}
// What a lane tells by a strong store: all it knew at its last fence; and of each thread that has met it at a
// barrier or __syncwarp since, what that thread had put behind a fence of its own.
Known Machine::told(int lane, Scope scope) const {
  const u32 block = block_number + 1;
  const Fence& own = cta->lanes[warp * 32 + lane].fences[scope];
  const Known& passed = cta->passed_on[scope];
  if (cta->fenced <= cta->known) return passed;
  std::vector<Group> groups;
  Known others = own.time && own.block_known == cta->known ? nullptr : passed;
  if (own.time > cta->known) {
    add_fence(own, warp, 1u << lane, block, groups);
    others = joined(others, joined(own.lane, own.block));
  }
  for (int mate = 0; mate < 32; ++mate) {
    const Fence& f = cta->lanes[warp * 32 + mate].fences[scope];
    if (mate == lane || f.time <= greatest(own.warp_known, cta->known)) continue;
    if (f.time > warps[warp].knows(lane, mate)) continue;
    groups.push_back({block, (u32)warp, 1u << mate, f.time});
    if (f.lane && f.lane != own.lane) others = joined(others, f.lane);
  }
  return joined(made(std::move(groups)), others);
}
// At a barrier: what the threads of the block have put behind fences since the one before.
void Machine::pass_on(u32 earlier) {
  const u32 block = block_number + 1;
  for (u32 s : {THREADS_OF_BLOCK, DEVICE}) {
    std::vector<Group> groups;
    Known others = cta->passed_on[s];
    const Knowledge *lane = nullptr, *of_block = nullptr;
    for (u32 t = 0; t < threads; ++t) {
      const Fence& f = cta->lanes[t].fences[s];
      if (f.time <= earlier) continue;
      const bool again = !groups.empty() && groups.back().warp == t / 32 && groups.back().time == f.time;
      if (again) groups.back().lanes |= 1u << t % 32;
      else add_fence(f, t / 32, 1u << t % 32, block, groups);
      if (f.lane.get() != lane) others = joined(others, f.lane), lane = f.lane.get();
      if (f.block.get() != of_block) others = joined(others, f.block), of_block = f.block.get();
    }
    cta->passed_on[s] = joined(others, made(std::move(groups)));
  }
}
void Machine::synchronize(u64 address, u32 bytes, int lane, u32 how, bool reads) {
  Flags& flags = flags_at(address);
  const u32 block = block_number + 1, scope = how & OF_BLOCK ? THREADS_OF_BLOCK : DEVICE;
  if (how & RELEASES) fence(1u << lane, (Scope)scope);
  LaneOrder& own = cta->lanes[warp * 32 + lane];
  for (u64 word = address >> 2; word <= (address + bytes - 1) >> 2; ++word) {
    const auto found = flags.find(word);
    if (reads && found != flags.end()) {
      const Flagged& flag = found->second;
      const bool near = flag.block == block;
      Known& into = how & ACQUIRES && (near || scope == DEVICE) ? own.known : near ? own.seen_near : own.seen;
      for (u32 s : {THREADS_OF_BLOCK, DEVICE}) {
        if (!(near || (s == DEVICE && scope == DEVICE))) continue;
        if (flag.told[s] == own.last[s] && !(how & ACQUIRES)) continue;  // as a loop that polls does
        into = joined(into, flag.told[s]), own.last[s] = flag.told[s];
      }
    }
    if (!(how & (STORES | UPDATES))) continue;
    Known news[2] = {told(lane, THREADS_OF_BLOCK), nullptr};
    if (scope == DEVICE) news[DEVICE] = told(lane, DEVICE);
    if (how & STORES && found != flags.end()) flags.erase(found);
    if (!news[0] && !news[1]) continue;
    Flagged& flag = flags[word];
    for (u32 s : {THREADS_OF_BLOCK, DEVICE})
      if (news[s] != flag.last[s]) flag.told[s] = joined(flag.told[s], news[s]), flag.last[s] = news[s];
    flag.block = block;
  }
  if (how & ACQUIRES) ++now;
}
void Machine::forget_flag(u64 address, u32 bytes) {
  Flags& flags = flags_at(address);
  if (flags.empty()) return;
  for (u64 word = address >> 2; word <= (address + bytes - 1) >> 2; ++word) flags.erase(word);
}
// What some lanes of the warp know together, their own accesses so far included.
Known Machine::snapshot(u32 lanes) const {
  const u32 block = block_number + 1;
  std::vector<Group> groups{{block, (u32)warp, lanes, now}};
  if (cta->known) groups.push_back({block, NONE, NONE, cta->known});
  if (warps[warp].known > cta->known) groups.push_back({block, (u32)warp, NONE, warps[warp].known});
  Known all = joined(made(std::move(groups)), cta->learnt);
  const Knowledge* last = nullptr;  // mostly all lanes know the same
  ACTIVE(lanes, {
    const LaneOrder& own = cta->lanes[warp * 32 + l];
    if (own.known.get() == last && !own.seen && !own.seen_near) continue;
    last = own.known.get();
    all = joined(all, joined(own.known, joined(own.seen, own.seen_near)));
  })
  return all;
}
void Machine::learn(u32 lanes, const Known& known) {
  Known before, after = known;
  ACTIVE(lanes, {
    LaneOrder& own = cta->lanes[warp * 32 + l];
    if (own.known != before) before = own.known, after = joined(before, known);
    own.known = after, own.seen = own.seen_near = nullptr;
  })
}
// A fence.proxy.async of lanes: what they know is known to the asynchronous units of who hears of it.
void Machine::fence_proxy(u32 lanes) {
  const Known all = fenced(snapshot(lanes));
  Known before, after = all;
  ACTIVE(lanes, {
    LaneOrder& own = cta->lanes[warp * 32 + l];
    if (own.known != before) before = own.known, after = joined(before, all);
    own.known = after;
  })
  ++now;
}
// A __syncwarp. members: of each active lane, who is in it.
void Machine::meet_in_warp(const u32* members) {
  Warp& W = warps[warp];
  u32 together = 0;  // a lane that waits for itself alone is ordered with nobody
  bool all = true;
  ACTIVE(W.active, {
    if (members[l] & W.live & ~(1u << l)) together |= 1u << l;
    all &= !(W.live & ~members[l]);
  })
  if (!together) return;
  if (traits & CLOCKS) {
    u32 done = 0;
    ACTIVE(together, {
      if (done >> l & 1) continue;
      const u32 group = members[l];
      bool any = false;
      for (int k = 0; k < 32 && !any; ++k)
        if (group >> k & 1 && warp * 32 + k < (int)threads) {
          const LaneOrder& own = cta->lanes[warp * 32 + k];
          any = own.known || own.seen || own.seen_near;
        }
      u32 there = group & W.live;
      if (any) learn(there, snapshot(there));
      done |= group;
    })
  }
  if (all && (W.active | W.excused) == W.live) {
    W.known = now++;
    return;
  }
  if (W.pairs.empty()) W.pairs.assign(32 * 32, 0);
  u32 done = 0;
  ACTIVE(together, {
    if (done >> l & 1) continue;
    const u32 group = members[l];
    done |= group;
    u32 rows[32] = {};
    ACTIVE(group, for (int k = 0; k < 32; ++k) rows[k] = greatest(rows[k], W.pairs[l * 32 + k]))
    ACTIVE(group, rows[l] = now)
    ACTIVE(group, memcpy(&W.pairs[l * 32], rows, sizeof rows))
  })
  ++now;
}
// A barrier of all threads of the block.
void Machine::meet_in_block() {
  const u32 earlier = cta->known;
  cta->known = now++;
  if (!(traits & CLOCKS)) return;
  if (cta->fenced > earlier) pass_on(earlier);
  Known last;
  for (LaneOrder& own : cta->lanes)
    for (Known* known : {&own.known, &own.seen, &own.seen_near}) {
      if (*known && *known != last) cta->learnt = joined(cta->learnt, last = *known);
      *known = nullptr;
    }
}
