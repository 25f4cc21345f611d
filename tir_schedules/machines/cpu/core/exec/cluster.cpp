// Clusters: blocks that run together and reach each other's shared memory. An address of shared memory of the
// cluster is (rank + 1) << 24 plus that in the block; without a rank it is of the block that uses it. Source:
// PTX ISA 9.0: mapa, getctarank, barrier.cluster.
#include "exec/machine.h"
#include <algorithm>

Place place_of(const Machine& M, u32 address) {
  const u32 rank = address >> RANK_SHIFT;
  if (!rank) return {M.cta, address};
  std::deque<Cta>& blocks = M.cta->cluster->blocks;
  return {rank <= blocks.size() ? &blocks[rank - 1] : nullptr, address & IN_BLOCK};
}
u8* shared_of(Cta& cta) { return (u8*)(((u64)cta.shared.data() + 127) & ~127ull); }
Flags& Machine::flags_at(u64& address) {
  if (address >= LOCAL_WINDOW) return flags_of_memory;
  if (address - SHARED_WINDOW <= IN_BLOCK) return cta->flags;
  const Place place = place_of(*this, u32(address - SHARED_WINDOW));
  address = SHARED_WINDOW + place.address;
  return place.cta ? place.cta->flags : cta->flags;
}

// ---- accesses to other blocks ---
bool visit(Machine& M, Cta& cta, const Visit& made, Act act, u32 bytes) {
  if (cta.finished) {
    M.report_access(CLUSTER_EXIT, made.line, made.lane, act, SHARED, made.address, bytes);
    return false;
  }
  Visit& kept = cta.visits[(u64)made.block << 16 | made.thread];
  kept = made, kept.act = act;
  return true;
}
u8* Machine::at_cluster(u32 address, u32 bytes, const MicroOp& op, int lane, Act act, u32 how) {
  const Place place = place_of(*this, address);
  if (place.cta == cta) {
    u8* data = at_shared(place.address, bytes, op, lane, act);
    if (data) touch(place.address, bytes, act, lane, op.line, how);
    return data;
  }
  const bool outside = !place.cta || place.address + bytes > shared_bytes;
  if (outside || place.address & (bytes - 1)) {
    report_access(outside ? OUT_OF_BOUNDS : MISALIGNED, op.line, lane, act, SHARED, address, bytes);
    return nullptr;
  }
  const u32 self = warp * 32 + lane;
  if (!visit(*this, *place.cta, {(u32)block_number + 1, self, now, address, op.line, lane, warp}, act, bytes))
    return nullptr;
  u8* data = shared_of(*place.cta) + place.address;
  const u32 acts = act == WRITE ? (u32)STORES : act == ATOMIC ? UPDATES | STRONG : 0;
  const Touch touch{SHARED_WINDOW + address, data, bytes, how | acts, SHARED, op.line, lane};
  GRANULES(*this, place.address, bytes, {
    SharedShadow& s = place.cta->shadow[g];
    if (act != WRITE && s.write_time < place.cta->began)
      report_access(UNINITIALIZED, op.line, lane, act, SHARED, address, bytes);
    if (act != READ) s.write_time = now, s.write_line = op.line, s.undefined = false;
    touch_cell(place.cta->cells[g], touch);
  })
  return data;
}

// ---- the barrier of a cluster ---
void open_cluster(Machine& M, Cluster& cluster) {
  u32 there = 0;
  for (Cta& cta : cluster.blocks)
    for (Warp& W : cta.warps) {
      if (W.live & ~W.at_cluster) return;
      there |= W.at_cluster & W.live;
    }
  if (!there) return;
  for (Cta& cta : cluster.blocks)
    for (Warp& W : cta.warps) W.at_cluster = 0;
  cluster.told = cluster.gathered;
  ++M.stores;
}
// operands: whether relaxed, whether all lanes of the warp must execute it
static void arrive_at_cluster(Machine& M, Warp& W, u8*, const MicroOp& op) {
  if (op.operands[1]) whole_warp(M, W, op.line);
  if (W.active & W.to_wait) report_misuse(M, ARRIVED_TWICE, op.line, __builtin_ctz(W.active & W.to_wait), 0);
  Cluster& cluster = *M.cta->cluster;
  if (op.operands[0]) ACTIVE(W.active, cluster.gathered = joined(cluster.gathered, M.told(l, DEVICE)))
  else cluster.gathered = joined(cluster.gathered, M.snapshot(W.active));
  W.at_cluster |= W.active, W.to_wait |= W.active;
  ++M.now, ++M.stores;
  open_cluster(M, cluster);
}
// operands: as above, but the first is not looked at
static void wait_for_cluster(Machine& M, Warp& W, u8*, const MicroOp& op) {
  const u32 strangers = W.active & ~W.to_wait, through = W.active & ~W.at_cluster;
  if (strangers) report_misuse(M, NEVER_ARRIVED, op.line, __builtin_ctz(strangers), 0);
  W.refused = W.active & W.at_cluster, W.waits_for = CLUSTER;
  if (!through) return;
  W.to_wait &= ~through;
  M.learn(through, M.cta->cluster->told);
}

// ---- who leaves ---
static void report_left(Machine& M, const Operation& o, Unfinished what) {
  if (Finding* f = M.report(LEFT_IN_FLIGHT, o.line, o.lane)) f->detail = what;
}
void leave(Machine& M, Warp& W, u32 lanes) {
  Cta& cta = *M.cta;
  if (!cta.bulk.empty()) ACTIVE(lanes, {
    const auto found = cta.bulk.find(M.warp * 32 + l);
    if (found != cta.bulk.end() && !found->second.open.empty())
      report_left(M, found->second.open.front(), STORES_OPEN);
  })
  if (!W.products.empty() && lanes == W.live) report_left(M, W.products.front(), PRODUCTS_OPEN);
  cta.left = joined(cta.left, M.snapshot(lanes));
  ++M.now;
}
// All threads of the block have left: what others, and copies, did to its shared memory they must have known.
static void leave_cluster(Machine& M, Cta& cta) {
  auto knew = [&](u32 block, u32 thread, u32 time) {
    return cta.left && cta.left->covers(block, thread, time);
  };
  const u32 block = cta.number + 1;
  for (const auto& [address, b] : cta.mbarriers) {
    if (b.copy.line && !knew(block, copy_unit(address), b.copy.time)) {
      M.warp = b.copy.warp;
      if (Finding* f = M.report(LEFT_IN_FLIGHT, b.copy.line, b.copy.lane, 0, address))
        f->detail = COPIES_OPEN;
    } else if (b.valid && b.bytes) {
      M.warp = b.by / 32;
      if (Finding* f = M.report(LEFT_IN_FLIGHT, b.line, b.by % 32, 0, address))
        f->space = SHARED, f->detail = BYTES_OPEN, f->bytes = (u32)b.bytes;
    }
  }
  for (const auto& [key, v] : cta.visits) {
    if (v.block == block || knew(v.block, v.thread, v.time)) continue;
    M.warp = v.warp;
    M.report_access(CLUSTER_EXIT, v.line, v.lane, v.act, SHARED, v.address, 0);
  }
  cta.finished = true;
}

// ---- blocks that run together ---
static void land_one(Machine& M, Cluster& cluster) {
  const u64 which = M.flags & SHUFFLE ? M.random() % cluster.pending.size() : 0;
  Operation operation = std::move(cluster.pending[which]);
  cluster.pending.erase(cluster.pending.begin() + which);
  perform(M, operation);
}
// Turns of all blocks, until none of them can go on: then one copy arrives, and if none is under way, all
// look once more at what they wait for.
Progress run_cluster(Machine& M, Cluster& cluster) {
  if (!(M.traits & UNITS) && cluster.blocks.size() == 1) {
    enter(M, cluster.blocks.front());
    return run_block(M);
  }
  std::vector<Cta*> order;
  for (Cta& cta : cluster.blocks) order.push_back(&cta);
  if (M.flags & REVERSE) std::reverse(order.begin(), order.end());
  for (M.insists = false;;) {
    if (M.flags & SHUFFLE) std::shuffle(order.begin(), order.end(), M.random);
    const u64 stores = M.stores;
    bool alive = false, moved = false;
    for (Cta* cta : order) {
      if (cta->finished) continue;
      enter(M, *cta);
      const Progress progress = run_block(M);
      if (progress == STOPPED) return STOPPED;
      if (progress == FINISHED) leave_cluster(M, *cta), moved = true;
      else alive = true;
    }
    if (!alive) break;
    open_cluster(M, cluster);
    if (moved || M.stores != stores) {
      M.insists = false;
    } else if (!cluster.pending.empty()) {
      land_one(M, cluster), M.insists = false;
    } else if (M.insists) {
      return STUCK;
    } else {
      M.insists = true;
    }
  }
  while (!cluster.pending.empty()) land_one(M, cluster);
  for (Cta& cta : cluster.blocks) {
    for (auto& [thread, copies] : cta.bulk)
      for (Operation& each : copies.open) perform(M, each);
  }
  return FINISHED;
}

// ---- addresses ---
// operands: result, address, rank, bytes of an address, whether generic
static void map_address(Machine& M, Warp& W, u8* R, const MicroOp& op) {
  const u32 wide = op.operands[3] == 8;
  const u64 window = op.operands[4] ? SHARED_WINDOW : 0;
  ACTIVE(W.active, {
    const u64 given = wide ? ((const u64*)OPERAND(1))[l] : WORDS(1)[l];
    const u64 there = window | (u64)((WORDS(2)[l] + 1) & 0xff) << RANK_SHIFT | ((given - window) & IN_BLOCK);
    if (wide) ((u64*)OPERAND(0))[l] = there;
    else WORDS(0)[l] = (u32)there;
  })
}
// operands: result, address, bytes of it, whether generic
static void rank_of(Machine& M, Warp& W, u8* R, const MicroOp& op) {
  const u64 window = op.operands[3] ? SHARED_WINDOW : 0;
  ACTIVE(W.active, {
    const u64 given = op.operands[2] == 8 ? ((const u64*)OPERAND(1))[l] : WORDS(1)[l];
    const u32 rank = u32(given - window) >> RANK_SHIFT;
    WORDS(0)[l] = rank ? rank - 1 : M.cta->rank;
  })
}

static const Family cluster{{"cluster.arrive", arrive_at_cluster},
                            {"cluster.wait", wait_for_cluster},
                            {"mapa", map_address},
                            {"getctarank", rank_of}};
