// Happens-before by vector clocks: what fences, barriers and strong accesses order. Source: PTX ISA 9.0, Memory
// Consistency Model. Where it differs: a barrier of a block also acquires what lanes have read of words that another
// block released, as if a fence stood before it. A __syncwarp does not: it orders only the lanes of its warp.
//
// Within a block most of a clock is the same for all lanes: all accesses before the last barrier. So the clock of a
// lane is in three parts: the epoch of that barrier and the clock of the block (Cta), the epoch of the last
// __syncwarp (Warp), and what the lane acquired by itself (LaneClock).
#include "check/check.h"

bool happens_before(const Machine& M, int lane, u32 block, u32 thread, u32 epoch, bool strong) {
  const Cta& cta = *M.cta;
  const u32 self = M.thread_of(lane);
  if (block == M.block_number() && !is_unit(thread)) {
    if (thread == self || epoch <= cta.synced) return true;
    if ((int)thread / 32 == M.warp && epoch <= cta.warps[M.warp].synced_with(lane, thread % 32)) return true;
  }
  if (!(M.program.traits & CLOCKS)) return false;
  const LaneClock& own = cta.lanes[self];
  for (const Clock* clock : {&own.acquired, &cta.acquired})
    if (*clock && (*clock)->covers(block, thread, epoch)) return true;
  if (!strong) return false;
  for (const Clock* clock : {&own.pending, &own.pending_in_block})
    if (*clock && (*clock)->covers(block, thread, epoch)) return true;
  return false;
}
bool is_observed(const Machine& M, int lane, u32 block, u32 thread, u32 epoch) {
  if (!(M.program.traits & CLOCKS)) return false;
  const Cta& cta = *M.cta;
  const LaneClock& own = cta.lanes[M.thread_of(lane)];
  for (const Clock* clock : {&own.acquired, &own.pending, &cta.acquired})
    if (*clock && (*clock)->covers(block | OBSERVED, thread, epoch)) return true;
  return false;
}
Clock clock_of_lanes(const Machine& M, u32 lanes) {
  const Cta& cta = *M.cta;
  const u32 block = M.block_number(), warp_synced = cta.warps[M.warp].synced;
  std::vector<ClockEntry> entries{{block, (u32)M.warp, lanes, M.epoch}};
  if (cta.synced) entries.push_back({block, NONE, NONE, cta.synced});
  if (warp_synced > cta.synced) entries.push_back({block, (u32)M.warp, NONE, warp_synced});
  Clock all = join(clock_of(std::move(entries)), cta.acquired);
  const VectorClock* last = nullptr;  // mostly the clocks of all lanes are one
  ACTIVE(lanes, {
    const LaneClock& own = cta.lanes[M.thread_of(l)];
    if (own.acquired.get() == last && !own.pending && !own.pending_in_block) continue;
    last = own.acquired.get();
    all = join(all, join(own.acquired, join(own.pending, own.pending_in_block)));
  })
  return all;
}
// Joins a clock to those of lanes; mostly these are one, and so is the result.
static void join_to_lanes(Machine& M, u32 lanes, const Clock& clock) {
  Clock before, after = clock;
  ACTIVE(lanes, {
    Clock& own = M.cta->lanes[M.thread_of(l)].acquired;
    if (own != before) before = own, after = join(before, clock);
    own = after;
  })
}
void acquire(Machine& M, u32 lanes, const Clock& clock) {
  join_to_lanes(M, lanes, clock);
  ACTIVE(lanes, {
    LaneClock& own = M.cta->lanes[M.thread_of(l)];
    own.pending = own.pending_in_block = nullptr;
  })
}

// ---- fences ---
void fence(Machine& M, u32 lanes, Scope scope) {
  if (!(M.program.traits & CLOCKS)) return;
  Cta& cta = *M.cta;
  ACTIVE(lanes, {
    LaneClock& own = cta.lanes[M.thread_of(l)];
    own.acquired = join(own.acquired, own.pending_in_block), own.pending_in_block = nullptr;
    if (scope == DEVICE) own.acquired = join(own.acquired, own.pending), own.pending = nullptr;
    for (u32 s = 0; s <= scope; ++s)
      own.fences[s] = {M.epoch, cta.synced, cta.warps[M.warp].synced, own.acquired, cta.acquired};
  })
  cta.fenced = M.epoch++;
}
// The clocks of lanes, as of accesses that a fence has followed: the asynchronous units of a thread that acquires
// them see these accesses.
void fence_proxy(Machine& M, u32 lanes) {
  join_to_lanes(M, lanes, proxy_fenced(clock_of_lanes(M, lanes)));
  ++M.epoch;
}
static void add_fence(const Fence& f, u32 warp, u32 lanes, u32 block, std::vector<ClockEntry>& entries) {
  if (f.block_synced) entries.push_back({block, NONE, NONE, f.block_synced});
  if (f.warp_synced > f.block_synced) entries.push_back({block, warp, NONE, f.warp_synced});
  entries.push_back({block, warp, lanes, f.epoch});
}

// ---- release and acquire at words ---
// The lane's clock at its last fence; and of each thread that has met it at a barrier or __syncwarp since, what that
// thread had put behind a fence of its own.
Clock release_clock(const Machine& M, int lane, Scope scope) {
  const Cta& cta = *M.cta;
  const u32 block = M.block_number();
  const LaneClock* lanes = &cta.lanes[M.thread_of(0)];
  const Fence& own = lanes[lane].fences[scope];
  const Clock& released = cta.released[scope];
  if (cta.fenced <= cta.synced) return released;
  std::vector<ClockEntry> entries;
  Clock others = own.epoch && own.block_synced == cta.synced ? nullptr : released;
  if (own.epoch > cta.synced) {
    add_fence(own, M.warp, 1u << lane, block, entries);
    others = join(others, join(own.lane, own.block));
  }
  for (int mate = 0; mate < 32; ++mate) {
    const Fence& f = lanes[mate].fences[scope];
    if (mate == lane || f.epoch <= greatest(own.warp_synced, cta.synced)) continue;
    if (f.epoch > cta.warps[M.warp].synced_with(lane, mate)) continue;
    entries.push_back({block, (u32)M.warp, 1u << mate, f.epoch});
    if (f.lane && f.lane != own.lane) others = join(others, f.lane);
  }
  return join(clock_of(std::move(entries)), others);
}
// Where the words of a generic address are; of another block of the cluster it becomes the address there.
static SyncWords& sync_words_at(Machine& M, u64& address) {
  if (address >= LOCAL_WINDOW) return M.global.sync_words;
  if (address - SHARED_WINDOW <= IN_BLOCK) return M.cta->sync_words;
  const Place place = place_of(M, u32(address - SHARED_WINDOW));
  address = SHARED_WINDOW + place.address;
  return place.cta ? place.cta->sync_words : M.cta->sync_words;
}
// What the lane reads of a word: acquired by the access itself, or pending until a fence.
static void read_word(LaneClock& own, const SyncWord& word, bool same_block, u32 scope, bool acquires) {
  Clock& into = acquires && (same_block || scope == DEVICE) ? own.acquired
                : same_block                                ? own.pending_in_block
                                                            : own.pending;
  for (u32 s : {THREADS_OF_BLOCK, DEVICE}) {
    if (!(same_block || (s == DEVICE && scope == DEVICE))) continue;
    if (word.released[s] == own.last[s] && !acquires) continue;  // as a loop that polls does
    into = join(into, word.released[s]), own.last[s] = word.released[s];
  }
}
void synchronize(Machine& M, u64 address, u32 bytes, int lane, u32 how, bool reads) {
  SyncWords& words = sync_words_at(M, address);
  const u32 block = M.block_number(), scope = how & OF_BLOCK ? THREADS_OF_BLOCK : DEVICE;
  if (how & RELEASES) fence(M, 1u << lane, (Scope)scope);
  LaneClock& own = M.cta->lanes[M.thread_of(lane)];
  const bool observes = M.program.traits & OBSERVES;
  for (u64 number = address >> 2; number <= (address + bytes - 1) >> 2; ++number) {
    const auto found = words.find(number);
    if (reads && found != words.end()) {
      read_word(own, found->second, found->second.block == block, scope, how & ACQUIRES);
      if (found->second.told != own.told)
        own.told = found->second.told, own.acquired = join(own.acquired, own.told);
    }
    if (!(how & (STORES | UPDATES))) continue;
    Clock told = observes ? as_observed(clock_of_lanes(M, 1u << lane)) : nullptr;
    if (observes && how & UPDATES && found != words.end()) told = join(found->second.told, told);
    Clock news[2] = {release_clock(M, lane, THREADS_OF_BLOCK), nullptr};
    if (scope == DEVICE) news[DEVICE] = release_clock(M, lane, DEVICE);
    if (how & STORES && found != words.end()) words.erase(found);
    if (!news[0] && !news[1] && !told) continue;
    SyncWord& word = words[number];
    word.told = told;
    for (u32 s : {THREADS_OF_BLOCK, DEVICE})
      if (news[s] != word.last[s]) word.released[s] = join(word.released[s], news[s]), word.last[s] = news[s];
    word.block = block;
  }
  if (how & ACQUIRES) ++M.epoch;
}
void forget_sync_words(Machine& M, u64 address, u32 bytes) {
  SyncWords& words = sync_words_at(M, address);
  if (words.empty()) return;
  for (u64 word = address >> 2; word <= (address + bytes - 1) >> 2; ++word) words.erase(word);
}

// ---- barriers ---
// Lanes of a warp know what each of them knew. What another block released still needs a fence, of any of them.
static void share_clocks(Machine& M, u32 lanes) {
  Clock pending;
  ACTIVE(lanes, {
    Clock& own = M.cta->lanes[M.thread_of(l)].pending;
    pending = join(pending, own), own = nullptr;
  })
  acquire(M, lanes, clock_of_lanes(M, lanes));
  if (!pending) return;
  ACTIVE(lanes, M.cta->lanes[M.thread_of(l)].pending = pending;)
}
void order_warp_barrier(Machine& M, const u32* members) {
  Cta& cta = *M.cta;
  Warp& W = cta.warps[M.warp];
  u32 together = 0;  // a __syncwarp of a single lane orders nothing
  bool all = true;
  ACTIVE(W.active, {
    if (members[l] & W.live & ~(1u << l)) together |= 1u << l;
    all &= !(W.live & ~members[l]);
  })
  if (!together) return;
  if (M.program.traits & CLOCKS) {
    u32 done = 0;
    ACTIVE(together, {
      if (done >> l & 1) continue;
      const u32 group = members[l], there = group & W.live;
      bool any = false;
      for (int k = 0; k < 32 && !any; ++k)
        if (group >> k & 1 && M.thread_of(k) < M.threads) {
          const LaneClock& own = cta.lanes[M.thread_of(k)];
          any = own.acquired || own.pending || own.pending_in_block;
        }
      if (any) share_clocks(M, there);
      done |= group;
    })
  }
  if (all && (W.active | W.excused) == W.live) {
    W.synced = M.epoch++;
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
    ACTIVE(group, rows[l] = M.epoch)
    ACTIVE(group, memcpy(&W.pairs[l * 32], rows, sizeof rows))
  })
  ++M.epoch;
}
// What the threads of the block have put behind fences since the barrier before, each of them can release from here on.
static void release_at_barrier(Machine& M, u32 earlier) {
  Cta& cta = *M.cta;
  const u32 block = M.block_number();
  for (u32 s : {THREADS_OF_BLOCK, DEVICE}) {
    std::vector<ClockEntry> entries;
    Clock others = cta.released[s];
    const VectorClock *lane = nullptr, *of_block = nullptr;
    for (u32 t = 0; t < M.threads; ++t) {
      const Fence& f = cta.lanes[t].fences[s];
      if (f.epoch <= earlier) continue;
      const bool again = !entries.empty() && entries.back().warp == t / 32 && entries.back().epoch == f.epoch;
      if (again) entries.back().lanes |= 1u << t % 32;
      else add_fence(f, t / 32, 1u << t % 32, block, entries);
      if (f.lane.get() != lane) others = join(others, f.lane), lane = f.lane.get();
      if (f.block.get() != of_block) others = join(others, f.block), of_block = f.block.get();
    }
    cta.released[s] = join(others, clock_of(std::move(entries)));
  }
}
void order_block_barrier(Machine& M) {
  Cta& cta = *M.cta;
  const u32 earlier = cta.synced;
  cta.synced = M.epoch++;
  if (!(M.program.traits & CLOCKS)) return;
  if (cta.fenced > earlier) release_at_barrier(M, earlier);
  Clock last;
  for (LaneClock& own : cta.lanes)
    for (Clock* clock : {&own.acquired, &own.pending, &own.pending_in_block}) {
      if (*clock && *clock != last) cta.acquired = join(cta.acquired, last = *clock);
      *clock = nullptr;
    }
}
