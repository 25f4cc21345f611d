// Runs a launch: clusters of blocks, mostly of one block, one after another; those that wait for others stay,
// as many as a GPU holds at once, while later ones begin. Where nothing orders blocks, several threads run
// them. A launch that is watched runs one block alone, where it does not run all in order.
#include "exec/exec.h"
#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <thread>

// The blocks of a launch in the order in which they begin.
struct Order {
  std::vector<u64> numbers;  // empty: as they are numbered
  u64 total, wave;
  bool reversed;

  Order(const Machine& M, u64 total, u32 resident, std::mt19937_64& random)
      : total(total), wave(M.program.traits & POLLS ? least<u64>(resident, total) : total),
        reversed(M.launch.flags & REVERSE) {
    if (!(M.launch.flags & SHUFFLE)) return;
    numbers.resize(total);
    for (u64 k = 0; k < total; ++k) numbers[k] = k;
    for (u64 k = 0; k < total; k += wave)
      std::shuffle(numbers.begin() + k, numbers.begin() + least(k + wave, total), random);
  }
  // A GPU begins blocks in the order of their numbers: others that wait for them rely on it. So only those
  // that are resident together change places.
  u64 operator[](u64 k) const {
    if (!numbers.empty()) return numbers[k];
    if (!reversed) return k;
    const u64 first = k / wave * wave;
    return first + least(wave, total - first) - 1 - (k - first);
  }
};

// Room for some bytes, at a multiple of 128.
static u8* aligned(std::vector<u8>& room, u64 bytes) {
  room.resize(bytes + 128);
  return (u8*)(((u64)room.data() + 127) & ~127ull);
}
static void begin(Machine& M, Cta& cta, u64 number) {
  const Program& program = M.program;
  const u64 warps = (M.threads + 31) / 32;
  cta.number = number, cta.finished = false;
  cta.mbarriers.clear(), cta.bulk.clear(), cta.visits.clear(), cta.left = nullptr;
  cta.index[0] = number % M.launch.grid[0], cta.index[1] = number / M.launch.grid[0] % M.launch.grid[1],
  cta.index[2] = number / M.launch.grid[0] / M.launch.grid[1];
  const u32 shared_bytes = M.launch.shared_bytes;
  if (cta.warps.empty()) {
    cta.shared = aligned(cta.shared_bytes, shared_bytes + 64);
    cta.local = aligned(cta.local_bytes, warps * 32 * M.local_stride), cta.written.resize(cta.local_bytes.size());
    cta.registers = aligned(cta.register_bytes, warps * program.register_bytes);
    cta.shadow.resize((shared_bytes >> M.launch.granule_shift) + 1);
  }
  std::fill(cta.shared_bytes.begin(), cta.shared_bytes.end(), 0xff);  // what no thread wrote reads as NaN
  std::fill(cta.local_bytes.begin(), cta.local_bytes.end(), 0xff);
  std::fill(cta.written.begin(), cta.written.end(), 0);
  cta.warps.clear(), cta.warps.resize(warps), cta.warpgroups.clear();
  cta.began = cta.met = ++M.epoch;
  cta.synced = cta.fenced = 0, cta.acquired = cta.released[0] = cta.released[1] = nullptr, cta.sync_words.clear();
  if (M.program.traits & CLOCKS) {
    cta.cells.assign(cta.shadow.size(), Cell{});
    cta.lanes.assign(warps * 32, LaneClock());
    for (NamedBarrier& barrier : cta.named) barrier = NamedBarrier();
  }
  for (u64 w = 0; w < warps; ++w) {
    const u32 threads = M.threads - w * 32;
    memcpy(cta.registers + program.register_bytes * w, program.initial_registers, program.register_bytes);
    Warp& W = cta.warps[w];
    W.live = threads >= 32 ? NONE : (1u << threads) - 1;
    memset(W.pc, 0, sizeof W.pc), memset(W.groups, 0, sizeof W.groups);
  }
  if (M.waits) M.waits->begin(cta.warps);
  // Any of several threads may run the block: its turns are its own.
  if (M.launch.flags & SHUFFLE && !(M.program.traits & (CLOCKS | POLLS)))
    M.random.seed(M.launch.seed * 0x9e3779b97f4a7c15 + number);
}
// Begins all blocks of a cluster. number: in the order of indices of clusters.
static void begin(Machine& M, Cluster& cluster, u64 number) {
  const u32* size = M.launch.cluster;
  cluster.number = number, cluster.arrived = cluster.completed = nullptr, cluster.pending.clear();
  cluster.blocks.resize(size[0] * size[1] * size[2]);
  const u64 across[3] = {M.launch.grid[0] / size[0], M.launch.grid[1] / size[1], 0};
  const u64 x = number % across[0], y = number / across[0] % across[1], z = number / across[0] / across[1];
  for (u32 rank = 0; rank < cluster.blocks.size(); ++rank) {
    Cta& cta = cluster.blocks[rank];
    cta.cluster = &cluster, cta.rank = rank;
    const u64 at[3] = {x * size[0] + rank % size[0], y * size[1] + rank / size[0] % size[1],
                       z * size[2] + rank / size[0] / size[1]};
    begin(M, cta, at[0] + M.launch.grid[0] * (at[1] + M.launch.grid[1] * at[2]));
  }
}
static u64 cluster_of(const Machine& M, const u32* block) {
  const u64 x = block[0] / M.launch.cluster[0], y = block[1] / M.launch.cluster[1], z = block[2] / M.launch.cluster[2];
  return x + M.launch.grid[0] / M.launch.cluster[0] * (y + M.launch.grid[1] / M.launch.cluster[1] * z);
}
static void finish(Machine& M, Cta& cta) {
  M.cta = &cta;
  if (M.waits) M.waits->end(cta.warps);
  if (!cta.warpgroups.empty()) check_warpgroups(M);
  for (const Warp& W : cta.warps)  // copies that no lane waited for still land, unseen
    for (const AsyncCopy& copy : W.copies) GRANULES(M, copy.target, copy.bytes, cta.shadow[g].in_flight = 0)
  if (M.program.traits & CLOCKS)
    for (Cell& cell : cta.cells) forget_prior(M, cell);
}

// Clusters of blocks that have begun and not ended, and those that are done, to be used again. A kernel
// without clusters has one block in each.
struct Blocks {
  Machine& M;
  std::deque<Cluster> all;
  std::vector<Cluster*> stuck, free;

  // Runs a cluster as far as it goes. False when the launch has to stop.
  bool run(u64 number) {
    if (free.empty()) free.push_back(&all.emplace_back());
    Cluster* cluster = free.back();
    free.pop_back();
    begin(M, *cluster, number);
    return settle(cluster, run_cluster(M, *cluster));
  }
  bool settle(Cluster* cluster, Progress progress) {
    if (progress == STUCK) {
      stuck.push_back(cluster);
    } else {
      for (Cta& cta : cluster->blocks) finish(M, cta);
      free.push_back(cluster);
    }
    return progress != STOPPED;
  }
  // Another turn for all that are stuck, last ones first: false when the launch has to stop.
  bool retry(bool& moved) {
    std::vector<Cluster*> waiting;
    waiting.swap(stuck);
    std::reverse(waiting.begin(), waiting.end());
    for (Cluster* cluster : waiting) {
      const u64 stores = M.stores;
      const Progress progress = run_cluster(M, *cluster);
      moved |= progress == FINISHED || M.stores != stores;
      for (const Cta& cta : cluster->blocks) moved |= !cta.finished && !cta.idle;
      if (!settle(cluster, progress)) return false;
    }
    return true;
  }
};

// Blocks that wait count as stuck after so many looks of all while no thread stores anything, but no fewer of each: loops
// that give up after a number of looks come back to no state before. After some rounds they look many times in a turn.
const u64 PATIENCE = 1 << 22, LEAST_LOOKS = 1 << 15, BRIEF_ROUNDS = 1 << 6, LOOKS = 1 << 10;
struct Rounds {
  Blocks& blocks;
  u64 stores = 0, rounds = 0;
  bool stopped = false;

  // One for all that are stuck. False where the launch has to stop, and where they wait in vain.
  bool another() {
    Machine& M = blocks.M;
    bool moved = false;
    const u64 waiting = blocks.stuck.size();
    stopped = !blocks.retry(moved);
    if (stopped) return false;
    if (M.stores != stores || blocks.stuck.size() < waiting) stores = M.stores, rounds = 0;
    M.looks = ++rounds < BRIEF_ROUNDS ? 1 : LOOKS;
    return moved && rounds < BRIEF_ROUNDS + greatest(PATIENCE / (blocks.stuck.size() + 1), LEAST_LOOKS) / LOOKS;
  }
};
static void run_in_order(Machine& M, const Order& order, u64 first, u32 resident) {
  Blocks blocks{M};
  Rounds rounds{blocks};
  for (u64 next = first; next < order.total || !blocks.stuck.empty();) {
    if (next < order.total && blocks.stuck.size() < resident) {
      if (!blocks.run(order[next++])) return;
      if (next < order.total || blocks.stuck.empty()) continue;
    }
    if (rounds.another()) continue;
    if (rounds.stopped) return;
    for (Cluster* cluster : blocks.stuck)
      for (Cta& cta : cluster->blocks)
        if (!cta.finished) M.cta = &cta, report_stuck(M, resident, order.total - next);
    return;
  }
}

// ---- several threads ---
static const double WORTHWHILE = 0.004;  // seconds of work left
static double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
// The first block shows whether blocks touch what others do, and how long they take. Then every thread takes
// one block after another. False when it turns out that blocks touch the same elements, or that one is at
// fault: all that was done is to be done again, in order.
static bool run_in_threads(Machine& M, const LaunchArguments& a, const Order& order) {
  const Program& program = M.program;
  const u32 counters = program.counter_count;
  std::atomic<u64> next{1};
  std::atomic<bool> failed{false};
  struct Own {
    std::vector<Counter> counters;
    std::vector<BlockCount> blocks;
    std::vector<Finding> findings;
  };
  std::vector<Own> own(a.cores);
  auto work = [&](u32 k) {
    Machine T = M;
    Own& mine = own[k];
    mine.counters.resize(counters), mine.blocks.resize(program.block_count), mine.findings.resize(KINDS);
    CountAccesses counting(mine.counters.data());
    T.observers.clear();
    if (a.flags & COUNT) T.observers.push_back(&counting);
    T.block_counts = mine.blocks.data(), T.findings = mine.findings.data();
    T.finding_limit = 1, T.finding_count = 0, T.alone = false;
    Blocks blocks{T};
    for (u64 number; !failed && (number = next++) < order.total;)
      if (!blocks.run(order[number]) || T.interacts || T.finding_count || !blocks.stuck.empty())
        failed = true;
  };
  auto work_if_it_can = [&](u32 k) {
    try {
      work(k);
    } catch (const std::bad_alloc&) {
      failed = true;
    }
  };
  std::vector<std::thread> threads;
  for (u32 k = 1; k < a.cores; ++k) threads.emplace_back(work_if_it_can, k);
  work_if_it_can(0);
  for (std::thread& thread : threads) thread.join();
  for (const Own& each : own) {
    for (u32 k = 0; k < each.counters.size(); ++k) {
      Counter& all = a.counters[k];
      all.requests += each.counters[k].requests, all.cost += each.counters[k].cost;
      all.ideal += each.counters[k].ideal;
    }
    for (u32 k = 0; k < each.blocks.size(); ++k)
      M.block_counts[k].warps += each.blocks[k].warps, M.block_counts[k].threads += each.blocks[k].threads;
  }
  return !failed;
}

// One block alone, or among all others, with what is kept of it.
static u32 run_watched(Machine& M, Watch& watch, const Order& order, u32 resident) {
  KeepRequests requests(watch);
  RecordAccesses records(watch);
  KeepUnitEvents events(watch);
  KeepSteps steps(watch);
  KeepTouches touches(watch);
  Waits waits(watch, M.launch.resident);
  if (watch.cycles) M.waits = &waits;
  if (watch.touches) M.observers.push_back(&touches);
  if (watch.steps) M.observers.push_back(&steps), M.traced = &watch, M.unit_events = true;
  if (watch.among_all) {
    run_in_order(M, order, 0, resident);
    watch.ended = true, watch.alone = waits.last.alone, watch.among = waits.last.among;
    return M.finding_count;
  }
  if (!watch.steps) M.observers.push_back(&requests);
  if (watch.records) M.observers.push_back(&records);
  if (watch.events) M.observers.push_back(&events), M.unit_events = true;
  Blocks blocks{M};
  const bool ran = blocks.run(cluster_of(M, watch.block));
  // A loop whose end depends on what others may store goes on, too, where they store nothing.
  for (Rounds rounds{blocks}; ran && !blocks.stuck.empty() && rounds.another();) continue;
  watch.ended = ran && blocks.stuck.empty();
  return M.finding_count;
}

static u32 run(const LaunchArguments* a) {
  Machine M(*a);
  CountAccesses counting(a->counters);
  if (a->flags & COUNT) M.observers.push_back(&counting);
  const u32 size = a->cluster[0] * a->cluster[1] * a->cluster[2], resident = greatest(1u, a->resident / size);
  const u64 total = (u64)a->grid[0] * a->grid[1] * a->grid[2] / size;
  const Order order(M, total, resident, M.random);
  if (a->watch) return run_watched(M, *a->watch, order, resident);
  if (a->cores > 1 && total > 2 && !(M.program.traits & (CLOCKS | POLLS))) {
    const double started = seconds();
    {
      Blocks blocks{M};
      if (!blocks.run(order[0])) return M.finding_count;
    }
    const bool worthwhile = (seconds() - started) * (total - 1) > WORTHWHILE;
    if (worthwhile && !M.interacts && !M.finding_count)
      return run_in_threads(M, *a, order) ? M.finding_count : NONE;
    run_in_order(M, order, 1, resident);
    return M.finding_count;
  }
  run_in_order(M, order, 0, resident);
  return M.finding_count;
}
// Returns the number of findings; or NONE when it has to be done again on one core, NO_MEMORY when the host has too
// little.
extern "C" u32 launch(const LaunchArguments* a) try {
  return run(a);
} catch (const std::bad_alloc&) {
  return NO_MEMORY;
}
