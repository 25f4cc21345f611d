// Clusters: blocks that run together and reach each other's shared memory. An address of shared memory of the
// cluster is (rank + 1) << 24 plus that in the block; without a rank it is of the block that uses it. Source:
// PTX ISA 9.0: mapa, getctarank, barrier.cluster.
#include "async/async.h"
#include "exec/exec.h"
#include <algorithm>

// ---- the barrier of a cluster ---
static void open_cluster(Machine& M, Cluster& cluster) {
  u32 there = 0;
  for (Cta& cta : cluster.blocks)
    for (Warp& W : cta.warps) {
      if (W.live & ~W.at_cluster) return;
      there |= W.at_cluster & W.live;
    }
  if (!there) return;
  for (Cta& cta : cluster.blocks)
    for (Warp& W : cta.warps) W.at_cluster = 0;
  cluster.completed = cluster.arrived;
  ++M.stores;
}
static void execute(Machine& M, Warp& W, const ops::ClusterArrive& op) {
  if (op.aligned()) whole_warp(M, W, op.line());
  if (W.active & W.to_wait) report_misuse(M, ARRIVED_TWICE, op.line(), __builtin_ctz(W.active & W.to_wait), 0);
  Cluster& cluster = *M.cta->cluster;
  if (op.relaxed()) ACTIVE(W.active, cluster.arrived = join(cluster.arrived, release_clock(M, l, DEVICE)))
  else cluster.arrived = join(cluster.arrived, clock_of_lanes(M, W.active));
  W.at_cluster |= W.active, W.to_wait |= W.active;
  ++M.epoch, ++M.stores;
  open_cluster(M, cluster);
}
static void execute(Machine& M, Warp& W, const ops::ClusterWait& op) {
  const u32 strangers = W.active & ~W.to_wait, through = W.active & ~W.at_cluster;
  if (strangers) report_misuse(M, NEVER_ARRIVED, op.line(), __builtin_ctz(strangers), 0);
  W.refused = W.active & W.at_cluster, W.waits_for = CLUSTER;
  if (!through) return;
  W.to_wait &= ~through;
  acquire(M, through, M.cta->cluster->completed);
}

// ---- blocks that run together ---
static void land_one(Machine& M, Cluster& cluster) {
  const u64 which = M.launch.flags & SHUFFLE ? M.random() % cluster.pending.size() : 0;
  Operation operation = std::move(cluster.pending[which]);
  cluster.pending.erase(cluster.pending.begin() + which);
  perform(M, operation);
}
// Turns of all blocks, until none of them can go on: then one copy arrives, and if none is under way, all
// look once more at what they wait for.
Progress run_cluster(Machine& M, Cluster& cluster) {
  if (!(M.program.traits & UNITS) && cluster.blocks.size() == 1) {
    M.cta = &cluster.blocks.front();
    return run_block(M);
  }
  std::vector<Cta*> order;
  for (Cta& cta : cluster.blocks) order.push_back(&cta);
  if (M.launch.flags & REVERSE) std::reverse(order.begin(), order.end());
  for (M.insists = false;;) {
    if (M.launch.flags & SHUFFLE) std::shuffle(order.begin(), order.end(), M.random);
    const u64 stores = M.stores;
    bool alive = false, moved = false;
    for (Cta* cta : order) {
      if (cta->finished) continue;
      M.cta = cta;
      const Progress progress = run_block(M);
      if (progress == STOPPED) return STOPPED;
      if (progress == FINISHED) check_exit(M, *cta), cta->finished = moved = true;
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
static u64 number_at(const u8* registers, u32 bytes, int lane) {
  return bytes == 8 ? ((const u64*)registers)[lane] : ((const u32*)registers)[lane];
}
static void execute(Machine& M, Warp& W, const ops::MapAddress& op) {
  const u64 window = op.generic() ? SHARED_WINDOW : 0;
  u8* result = op.result();
  ACTIVE(W.active, {
    const u64 given = number_at(op.address(), op.bytes(), l);
    const u64 there = window | (u64)((op.rank()[l] + 1) & 0xff) << RANK_SHIFT | ((given - window) & IN_BLOCK);
    if (op.bytes() == 8) ((u64*)result)[l] = there;
    else ((u32*)result)[l] = (u32)there;
  })
}
static void execute(Machine& M, Warp& W, const ops::RankOf& op) {
  const u64 window = op.generic() ? SHARED_WINDOW : 0;
  ACTIVE(W.active, {
    const u32 rank = u32(number_at(op.address(), op.bytes(), l) - window) >> RANK_SHIFT;
    op.result()[l] = rank ? rank - 1 : M.cta->rank;
  })
}
