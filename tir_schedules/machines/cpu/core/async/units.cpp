// Asynchronous units: see units.h. Their accesses are checked as those of threads are, in the name of an
// operation; and what threads have written must be fenced for them (PTX ISA 9.0, Async proxy).
#include "exec/machine.h"

// ---- operations ---
Operation begun(Machine& M, u32 thread, const MicroOp& op, u32 lanes) {
  ++M.now;
  Operation operation;
  operation.cta = M.cta, operation.block = M.block_number + 1, operation.thread = thread;
  operation.line = op.line, operation.warp = M.warp, operation.lane = __builtin_ctz(lanes);
  operation.known = M.snapshot(lanes);
  operation.time = M.now++;
  return operation;
}
Known completion(const Operation& o) {
  return made({{o.block, o.thread / 32, 1u << o.thread % 32, o.time}});
}
void perform(Machine& M, Operation& operation) {
  if (!operation.perform) return;
  const auto move_data = std::move(operation.perform);
  operation.perform = nullptr;
  Cta* const cta = M.cta;
  const int warp = M.warp;
  if (operation.cta != cta) enter(M, *operation.cta);
  M.warp = operation.warp;
  move_data(M);
  if (operation.cta != cta) enter(M, *cta);
  M.warp = warp;
  ++M.stores;
}
bool at_once(Machine& M) { return M.flags & SHUFFLE ? M.random() % 2 : M.flags & EARLY; }

// ---- checks ---
const Verdicts::Verdict& Verdicts::about(const Operation& o, u32 block, u32 thread, u32 time) {
  if (o.time != operation || o.thread != unit || o.block != of_block) {
    for (Verdict& each : known) each.block = 0;
    operation = o.time, unit = o.thread, of_block = o.block;
  }
  Verdict& v = known[(thread ^ thread >> 5 ^ block) % KEPT];
  if (v.block == block && v.thread == thread && v.time == time) return v;
  const bool own = block == o.block && thread == o.thread && time == o.time;
  v.block = block, v.thread = thread, v.time = time;
  v.ordered = own || (o.known && o.known->covers(block, thread, time));
  v.fenced = !o.proxy || is_unit(thread) || (o.known && o.known->covers(block | FENCED, thread, time));
  return v;
}
// A read of a unit takes the place of the one before it: whoever waits for this one has waited for that.
static void add_reader(Machine& M, Cell& c, const Operation& o, s32 line) {
  const u32 warp = o.thread / 32, lane = 1u << o.thread % 32;
  for (u32* link = &c.others; *link;) {
    Other& other = M.others[*link];
    if (other.block == o.block && other.warp == warp) {
      if (other.time == o.time && other.lanes == lane) return;
      other.lanes &= ~lane;
    }
    if (other.lanes) link = &other.next;
    else M.drop_other(*link);
  }
  u32 number = M.free_other;
  if (number) M.free_other = M.others[number].next;
  else number = M.others.size(), M.others.emplace_back();
  M.others[number] = {c.others, o.time, o.block, lane, line, (u16)warp, 0};
  c.others = number;
}
void Machine::touch_unit(Cell& c, const Touch& t, const Operation& o) {
  if (c.how & OF_BARRIER) return report_overwritten(t);
  const bool writes = t.how & STORES;
  bool reported = false;
  auto compare = [&](bool stores, u32 block, u32 thread, u32 time, s32 line) {
    if (reported) return;
    const Verdicts::Verdict& verdict = verdicts.about(o, block, thread, time);
    if (verdict.ordered && (verdict.fenced || !stores)) return;
    Kind kind = RACE;
    if (verdict.ordered) kind = UNFENCED_PROXY;
    else if (is_unit(thread)) kind = stores ? IN_FLIGHT : SLOT_IN_USE;
    else if (stores && writes && t.space == GLOBAL) kind = OVERLAPPING_WRITES;
    const u64 address = t.address - (t.space == SHARED ? SHARED_WINDOW : 0);
    report_access(kind, t.line, t.lane, writes ? WRITE : READ, t.space, address, t.bytes, line, thread,
                  block == block_number + 1 ? 0 : block);
    reported = true, c.how |= FAULTY;
  };
  for (u32 k = writes || c.how & UPDATED ? c.others : 0; k; k = others[k].next) {
    const Other other = others[k];
    const bool updates = other.how & UPDATES;
    if (writes || updates)
      ACTIVE(other.lanes, compare(updates, other.block, other.warp * 32 + l, other.time, other.line))
  }
  if (c.block) compare(true, c.block, c.thread, c.time, c.plain_line);
  if (!writes) return add_reader(*this, c, o, t.line);
  drop_others(c);
  c = {t.line, o.time, o.block, 0, (u16)o.thread, (u16)(STORES | (c.how & FAULTY)), t.line};
}
bool touch_shared(Machine& M, const Operation& o, Cta& cta, u32 address, u32 bytes, Act act) {
  if (!bytes) return true;
  const u32 shown = &cta == M.cta ? address : (cta.rank + 1) << RANK_SHIFT | address;
  if (bytes > M.shared_bytes || address > M.shared_bytes - bytes) {
    M.report_access(OUT_OF_BOUNDS, o.line, o.lane, act, SHARED, shown, bytes);
    return false;
  }
  const u32 how = act == READ ? 0 : (u32)STORES;
  const Touch touch{SHARED_WINDOW + shown, nullptr, bytes, how, SHARED, o.line, o.lane};
  GRANULES(M, address, bytes, {
    SharedShadow& s = cta.shadow[g];
    if (s.in_flight) M.report_access(IN_FLIGHT, o.line, o.lane, act, SHARED, shown, bytes, s.write_line);
    if (act != READ) {
      s.write_time = M.now, s.write_line = o.line, s.undefined = false;
    } else if (s.write_time < cta.began) {
      M.report_access(UNINITIALIZED, o.line, o.lane, act, SHARED, shown, bytes);
    } else if (s.undefined) {
      M.report_access(UNINITIALIZED, o.line, o.lane, act, SHARED, shown, bytes, s.write_line, s.write_thread);
    }
    M.touch_unit(cta.cells[g], touch, o);
  })
  return true;
}
u8* reach_global(Machine& M, const Operation& o, u64 address, u32 bytes, Act act) {
  const u64 number = (address >> BUFFER_SHIFT) - 1, offset = address & ((1ull << BUFFER_SHIFT) - 1);
  const bool outside = number >= M.buffer_count || bytes > M.buffers[number].bytes ||
                       offset > M.buffers[number].bytes - bytes;
  if (outside || (act != READ && M.buffers[number].constant)) {
    const Kind kind = outside ? OUT_OF_BOUNDS : WRITE_TO_INPUT;
    Finding* f = M.report_access(kind, o.line, o.lane, act, GLOBAL, address, bytes);
    if (f && outside) describe_heap(M, address, *f);
    return nullptr;
  }
  const Buffer& buffer = M.buffers[number];
  const Touch touch{address, nullptr, bytes, act == READ ? 0 : (u32)STORES, GLOBAL, o.line, o.lane};
  for (u64 e = offset >> buffer.element; buffer.cells && e <= (offset + bytes - 1) >> buffer.element; ++e) {
    if (act == READ && !buffer.cells[e].line && !buffer.initialized)
      M.report_access(UNINITIALIZED, o.line, o.lane, act, GLOBAL, address, bytes);
    M.touch_unit(buffer.cells[e], touch, o);
  }
  return buffer.data + offset;
}

// ---- products of a warpgroup ---
Operation begun_product(Machine& M, const MicroOp& op) {
  return begun(M, product_unit(M.warp), op, M.warps[M.warp].active);
}
void issue_product(Machine& M, Warp& W, Operation&& operation) {
  W.products.push_back(std::move(operation));
  if (!at_once(M)) return;
  for (Operation& each : W.products) perform(M, each);  // one after another: they may add to the same sums
}
static void note_products(Machine& M, Happening what, const MicroOp& op, u32 lanes, u32 group, u32 open) {
  if (M.watched)
    note_event(M, {what, 0, 0, (u32)M.warp, lanes, 0, 0, group, open, 0, 0, op.line}, *M.cta);
}
static void commit_products(Machine& M, Warp& W, u8*, const MicroOp& op) {
  note_products(M, COMMITTED, op, W.active, W.product_groups.size(), 0);
  for (Operation& each : W.products)
    if (each.group == NONE) each.group = W.product_groups.size();
  W.product_groups.push_back(M.now++);
  ++M.stores;
}
// A product is one operation of the warpgroup: it is done when all four warps have asked for it. PTX says
// this of no instruction; but a kernel in which one warp alone tells that a slot is free relies on it, and
// works. operands: groups that may stay in flight
static void wait_for_products(Machine& M, Warp& W, u8*, const MicroOp& op) {
  const u64 committed = W.product_groups.size();
  if (committed <= op.operands[0]) return;
  const u32 done = committed - op.operands[0], first = M.warp / 4 * 4;
  const u32 end = least<u32>(first + 4, M.cta->warps.size());
  for (u32 w = first; w < end; ++w)
    if (M.warps[w].product_groups.size() < done) {
      W.refused = W.active, W.waits_for = PRODUCTS_OF_OTHERS;
      return;
    }
  note_products(M, DRAINED, op, W.active, done, op.operands[0]);
  std::vector<Group> groups;
  for (u32 w = first; w < end; ++w) {
    for (Operation& each : M.warps[w].products)
      if (each.group < done) perform(M, each);
    const u32 unit = product_unit(w), time = M.warps[w].product_groups[done - 1];
    groups.push_back({(u32)M.block_number + 1, unit / 32, 1u << unit % 32, time});
  }
  while (!W.products.empty() && W.products.front().group < done) W.products.pop_front();
  M.learn(W.active, made(std::move(groups)));
}

// operands: none; fence.proxy.async
static void fence_proxy(Machine& M, Warp& W, u8*, const MicroOp&) { M.fence_proxy(W.active); }

static const Family units{{"wgmma.commit_group", commit_products},
                          {"wgmma.wait_group", wait_for_products},
                          {"fence.proxy", fence_proxy}};
