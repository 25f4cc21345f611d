// One SM, cycle by cycle where a warp can issue, from event to event where none can.
//
// Four sub-cores issue one instruction a cycle each, of the warp that issued last as long as it may, else of the
// youngest. A warp may issue when the stall cycles of its last instruction are over, the scoreboards that it waits for
// are 0, and the pipe is free. If the register banks have no room for its reads, it holds up the sub-core until they
// have. Instructions for memory go into the queue of their sub-core, which the SM's one data path serves, a wavefront
// a cycle.
#include "banks.h"
#include "copies.h"
#include "fetch.h"
#include "mbarriers.h"
#include "products.h"
#include <cmath>
#include <deque>
#include <queue>
#include <vector>

namespace {

const u64 NEVER = ~0ull;

struct Group {  // of asynchronous copies: how many of its warp come before its end, and what it lowers then
  u32 copies, board;
};

struct Warp {
  const Path* path;
  u32 at, slot, block, number, place = 0;  // place: in its block
  u64 next = 0, last = 0, cleared = 0, started = 0;
  u32 boards[6] = {}, busy = 0;
  u8 cause[6] = {};       // reason that a wait for each scoreboard counts as
  u32 blocked = REASONS;  // reason of the last attempt that failed
  u64 since = 0, tried = 0, counted = 0;
  u32 why = REASONS;      // reason of most of these cycles
  u64 most = 0;
  u64 copied = 0;         // when the last copy of those that were served ends
  u32 copies = 0, served = 0, loads = 0;
  std::vector<bool> back;  // whether each copy is there
  std::deque<Group> groups;
  u64 stored = 0;         // when the last bulk store has read its source
  u32 products = 0;       // of its warpgroup that it has issued
  std::deque<u32> product_groups;  // how many it had issued at the end of each
  u32 meetings = 0;       // of the cluster that it has come to
  u64 held = 0;           // barrier: until when
  bool waits = false;     // at a barrier that is not open
  bool done() const { return at == path->length; }
};

struct Event {
  u64 time;
  u32 warp, board, block;
  bool operator>(const Event& o) const { return time > o.time; }
};

struct Request {
  u32 warp, number, block;
  s32 access;
  u64 issued;
  u32 load;  // its number among the loads and copies of its warp
};

struct Return {  // of a load that L1 did not have
  u64 time;
  Request request;
  u32 copy;  // its number among the copies of its warp
  u64 order;  // among all returns
  bool operator>(const Return& o) const { return time > o.time || (time == o.time && order > o.order); }
};

struct Barrier {
  std::vector<u32> warps;  // that wait
  u32 arrived = 0;
  u64 served = 0;
};

struct Slot {  // what a block has, besides its warps
  std::vector<Barrier> barriers = std::vector<Barrier>(16);
  std::vector<Mbarrier> mbarriers;
  std::vector<Warpgroup> warpgroups;
  u32 block = 0, alive = 0;   // warps of it
  u32 met = 0, meetings = 0;  // warps that have come to the meeting of the cluster, and meetings that are over
  u64 meeting = 0;            // when the last was
};

struct SubCore {
  std::vector<u32> warps;
  std::deque<Request> queue;
  u32 stores = 0;         // in the queue
  u64 free[PIPES] = {};   // when each pipe takes the next instruction
  u64 halves[2] = {};     // the two halves of FMA; the second alone multiplies integers
  u64 held_from = 0, held_as = NEVER;  // of the first request: when L1 has it, as of so many changes of L1
  double path_free = 0;   // when its way to the data path takes the next request
  u64 moves_free = 0;     // when the moves of its last copy are over; the next one stays in the queue until then
  double back_free = 0;   // when the way back takes the next registers that L2 sent
  Banks banks;
  s32 latest = -1;
  u64 chose = 0;          // when it issued
  u64 held_at = NEVER;    // when an instruction that was chosen could not read its registers, and no other could pass it
  u64 stuck_until = 0;    // the cycle before which no warp can issue, unless one wakes or the queue has room again
  bool gave_up = false;   // whether the latest instruction was to let another warp come
};

struct Sm {
  const Gpu& gpu;
  const Row* rows;
  const Access* accesses;
  const Piece* pieces;
  u64 *stalls, *issued;
  std::vector<Warp> warps;
  std::vector<u64> wakes;  // of each warp, the cycle before which no attempt can succeed; NEVER until something happens
  SubCore cores[4];
  std::priority_queue<Event, std::vector<Event>, std::greater<Event>> events;
  Changes changes;
  std::vector<Slot> slots;
  const u32* arrivals;                         // that each mbarrier expects
  u32 mbarriers = 0, begun = 0, total = 0;     // total: blocks
  Memory memory;
  Copies copies;
  Products products;
  Fetch fetch;
  std::priority_queue<Return, std::vector<Return>, std::greater<Return>> returns;
  u64 t = 0, data_free = 0, tags_free = 0, moves_free = 0, wavefronts = 0;
  u64 asked = 0;  // loads that went to L2
  u64 fetching = NEVER;  // when the next line of code is there, or product is over, that a warp waits for
  u32 turn = 0, live = 0;
  Issue* kept = nullptr;  // what warps of the first block issue, as long as there is room
  u64 room = 0;

  Sm(const Gpu& gpu, const Row* rows, const Access* accesses, const Piece* pieces, const u8* cold, u64* stalls,
     u64* issued, u32 code)
      : gpu(gpu), rows(rows), accesses(accesses), pieces(pieces), stalls(stalls), issued(issued), memory(gpu, cold),
        copies(gpu, memory), fetch(gpu, code) {}

  void add(const Path* paths, u32 count, u32 there, u32 blocks) {
    slots.resize(there);
    total = blocks, begun = there;
    for (u32 b = 0; b < there; ++b) {
      equip(slots[b], b, count);
      for (u32 w = 0; w < count; ++w) {
        if (!paths[w].length) continue;
        Warp warp;
        warp.path = paths + w, warp.at = 0, warp.slot = warp.block = b, warp.number = warps.size(), warp.place = w;
        warp.next = (u64)(b * gpu.first_turn);
        join(warp);
        cores[warps.size() % 4].warps.push_back(warps.size());
        warps.push_back(warp), wakes.push_back(0);
      }
    }
  }
  void equip(Slot& slot, u32 block, u32 count) {
    slot = Slot();
    slot.block = block;
    for (u32 k = 0; k < mbarriers; ++k) slot.mbarriers.emplace_back(arrivals[k]);
    slot.warpgroups.resize(count / GROUP_WARPS + 1);
  }
  void join(const Warp& warp) {
    ++live, ++slots[warp.slot].alive, ++slots[warp.slot].warpgroups[warp.place / GROUP_WARPS].warps;
  }

  // ---- time ---
  u64 run(u64 limit) {
    while ((live || queued() || !returns.empty()) && t < limit) {
      settle();
      fetching = NEVER;
      bool moved = serve();
      for (SubCore& core : cores) moved |= issue(core);
      if (moved) ++t;
      else t = std::min(limit, later());
    }
    u64 end = std::max({t, data_free, (u64)memory.atomics_free});
    while (!events.empty()) end = std::max(end, events.top().time), events.pop();
    return end;
  }

  bool queued() const {
    return !cores[0].queue.empty() || !cores[1].queue.empty() || !cores[2].queue.empty() || !cores[3].queue.empty();
  }

  void settle() {
    while (!changes.empty() && changes.top().time <= t) {
      const Change change = changes.top();
      changes.pop();
      this->change(change);
    }
    while (!events.empty() && events.top().time <= t) {
      const Event event = events.top();
      events.pop();
      Warp& warp = warps[event.warp];
      if (warp.block != event.block) continue;  // of a block that is over
      if (!--warp.boards[event.board]) warp.busy &= ~(1u << event.board), wake(event.warp);
      warp.cleared = event.time;
    }
  }

  u64 later() const {
    u64 first = NEVER;
    const auto see = [&](u64 when) { if (when > t) first = std::min(first, when); };
    if (!events.empty()) see(events.top().time);
    if (!changes.empty()) see(changes.top().time);
    for (const SubCore& core : cores) {
      if (core.stuck_until > t) see(core.stuck_until);
      else for (u32 which : core.warps) see(wakes[which]);
      for (u64 when : core.free) see(when);
      see(core.halves[0]), see(core.halves[1]);
      see(core.banks.free[0]), see(core.banks.free[1]);
      if (core.queue.empty()) continue;
      see((u64)std::ceil(core.path_free)), see(core.moves_free), see(core.queue.front().issued + gpu.queue_cycles);
    }
    see(data_free), see(tags_free), see(fetching);
    if (!returns.empty()) see(returns.top().time);
    see((u64)std::ceil(std::max(0.0, memory.room_for_stores())));
    return first == NEVER ? NEVER : std::max(first, t + 1);
  }

  // ---- scoreboards ---
  void raise(Warp& warp, u32 board, u32 reason) {
    if (board == NO_BOARD) return;
    warp.boards[board]++, warp.busy |= 1u << board;
    warp.cause[board] = reason;
  }
  void lower(const Warp& warp, u32 board, u64 when) {
    if (board != NO_BOARD) events.push({std::max(when, t + 1), warp.number, board, warp.block});
  }

  // ---- the queue for memory, and the one data path behind it ---
  bool serve() {
    bool moved = false;
    if (data_free <= t && !returns.empty() && returns.top().time <= t) moved = true, bring();
    const u32 first = turn;
    for (u32 k = 0; k < 4; ++k) {
      SubCore& core = cores[(first + k) % 4];
      if (core.queue.empty() || core.path_free > t || core.queue.front().issued + gpu.queue_cycles > t) continue;
      const Request request = core.queue.front();
      const Row& row = rows[request.number];
      const bool stores = row.action == GLOBAL_STORE || (row.action == ATOMIC && row.stores);
      if (std::min(tags_free, data_free) > t) continue;
      const bool out = goes_out(core, request, row);
      if ((out ? tags_free : data_free) > t || (stores && memory.room_for_stores() > t)) continue;
      if (out && row.action == ASYNC_COPY && core.moves_free > t) continue;
      core.queue.pop_front(), core.held_as = NEVER, core.stuck_until = 0;
      core.stores -= row.stores;
      if (out) ask(core, request, row);
      else perform(core, request, row);
      turn = (first + k + 1) % 4;
      moved = true;
    }
    return moved;
  }

  // A request keeps its way for a part of a cycle more than the last one left over.
  void keep_path(SubCore& core, double cycles) {
    const double begin = core.path_free + 1 > t ? core.path_free : t;
    core.path_free = begin + std::max(cycles, 1.0);
  }
  // Whether the first request of a queue takes the tags of L1 alone, and the data path when its bytes come.
  bool goes_out(SubCore& core, const Request& request, const Row& row) const {
    if (request.access < 0 || (row.action != GLOBAL_LOAD && row.action != ASYNC_COPY)) return false;
    const Access& access = accesses[request.access];
    if (row.action == ASYNC_COPY) return true;
    if (!access.pieces) return false;  // of shared memory, by an address without a space
    if (row.value) return true;        // it passes L1 by
    if (core.held_as != memory.l1.changes) {
      core.held_as = memory.l1.changes;
      core.held_from = memory.held_from(pieces + access.first, access.pieces, request.block);
    }
    return core.held_from > t;
  }

  // Cycles that a copy keeps the data path: of its bytes. Its wavefronts are moves of sectors beside it.
  static u32 written(const Access& access, const Piece* pieces) {
    const u32 lines = (sectors_of(pieces + access.first, access.pieces) + 3) / 4;
    return std::max(1u, std::min(access.wavefronts, lines));
  }

  // What L2 sent goes to the registers, or to shared memory.
  void bring() {
    const auto [time, request, copy, order] = returns.top();
    returns.pop();
    const Row& row = rows[request.number];
    const Access& access = accesses[request.access];
    const bool copies = row.action == ASYNC_COPY;
    const u32 fronts = copies ? written(access, pieces) : std::max(1u, access.pieces);
    data_free = t + fronts, wavefronts += fronts;
    Warp& warp = warps[request.warp];
    double& back = cores[warp.number % 4].back_free;
    const u64 there = copies ? t + fronts : std::max(t + std::max(fronts, 2u) - 2, (u64)back);
    if (!copies) back = std::max(back, (double)t) + row.path_cycles * row.carries;
    const u64 ready = there + (u64)(row.latency - gpu.queue_cycles);
    if (request.block != warp.block) return;
    lower(warp, row.writes, ready);
    if (!copies) return;
    warp.copied = std::max(warp.copied, ready), warp.back[copy] = true;
    while (warp.served < warp.back.size() && warp.back[warp.served]) ++warp.served;
    end_groups(warp);
  }

  // A load that L1 lacks asks L2. The tags take four lines a cycle. A copy asks when its moves begin, which the SM does
  // one after the other.
  void ask(SubCore& core, const Request& request, const Row& row) {
    Warp& warp = warps[request.warp];
    const Access& access = accesses[request.access];
    const bool copies = row.action == ASYNC_COPY;
    tags_free = t + (access.pieces + 3) / 4;
    keep_path(core, copies ? row.path_cycles * row.carries : 1);
    const u64 from = copies ? std::max(moves_free, t) : t;
    if (copies) core.moves_free = moves_free = from + access.wavefronts;
    const u64 position = (u64)request.block << 44 ^ (u64)request.number << 28 ^ request.load;
    const u64 there = memory.load(pieces + access.first, access.pieces, request.block, from, !row.value, position,
                                  copies ? gpu.copy_page_cycles : gpu.page_cycles, copies ? gpu.copy_dram_more : 0);
    if (copies) warp.back.push_back(false);
    returns.push({std::max(there, t + 1), request, copies ? (u32)warp.back.size() - 1 : 0, asked++});
  }

  void perform(SubCore& core, const Request& request, const Row& row) {
    Warp& warp = warps[request.warp];
    const Access* access = request.access < 0 ? nullptr : accesses + request.access;
    const u32 count = access ? access->pieces : 0;
    const bool global = row.action == GLOBAL_LOAD || row.action == GLOBAL_STORE || row.action == ATOMIC;
    u32 fronts = row.action == EXCHANGE;
    if (row.action >= ARRIVE) return tell_unit(core, request, row, access);
    if (row.local) fronts = row.carries;  // a word of each lane is a line
    else if (access) fronts = global && count ? count : std::max(1u, access->wavefronts);  // it may be of shared memory
    data_free = t + fronts;
    if (row.action == GLOBAL_LOAD) {
      tags_free = data_free;
      if (access) memory.load(pieces + access->first, count, request.block, t, true, NEVER, gpu.page_cycles);
    }
    // Its way carries wavefronts of shared memory that are loaded, else a register of the warp at a time.
    const bool loads = row.action == SHARED && !row.stores;
    const double taken = std::max(row.path_cycles * fronts, loads ? 0 : row.path_cycles * row.carries + row.path_more);
    keep_path(core, fronts ? taken : 0);
    wavefronts += fronts;
    const u32 more = fronts ? fronts - 1 : 0;
    const double before = gpu.queue_cycles;  // a latency is from issue to issue
    u64 ready = t + (u64)(row.latency - before + row.per_wavefront * more);
    if (row.local && row.stores) memory.keep(128 * row.carries, t);
    if (row.action == GLOBAL_STORE && access) {
      const Piece* touched = pieces + access->first;
      memory.store(touched, count, 32 * sectors_of(touched, count), access->parts, request.block, t);
    }
    if (row.action == ATOMIC && access) {
      const Piece* touched = pieces + access->first;
      const double longer = memory.beyond_l2(touched, count, request.block, t, 0);
      const u32 times = row.value ? count : access->parts;
      ready += (u64)(memory.atomic(touched, count, times, row.occupies, request.block, t) - t + longer);
    }
    if (request.block != warp.block) return;  // who issued it has left
    if (row.action == ASYNC_COPY) {           // no lane copies
      warp.back.push_back(true);
      while (warp.served < warp.back.size() && warp.back[warp.served]) ++warp.served;
      end_groups(warp);
    }
    lower(warp, row.writes, ready);
  }

  // ---- mbarriers and copies ---
  void tell_unit(SubCore& core, const Request& request, const Row& row, const Access* access) {
    Warp& warp = warps[request.warp];
    const bool at_mbarrier = row.action == ARRIVE || row.action == TRY_WAIT;
    keep_path(core, at_mbarrier ? gpu.mbarrier_cycles : 1);
    if (request.block != warp.block) return;
    u64 ready = t + (u64)(row.latency - gpu.queue_cycles), read = std::max(t, request.issued + row.read_latency);
    if (access && row.action == ARRIVE) {
      const Change made = {t, warp.slot, warp.block, access->barrier, access->arrivals, access->bytes};
      if (row.value) changes.push({t + (u64)gpu.remote_cycles, made.slot, made.block, made.barrier, made.arrivals, 0});
      else change(made);
    } else if (access && row.action == TRY_WAIT) {
      Mbarrier& barrier = slots[warp.slot].mbarriers[access->barrier];
      if (barrier.over < access->over) {
        barrier.waiting.push_back({warp.number, warp.block, access->over, row.writes});
        return;
      }
    } else if (access && row.action == BOX_LOAD) {
      const u64 there = copies.load(*access, pieces, request.block, row.latency - gpu.queue_cycles, t);
      changes.push({there, warp.slot, warp.block, access->barrier, 0, access->bytes * access->blocks});
    } else if (access && row.action == BOX_STORE) {
      warp.stored = std::max(warp.stored, copies.store(*access, pieces, request.block, row.latency - gpu.queue_cycles, t));
    } else if (row.action == FLUSH) {
      read = std::max(t + 1, warp.stored);
    }
    lower(warp, row.writes, ready), lower(warp, row.reads, read);
  }
  void change(const Change& made) {
    Slot& slot = slots[made.slot];
    if (slot.block != made.block) return;  // it is over
    const bool expects = made.arrivals;    // bytes are expected together with an arrival, or come
    Mbarrier& barrier = slot.mbarriers[made.barrier];
    if (!barrier.change(made.arrivals, expects ? made.bytes : -(s64)made.bytes)) return;
    auto& waiting = barrier.waiting;
    for (u32 k = 0; k < waiting.size();) {
      if (barrier.over < waiting[k].over) { ++k; continue; }
      lower(warps[waiting[k].warp], waiting[k].board, t + (u64)gpu.mbarrier_wake);
      waiting[k] = waiting.back(), waiting.pop_back();
    }
  }

  // ---- warpgroups and clusters ---
  // Whether the groups that a warp waits for are over.
  bool multiplied(Warp& warp, const Row& row) {
    const Warpgroup& group = slots[warp.slot].warpgroups[warp.place / GROUP_WARPS];
    for (; warp.product_groups.size() > row.value; warp.product_groups.pop_front()) {
      const u32 count = warp.product_groups.front();
      const u64 end = count ? Products::end(group, count - 1) : 0;
      if (end <= t) continue;
      fetching = std::min(fetching, end);
      return false;
    }
    return true;
  }
  bool met(const Warp& warp) {
    const Slot& slot = slots[warp.slot];
    if (slot.meetings < warp.meetings) return false;
    if (slot.meeting > t) fetching = std::min(fetching, slot.meeting);
    return slot.meeting <= t || slot.meetings > warp.meetings;
  }
  void meet(Slot& slot) {
    if (!slot.alive || slot.met < slot.alive) return;
    slot.met = 0, ++slot.meetings, slot.meeting = t + (u64)gpu.cluster_latency;
  }

  // ---- issue ---
  bool issue(SubCore& core) {
    if (t < core.stuck_until) return false;
    const s32 latest = core.latest;
    u64 until = fetch.fits ? NEVER : 0;  // while all wait for boards, cycles or room in the queue
    const auto tries = [&](u32 which) {
      if (core.held_at == t) return false;
      if (wakes[which] <= t && attempt(core, which)) return true;
      if (wakes[which] > t) until = std::min(until, wakes[which]);
      else if (warps[which].blocked != QUEUE || warps[which].tried != t) until = 0;
      return false;
    };
    if (latest >= 0 && !core.gave_up && tries(latest)) return true;
    for (auto each = core.warps.rbegin(); each != core.warps.rend(); ++each)
      if ((s32)*each != latest && tries(*each)) return true;
    if (latest >= 0 && core.gave_up && tries(latest)) return true;
    core.stuck_until = until;
    return false;
  }
  void wake(u32 which) { wakes[which] = 0, cores[which % 4].stuck_until = 0; }

  bool fails(Warp& warp, u32 reason) {
    if (warp.blocked != reason || others_issued(warp)) flush(warp), warp.blocked = reason, warp.since = t;
    warp.tried = t;
    return false;
  }
  // Whether its sub-core issued since its last attempt: then the warp was not selected from there on.
  bool others_issued(const Warp& warp) const { return cores[warp.number % 4].chose >= warp.tried; }
  void flush(Warp& warp) {
    if (warp.blocked == REASONS) return;
    const u64 end = others_issued(warp) ? std::min(t, warp.tried + 1) : t;
    count(warp, warp.path->numbers[warp.at], warp.blocked, end - warp.since);
    warp.blocked = REASONS;
  }
  void count(Warp& warp, u32 number, u32 reason, u64 cycles) {
    stalls[number * REASONS + reason] += cycles;
    warp.counted += cycles;
    if (cycles > warp.most) warp.most = cycles, warp.why = reason;
  }

  bool attempt(SubCore& core, u32 which) {
    Warp& warp = warps[which];
    if (warp.done() || warp.waits) return wakes[which] = NEVER, false;
    if (warp.next > t) return wakes[which] = warp.next, false;
    const u32 number = warp.path->numbers[warp.at];
    const Row& row = rows[number];
    const u64 fetched = fetch.at(number, t);
    if (fetched > t) {
      fetching = std::min(fetching, fetched);
      return fails(warp, FETCH);
    }
    if (row.waits & warp.busy) {
      if (fetch.fits) wakes[which] = NEVER;  // otherwise each attempt tells the cache what is used
      return false;
    }
    if (row.action == WAIT_BOARD && warp.boards[row.board] > row.value) return false;
    if (row.action == WAIT_PRODUCTS && !multiplied(warp, row)) return fails(warp, PRODUCTS);
    if (row.action == CLUSTER_WAIT && !met(warp)) return fails(warp, CLUSTER);
    const bool queued = row.action >= SHARED && row.action <= FLUSH;
    if (queued && (core.queue.size() >= gpu.queue_loads || (row.stores && core.stores >= gpu.queue_stores)))
      return fails(warp, QUEUE);
    u64* half = nullptr;
    if (row.pipe == PIPE_FMA) {
      half = core.halves[0] <= t ? core.halves : core.halves[1] <= t ? core.halves + 1 : nullptr;
      if (!half) return fails(warp, PIPE);
    } else if (row.pipe == PIPE_FMA_HEAVY) {
      half = core.halves + 1;
      if (*half > t) return fails(warp, PIPE);
    } else if (core.free[row.pipe] > t) {
      return fails(warp, PIPE);
    }
    if (row.banked && !core.banks.take(row, which, t, gpu.bank_window)) return core.held_at = t, fails(warp, BANKS);
    account(warp, number, row);
    if (room && !warp.block) *kept++ = {t, warp.number, number, warp.why, (u32)warp.counted}, --room;
    (half ? *half : core.free[row.pipe]) = t + row.interval;
    core.latest = which, core.gave_up = row.yields, core.chose = t;
    warp.last = t, warp.next = t + std::max<u32>(row.stall, 1), warp.counted = warp.most = 0, warp.why = REASONS;
    issued[number]++;
    act(core, warp, number, row);
    if (++warp.at == warp.path->length) finish(warp);
    return true;
  }

  // What the cycles since the warp's last instruction were spent on.
  void account(Warp& warp, u32 number, const Row& row) {
    flush(warp);
    u64 from = warp.last + 1;
    if (!warp.at || from >= t) return;
    const u64 stalled = std::min(t, warp.held ? warp.held : warp.next);
    if (warp.held) {
      if (stalled > from) count(warp, warp.path->numbers[warp.at - 1], BARRIER, stalled - from);
      warp.held = 0;
    } else if (stalled > from) {
      count(warp, number, DEPENDENCY, stalled - from);
    }
    from = std::max(from, stalled);
    const u32 waited = row.waits | (row.action == WAIT_BOARD ? 1u << row.board : 0);
    if (waited && warp.cleared > from) {
      u32 reason = SHORT_BOARD;
      for (u32 b = 0; b < 6; ++b)
        if (waited >> b & 1) reason = std::max<u32>(reason, warp.cause[b]);
      count(warp, number, reason, std::min(t, warp.cleared) - from);
    }
    const u64 all = t - warp.last - 1;
    if (all > warp.counted) count(warp, number, NOT_SELECTED, all - warp.counted);
  }

  void act(SubCore& core, Warp& warp, u32 number, const Row& row) {
    const s32 access = warp.path->accesses[warp.at];
    switch (row.action) {
      case SHARED: case GLOBAL_LOAD: case GLOBAL_STORE: case ASYNC_COPY: case EXCHANGE: case ATOMIC: {
        const u32 reason = row.action == SHARED || row.action == EXCHANGE ? SHORT_BOARD : LONG_BOARD;
        raise(warp, row.writes, reason), raise(warp, row.reads, SHORT_BOARD);
        core.queue.push_back({warp.number, number, warp.block, access, t, warp.loads});
        lower(warp, row.reads, t + row.read_latency);  // the queue has what they held
        warp.loads += row.action == GLOBAL_LOAD || row.action == ASYNC_COPY;
        core.stores += row.stores;
        warp.copies += row.action == ASYNC_COPY;
        break;
      }
      case ARRIVE: case TRY_WAIT: case BOX_LOAD: case BOX_STORE: case FLUSH:
        raise(warp, row.writes, row.action == TRY_WAIT ? MBARRIER : SHORT_BOARD);
        raise(warp, row.reads, row.action == FLUSH ? COPIES : SHORT_BOARD);
        core.queue.push_back({warp.number, number, warp.block, access, t});
        break;
      case PRODUCT: {
        Warpgroup& group = slots[warp.slot].warpgroups[warp.place / GROUP_WARPS];
        products.issue(group, warp.products++, row, t);
        if (row.value) warp.product_groups.push_back(warp.products);
        break;
      }
      case CLUSTER_ARRIVE:
        ++warp.meetings, ++slots[warp.slot].met;
        meet(slots[warp.slot]);
        break;
      case WAIT_MEMORY:
        warp.next = std::max(t + (u64)row.latency, memory.performed ? (u64)(memory.performed + gpu.fence_behind) : 0);
        break;
      case WAIT_PRODUCTS: case CLUSTER_WAIT: break;
      case COMMIT:
        raise(warp, row.writes, LONG_BOARD);
        warp.groups.push_back({warp.copies, row.writes});
        end_groups(warp);
        break;
      case BARRIER_ACTION:  // a warp whose predicate is false has no access, and does not arrive
        if (access >= 0 || !row.told) arrive(warp, row, access < 0 ? row.board : accesses[access].barrier);
        break;
      default:
        raise(warp, row.writes, SHORT_BOARD), raise(warp, row.reads, SHORT_BOARD);
        lower(warp, row.writes, t + row.latency), lower(warp, row.reads, t + row.read_latency);
    }
  }

  // Groups of copies end in their order, when the last copy before their end does.
  void end_groups(Warp& warp) {
    for (; !warp.groups.empty() && warp.groups.front().copies <= warp.served; warp.groups.pop_front())
      lower(warp, warp.groups.front().board, warp.copied);
  }

  // ---- barriers ---
  void arrive(Warp& warp, const Row& row, u32 which) {
    Barrier& barrier = slots[warp.slot].barriers[which];
    barrier.arrived++;
    barrier.served = std::max(barrier.served, t) + (u64)gpu.barrier_per_warp;
    if (!row.arrives_only) barrier.warps.push_back(warp.number), warp.waits = true;
    open(barrier, row.value ? row.value : slots[warp.slot].alive);
  }
  void open(Barrier& barrier, u32 wanted) {
    if (barrier.arrived < wanted) return;
    const u64 when = barrier.served + (u64)gpu.barrier_latency;
    for (u32 which : barrier.warps) {
      Warp& each = warps[which];
      each.waits = false, each.held = std::max(each.next, when), each.next = each.held, wake(which);
    }
    barrier.warps.clear(), barrier.arrived = 0;
  }

  void finish(Warp& warp) {
    Slot& slot = slots[warp.slot];
    --live;
    if (!--slot.alive) return succeed(warp.slot);
    for (Barrier& barrier : slot.barriers)  // who has left is not waited for
      if (!barrier.warps.empty()) open(barrier, slot.alive);
    meet(slot);
  }

  // The next block begins where one has ended.
  void succeed(u32 slot) {
    if (begun == total) return;
    equip(slots[slot], begun, slots[slot].warpgroups.size() * GROUP_WARPS - 1);
    for (Warp& each : warps) {
      if (each.slot != slot) continue;
      const Path* path = each.path;
      const u32 number = each.number, place = each.place;
      each = Warp();
      each.path = path, each.number = number, each.place = place, each.slot = slot, each.block = begun, each.at = 0;
      each.next = std::max(t + (u64)gpu.block_gap, (u64)(begun * gpu.block_turn)), wake(number);
      join(each);
    }
    ++begun;
  }
};

}  // namespace

extern "C" u64 simulate(const Gpu* gpu, const Row* rows, u32 code, const Path* paths, u32 count, u32 slots, u32 blocks,
                        const Access* accesses, const Piece* pieces, const u8* cold, const u32* arrivals,
                        u32 mbarriers, u64 limit, u64* stalls, u64* issued, u64* figures, Issue* kept, u64 room) {
  Sm sm(*gpu, rows, accesses, pieces, cold, stalls, issued, code);
  sm.arrivals = arrivals, sm.mbarriers = mbarriers;
  sm.add(paths, count, slots, blocks);
  sm.kept = kept, sm.room = room;
  const u64 cycles = sm.run(limit);
  figures[0] = sm.wavefronts, figures[1] = sm.memory.requested, figures[2] = sm.memory.missed;
  figures[3] = sm.memory.written, figures[4] = sm.live, figures[5] = room - sm.room;
  return cycles;
}
