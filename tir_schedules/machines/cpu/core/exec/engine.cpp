// Runs a launch: clusters of blocks, mostly of one block, one after another; those that wait for others stay,
// as many as a GPU holds at once, while later ones begin. Where nothing orders blocks, several threads run
// them. A launch that is watched runs one block alone.
#include "exec/machine.h"
#include <algorithm>
#include <chrono>
#include <deque>
#include <thread>

// The blocks of a launch in the order in which they begin.
struct Order {
  std::vector<u64> numbers;  // empty: as they are numbered
  u64 total, wave;
  bool reversed;

  Order(const Machine& M, u64 total, u32 resident, std::mt19937_64& random)
      : total(total), wave(M.traits & POLLS ? least<u64>(resident, total) : total),
        reversed(M.flags & REVERSE) {
    if (!(M.flags & SHUFFLE)) return;
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

static void begin(Machine& M, Cta& cta, u64 number) {
  const Program& program = *M.program;
  const u64 warps = (M.threads + 31) / 32;
  cta.number = number, cta.finished = false;
  cta.mbarriers.clear(), cta.bulk.clear(), cta.visits.clear(), cta.left = nullptr;
  cta.index[0] = number % M.grid[0], cta.index[1] = number / M.grid[0] % M.grid[1],
  cta.index[2] = number / M.grid[0] / M.grid[1];
  if (cta.warps.empty()) {
    cta.shared.resize(M.shared_bytes + 192);
    cta.local.resize(warps * 32 * M.local_stride + 128), cta.written.resize(cta.local.size());
    cta.registers.resize(warps * program.register_bytes + 64);
    cta.shadow.resize((M.shared_bytes >> M.granule_shift) + 1);
  }
  std::fill(cta.shared.begin(), cta.shared.end(), 0xff);  // what nobody wrote reads as NaN
  std::fill(cta.local.begin(), cta.local.end(), 0xff), std::fill(cta.written.begin(), cta.written.end(), 0);
  cta.warps.clear(), cta.warps.resize(warps), cta.warpgroups.clear();
  cta.began = cta.met = ++M.now;
  cta.known = cta.fenced = 0, cta.learnt = cta.passed_on[0] = cta.passed_on[1] = nullptr, cta.flags.clear();
  if (M.traits & CLOCKS) {
    cta.cells.assign(cta.shadow.size(), Cell{});
    cta.lanes.assign(warps * 32, LaneOrder());
    for (NamedBarrier& barrier : cta.named) barrier = NamedBarrier();
  }
  u8* registers = (u8*)(((u64)cta.registers.data() + 63) & ~63ull);
  for (u64 w = 0; w < warps; ++w) {
    const u32 threads = M.threads - w * 32;
    memcpy(registers + program.register_bytes * w, program.initial_registers, program.register_bytes);
    Warp& W = cta.warps[w];
    W.live = threads >= 32 ? NONE : (1u << threads) - 1;
    memset(W.pc, 0, sizeof W.pc), memset(W.groups, 0, sizeof W.groups);
  }
  enter(M, cta);
  // Any of several threads may run the block: its turns are its own.
  if (M.flags & SHUFFLE && !(M.traits & (CLOCKS | POLLS)))
    M.random.seed(M.seed * 0x9e3779b97f4a7c15 + number);
}
// Begins all blocks of a cluster. number: in the order of indices of clusters.
static void begin(Machine& M, Cluster& cluster, u64 number) {
  const u32* size = M.cluster;
  cluster.number = number, cluster.gathered = cluster.told = nullptr, cluster.pending.clear();
  cluster.blocks.resize(size[0] * size[1] * size[2]);
  const u64 across[3] = {M.grid[0] / size[0], M.grid[1] / size[1], 0};
  const u64 x = number % across[0], y = number / across[0] % across[1], z = number / across[0] / across[1];
  for (u32 rank = 0; rank < cluster.blocks.size(); ++rank) {
    Cta& cta = cluster.blocks[rank];
    cta.cluster = &cluster, cta.rank = rank;
    const u64 at[3] = {x * size[0] + rank % size[0], y * size[1] + rank / size[0] % size[1],
                       z * size[2] + rank / size[0] / size[1]};
    begin(M, cta, at[0] + M.grid[0] * (at[1] + M.grid[1] * at[2]));
  }
}
static u64 cluster_of(const Machine& M, const u32* block) {
  const u64 x = block[0] / M.cluster[0], y = block[1] / M.cluster[1], z = block[2] / M.cluster[2];
  return x + M.grid[0] / M.cluster[0] * (y + M.grid[1] / M.cluster[1] * z);
}
static void finish(Machine& M, Cta& cta) {
  if (!cta.warpgroups.empty()) enter(M, cta), check_warpgroups(M);
  for (const Warp& W : cta.warps)  // copies that nobody waited for still land, unseen
    for (const AsyncCopy& copy : W.copies) GRANULES(M, copy.target, copy.bytes, cta.shadow[g].in_flight = 0)
  if (M.traits & CLOCKS)
    for (Cell& cell : cta.cells) M.drop_others(cell);
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

// Turns of blocks in which nobody stores anything, after which those that wait count as stuck, but so many
// rounds of all at least: loops that count how often they look come back to no state.
const u64 PATIENCE = 1 << 14, LEAST_ROUNDS = 1 << 8;
static void run_in_order(Machine& M, const Order& order, u64 first, u32 resident) {
  Blocks blocks{M};
  u64 stores = 0, rounds = 0;
  for (u64 next = first; next < order.total || !blocks.stuck.empty();) {
    if (next < order.total && blocks.stuck.size() < resident) {
      if (!blocks.run(order[next++])) return;
      if (next < order.total || blocks.stuck.empty()) continue;
    }
    bool moved = false;
    const u64 waiting = blocks.stuck.size();
    if (!blocks.retry(moved)) return;
    if (M.stores != stores || blocks.stuck.size() < waiting) stores = M.stores, rounds = 0;
    if (moved && ++rounds < greatest<u64>(PATIENCE / (blocks.stuck.size() + 1), LEAST_ROUNDS)) continue;
    for (Cluster* cluster : blocks.stuck)
      for (Cta& cta : cluster->blocks)
        if (!cta.finished) enter(M, cta), report_stuck(M, resident, order.total - next);
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
static bool run_in_threads(Machine& M, const LaunchArguments& a, const Program& program, const Order& order) {
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
    T.counters = mine.counters.data(), T.block_counts = mine.blocks.data(), T.findings = mine.findings.data();
    T.finding_limit = 1, T.finding_count = 0, T.alone = false;
    Blocks blocks{T};
    for (u64 number; !failed && (number = next++) < order.total;)
      if (!blocks.run(order[number]) || T.interacts || T.finding_count || !blocks.stuck.empty())
        failed = true;
  };
  std::vector<std::thread> threads;
  for (u32 k = 1; k < a.cores; ++k) threads.emplace_back(work, k);
  work(0);
  for (std::thread& thread : threads) thread.join();
  for (const Own& each : own) {
    for (u32 k = 0; k < each.counters.size(); ++k) {
      M.counters[k].requests += each.counters[k].requests, M.counters[k].cost += each.counters[k].cost;
      M.counters[k].ideal += each.counters[k].ideal;
    }
    for (u32 k = 0; k < each.blocks.size(); ++k)
      M.block_counts[k].warps += each.blocks[k].warps, M.block_counts[k].threads += each.blocks[k].threads;
  }
  return !failed;
}

const Family* Family::all = nullptr;

extern "C" void* function_named(const char* name) {
  for (const Family* family = Family::all; family; family = family->next)
    for (const NamedFunction& named : family->functions)
      if (!strcmp(name, named.name)) return (void*)named.function;
  return nullptr;
}

// Returns the number of findings, or NONE when it has to be done again on one core.
extern "C" u32 launch(const LaunchArguments* a) {
  Machine M{};
  const Program& program = *a->program;
  M.program = &program, M.traits = program.traits;
  M.params = a->params, M.buffers = a->buffers, M.buffer_count = a->buffer_count, M.budget = a->budget;
  M.counters = a->counters, M.merges = a->merges, M.block_counts = a->block_counts;
  M.findings = a->findings, M.finding_limit = a->finding_limit, M.watch = a->watch, M.origins = a->origins,
  M.stop = a->stop;
  M.shared_bytes = a->shared_bytes, M.local_bytes = a->local_bytes,
  M.local_stride = (a->local_bytes + 15) & ~15u;
  M.said = a->said, M.heap_bytes = a->heap_bytes, M.stack_start = a->stack_start,
  M.stack_limit = a->stack_limit;
  M.flags = a->flags, M.granule_shift = a->granule_shift;
  memcpy(M.grid, a->grid, sizeof M.grid), memcpy(M.block, a->block, sizeof M.block);
  memcpy(M.cluster, a->cluster, sizeof M.cluster);
  M.threads = M.block[0] * M.block[1] * M.block[2];
  M.thread_registers = a->registers;
  M.seed = a->seed, M.random.seed(M.seed);
  const u32 size = M.cluster[0] * M.cluster[1] * M.cluster[2], resident = greatest(1u, a->resident / size);
  const u64 total = (u64)M.grid[0] * M.grid[1] * M.grid[2] / size;
  if (M.watch) {
    M.watched = M.watch;
    Blocks blocks{M};
    const bool ran = blocks.run(cluster_of(M, M.watched->block));
    M.watched->ended = ran && blocks.stuck.empty();
    return M.finding_count;
  }
  const Order order(M, total, resident, M.random);
  if (a->cores > 1 && total > 2 && !(M.traits & (CLOCKS | POLLS))) {
    const double started = seconds();
    {
      Blocks blocks{M};
      if (!blocks.run(order[0])) return M.finding_count;
    }
    const bool worthwhile = (seconds() - started) * (total - 1) > WORTHWHILE;
    if (worthwhile && !M.interacts && !M.finding_count)
      return run_in_threads(M, *a, program, order) ? M.finding_count : NONE;
    run_in_order(M, order, 1, resident);
    return M.finding_count;
  }
  run_in_order(M, order, 0, resident);
  return M.finding_count;
}
