// One block: its warps take turns, each until all its lanes wait; in a warp, the lanes at the lowest basic block run. Warps
// advance one at a time on purpose: what lockstep would hide, a missing __syncthreads, shows.
//
// A lane waits at a barrier of the block; for other lanes of its warp, at an instruction that names them; or for memory,
// when it has gone round a loop that others can end. Such a loop gets no turn until all other warps wait, in this block
// and then in all blocks. A warp that comes back with the registers by which such loops go on as they were, while no thread
// has stored anything, is idle. A warp that has tested an mbarrier in vain gets no turn before something has happened to it, so that it costs nothing. A
// lane whose block ends in a wait tries again in each turn.
#include "async/async.h"
#include "exec/exec.h"
#include "observe/observer.h"
#include <algorithm>
#include <string_view>

static u8* registers_of(const Machine& M, int warp) {
  return M.cta->registers + (u64)M.program.register_bytes * warp;
}
static void send(Warp& W, u32 mask, u32 target) { LANES(W.pc[l] = mask >> l & 1 ? target : W.pc[l]) }
// The lanes that run next: those at the lowest basic block that wait for nothing.
static u32 pick(const Warp& W, u32& pc) {
  const u32 ready = W.live & ~(W.waiting | W.held | W.polling | W.stalled);
  u32 at[32], lowest = NONE;
  LANES(at[l] = ready >> l & 1 ? W.pc[l] : NONE)
  LANES(lowest = least(at[l], lowest))
  pc = lowest;
  return lanes_with(at, lowest) & ready;
}
static void set_mask(Warp& W, u32 mask) {
  W.active = mask;
  LANES(W.mask[l] = -(s32)(mask >> l & 1))
}
static void set_special_registers(const Machine& M, u8* R) {
  const u32* special = M.program.special;
  auto lanes_of = [&](u32 name) { return (u32*)(R + special[name]); };
  auto fill = [&](u32 name, u32 value) { LANES(lanes_of(name)[l] = value) };
  const u32 first = M.warp * 32;
  u32 x = first % M.launch.block[0], y = first / M.launch.block[0] % M.launch.block[1], z = first / M.launch.block[0] / M.launch.block[1];
  LANES({
    lanes_of(TID_X)[l] = x, lanes_of(TID_Y)[l] = y, lanes_of(TID_Z)[l] = z, lanes_of(LANEID)[l] = l;
    if (++x == M.launch.block[0]) x = 0, ++y;
    if (y == M.launch.block[1]) y = 0, ++z;
  })
  fill(WARPID, M.warp);
  for (u32 d = 0; d < 3; ++d)
    fill(CTAID_X + d, M.cta->index[d]), fill(NTID_X + d, M.launch.block[d]), fill(NCTAID_X + d, M.launch.grid[d]);
}

// ---- lanes of a warp that wait for each other ---
// Whether lanes at a block have nothing left but to leave the kernel.
static bool only_leaves(const Program& program, u32 at) {
  const BasicBlock& block = program.blocks[at];
  return !block.count && block.exit == LEAVE && block.guard == NONE;
}
// Which of the lanes at a block may execute its first instruction: those whose members are all there. Members
// of a __syncwarp may be at several of them. Those that only leave are not missed: CUDA and the PTX ISA ask for the
// members that have not exited.
static u32 converged(const Machine& M, Warp& W, u8* R, const BasicBlock& block, u32 lanes) {
  const u32* members = (const u32*)(R + block.members);
  u32 ready = lanes & W.released, absent = 0;
  ACTIVE(lanes & ~ready, {
    u32 there = lanes;
    if (block.gathers) {
      const int self = l;
      ACTIVE(W.held, {
        const BasicBlock& other = M.program.blocks[W.pc[l]];
        if (other.gathers && ((const u32*)(R + other.members))[l] == members[self]) there |= 1u << l;
      })
    }
    const u32 missing = members[l] & W.live & ~there;
    if (!missing || !(members[l] >> l & 1)) ready |= 1u << l;
    else absent |= missing;
  })
  ACTIVE(absent & ~W.missed, if (!only_leaves(M.program, W.pc[l])) W.missed |= 1u << l)
  return ready;
}
// Lets every lane that is held go on, those that their members await at another instruction with them.
static void release_partners(const Machine& M, Warp& W, u8* R, const BasicBlock& block, u32 ready) {
  if (!block.gathers) return;
  u32 wanted = 0;
  ACTIVE(ready, wanted |= ((const u32*)(R + block.members))[l])
  W.excused |= (wanted & W.held) | ready, W.released |= W.excused;
  W.held &= ~W.released;
}

// ---- loops ---
// Whether nothing has changed since some rounds ago: then nothing ever will, unless others change memory.
static bool repeats(Machine& M, Warp& W, const u8* R) {
  const u32 bytes = M.program.register_bytes;
  const bool same = W.sample.size() == bytes && W.sampled_stores == M.stores &&
                    !memcmp(W.sample.data(), R, bytes);
  if (!same) W.sample.assign(R, R + bytes), W.sampled_stores = M.stores;
  return same;
}
// Instructions of a warp; rounds between two looks at a loop.
const u64 LONG_LOOP = 1 << 16, ROUNDS = 1 << 12;
static bool goes_round(Machine& M, Warp& W, const u8* R, const BasicBlock& block, u32 lanes) {
  if (block.polls == OF_MEMORY) return ++W.looked >= M.looks;
  if (block.polls == OF_BARRIERS && W.awaited && W.awaited->lanes & lanes) return true;
  return W.issued > LONG_LOOP && !(++W.rounds % ROUNDS) && repeats(M, W, R);
}

// ---- barriers ---
static void note_meeting(Machine& M) { M.cta->met = ++M.epoch; }
static void tell_meeting(const Machine& M, const Warp& W, u32 lanes, u32 number) {
  if (!M.unit_events || !(M.program.traits & UNITS)) return;
  tell_event(M, event_of(MET, W.barrier_line[__builtin_ctz(lanes)], lanes, number, M.epoch, 0), *M.cta);
}
static void open_barrier(Machine& M, u32 number) {
  NamedBarrier& barrier = M.cta->named[number];
  const int self = M.warp;
  bool all = true;
  for (u32 w = 0; w < M.cta->warps.size(); ++w)
    ACTIVE(M.cta->warps[w].live, all &= M.cta->warps[w].waiting >> l & 1 && M.cta->warps[w].barrier[l] == number)
  if (all) order_block_barrier(M);
  for (u32 w = 0; w < M.cta->warps.size(); ++w) {
    Warp& W = M.cta->warps[w];
    u32 there = 0;
    ACTIVE(W.waiting, there |= (u32)(W.barrier[l] == number) << l)
    if (!there) continue;
    M.warp = w;
    tell_meeting(M, W, there, number);
    if (!all) acquire(M, there, barrier.clock);
    if (M.waits) W.elapsed.join(barrier.elapsed);
    ACTIVE(there, {
      const BasicBlock& block = M.program.blocks[W.pc[l]];
      W.pc[l] = block.taken;
      if (block.end == NONE) continue;
      const ops::Barrier op{{registers_of(M, w), &M.program.micro_ops[block.end]}};
      const u32 votes = barrier.votes;
      if (u32* result = (u32*)op.result())
        result[l] = op.vote() == ops::BarrierVote::POPC  ? votes
                    : op.vote() == ops::BarrierVote::AND ? votes == barrier.result
                                                         : votes > 0;
    })
    W.waiting &= ~there;
  }
  M.warp = self;
  barrier = NamedBarrier();
  note_meeting(M);
}
// A barrier waits for the lanes of a warp that have not left, and then counts the whole warp (PTX ISA 9.0, 9.7.13.1:
// "wait for all non-exited threads from its warp", "marks warps' arrival"; 9.7.12 exit). So do H100s. there: those that
// are at it.
static void count_left(NamedBarrier& barrier, const Machine& M, const Warp& W, u32 there) {
  if (there != W.live || barrier.whole >> M.warp & 1) return;
  barrier.whole |= 1u << M.warp, barrier.arrived += 32 - __builtin_popcount(there);
}
static u32 waiting_at(const Warp& W, u32 number) { return W.waiting & lanes_with(W.barrier, number); }
// Some lanes have left while others wait.
static void release_waiting(Machine& M, const Warp& W) {
  if (!W.live || W.waiting != W.live) return;
  const u32 number = W.barrier[__builtin_ctz(W.live)];
  NamedBarrier& barrier = M.cta->named[number];
  count_left(barrier, M, W, waiting_at(W, number));
  if (barrier.arrived >= barrier.expected) open_barrier(M, number);
}
static void arrive(Machine& M, Warp& W, u8* R, const BasicBlock& block, u32 lanes) {
  const bool plain = block.end == NONE;
  const ops::Barrier op{{R, plain ? nullptr : &M.program.micro_ops[block.end]}};
  const bool only_arrives = !plain && op.only_arrives();
  if (only_arrives) send(W, lanes, block.taken);
  else W.waiting |= lanes;
  u32 numbers = 0;
  ACTIVE(lanes, {
    const u32 asked = plain ? 0 : op.number()[l], number = asked & 15;
    NamedBarrier& barrier = M.cta->named[number];
    W.barrier[l] = number, W.barrier_line[l] = block.line, numbers |= 1u << number;
    const u32 whole = (M.threads + 31) & ~31u;
    barrier.arrived++;
    barrier.of_all = plain || !op.threads();
    barrier.expected = barrier.of_all ? whole : op.threads()[l];
    if (asked > 15 || !barrier.expected || barrier.expected % 32)
      if (Finding* f = report(M, DIVERGENT_BARRIER, block.line, l))
        f->detail = 1, f->extent = asked, f->extent_bytes = barrier.expected;
    if (!plain && op.result()) {
      const bool holds = (op.predicate()[l] != 0) != op.negated();
      barrier.votes += holds, barrier.result++;
    }
  })
  ACTIVE(numbers, {
    NamedBarrier& barrier = M.cta->named[l];
    const u32 number = l, those = lanes & lanes_with(W.barrier, number);
    if (M.traced && !plain) note_barrier(M, block.line, those, number);
    count_left(barrier, M, W, those | waiting_at(W, number));
    barrier.clock = join(barrier.clock, clock_of_lanes(M, those));
    if (M.waits) barrier.elapsed.join(W.elapsed);
    if (barrier.arrived >= barrier.expected) open_barrier(M, number);
  })
  ++M.epoch;
}
// All lanes wait. False when that will not end by itself.
static bool open_barrier_of_all(Machine& M) {
  for (Warp& W : M.cta->warps)
    if (W.live != W.waiting) return false;
  if (M.program.traits & NAMED) {  // those who have left count as arrived
    for (u32 number = 0; number < 16; ++number) {
      NamedBarrier& barrier = M.cta->named[number];
      u32 there = 0, live = 0;
      for (Warp& W : M.cta->warps) {
        live += __builtin_popcount(W.live);
        ACTIVE(W.waiting, there += W.barrier[l] == number)
      }
      if (!there || there != live || !barrier.of_all) continue;
      check_block_barrier(M);
      open_barrier(M, number);
      return true;
    }
    return false;
  }
  check_block_barrier(M);
  note_meeting(M);
  order_block_barrier(M);
  if (M.waits) M.waits->meet(M.cta->warps);
  for (Warp& W : M.cta->warps) {
    M.warp = &W - M.cta->warps.data();
    if (W.waiting) tell_meeting(M, W, W.waiting, 0);
    while (W.waiting) {
      const u32 at = W.pc[__builtin_ctz(W.waiting)], there = W.waiting & lanes_with(W.pc, at);
      W.waiting &= ~there;
      send(W, there, M.program.blocks[at].taken);
    }
  }
  return true;
}

// Whether those that wait are at a barrier that all lanes of a warp have to execute together.
static bool waits_together(const Machine& M, const Warp& W, u8* R) {
  const BasicBlock& block = M.program.blocks[W.pc[__builtin_ctz(W.waiting)]];
  return block.end == NONE || ops::Barrier{{R, &M.program.micro_ops[block.end]}}.aligned();
}

// ---- turns ---
// At random, where threads order accesses by more than barriers: whether others get a turn in between.
static bool interrupted(Machine& M, u32 often) {
  return M.launch.flags & SHUFFLE && M.program.traits & CLOCKS && M.random() % often == 0;
}

// At the end of a block whose micro-op says which lanes go on. The others try it again, which counts when it succeeds.
static void wait_at_end(Machine& M, Warp& W, u8* R, u32 pc, u32 lanes, u32 taken) {
  const BasicBlock& block = M.program.blocks[pc];
  W.refused = 0;
  if (taken) {
    set_mask(W, taken);
    const MicroOp& end = M.program.micro_ops[block.end];
    end.run(M, W, R, end);
  }
  const u32 refused = W.refused;
  send(W, refused, pc), send(W, lanes & ~refused, block.taken);
  if (!refused) return;
  W.stalled |= refused;
  ACTIVE(refused, W.barrier_line[l] = block.line)
  M.block_counts[pc].threads -= __builtin_popcount(refused);
  if (refused != lanes) return;
  M.block_counts[pc].warps--, W.issued -= block.cost;
  if (M.traced) forget_step(M);
  if (M.waits) M.waits->advance(W, pc, -1);
}

// Run a warp until all its lanes wait or have left. False when the launch has to stop or its budget is spent.
static bool advance(Machine& M, Warp& W, u8* R) {
  const Program& program = M.program;
  if (!W.started) set_special_registers(M, R), W.started = true, W.budget = M.launch.budget;
  u32 pc;
  for (;;) {
    u32 lanes = pick(W, pc);
    if (!lanes) {
      if (!W.held || W.polling | W.stalled) return !*M.stop;
      W.released |= W.held, W.held = 0;  // no further lane can arrive; the instruction reports it
      continue;
    }
    bool together = lanes == W.live;
    if (!together && program.blocks[pc].members != NONE) {
      const u32 ready = converged(M, W, R, program.blocks[pc], lanes);
      W.held |= lanes & ~ready;
      if (!ready) continue;
      release_partners(M, W, R, program.blocks[pc], ready);
      lanes = ready;
    }
    const u32 lane_count = __builtin_popcount(lanes);
    if (W.waiting && waits_together(M, W, R)) check_left_behind(M, W, pc, lanes);
    set_mask(W, lanes);
    for (;;) {
      const BasicBlock& block = program.blocks[pc];
      M.block_counts[pc].warps++, M.block_counts[pc].threads += lane_count;
      if (__builtin_expect(M.traced != nullptr, 0)) note_step(M, pc, lanes);
      if (__builtin_expect(M.waits != nullptr, 0)) M.waits->advance(W, pc, 1);
      W.issued += block.cost;
      if (__builtin_expect(W.issued > W.budget, 0)) {
        Finding* f = report(M, ENDLESS_LOOP, block.line, __builtin_ctz(lanes));
        if (f && W.budget < M.launch.budget) f->detail = 2;
        return false;
      }
      if (__builtin_expect(*M.stop, 0)) return false;
      for (const MicroOp *op = program.micro_ops + block.first, *end = op + block.count; op != end; ++op) {
        if (__builtin_expect(op->guard == NONE, 1)) {
          op->run(M, W, R, *op);
          continue;
        }
        const u32 holds = ballot((const u32*)(R + op->guard));
        set_mask(W, lanes & (op->guard_negated ? ~holds : holds));
        if (W.active) op->run(M, W, R, *op);
        set_mask(W, lanes);
      }
      W.released &= ~lanes, W.excused &= ~lanes, W.held = 0;
      u32 taken = lanes;
      if (block.guard != NONE) {
        const u32 holds = ballot((const u32*)(R + block.guard));
        taken &= block.guard_negated ? ~holds : holds;
      }
      if (block.exit == BRANCH) {
        const bool pause = interrupted(M, 8);
        const bool round = taken && block.taken <= pc && goes_round(M, W, R, block, taken);
        if (together && !round && !pause && (taken == lanes || !taken)) {
          pc = taken ? block.taken : block.otherwise;
          continue;
        }
        send(W, taken, block.taken), send(W, lanes & ~taken, block.otherwise);
        if (round) {
          W.polling |= taken;
          ACTIVE(taken, W.barrier_line[l] = block.line, W.barrier[l] = block.polls)
        }
        if (pause) return true;
      } else if (block.exit == BARRIER) {
        send(W, taken, pc), send(W, lanes & ~taken, block.taken), W.sample.clear();
        if (M.program.traits & NAMED) {
          arrive(M, W, R, block, taken);
        } else {
          W.waiting |= taken;
          LANES(W.barrier_line[l] = taken >> l & 1 ? block.line : W.barrier_line[l])
        }
      } else if (block.exit == WAIT) {
        wait_at_end(M, W, R, pc, lanes, taken);
      } else if (block.exit == LEAVE) {
        if (M.program.traits & UNITS && taken) check_exit(M, W, taken);
        W.live &= ~taken;
        send(W, lanes & ~taken, block.otherwise);
        if (M.program.traits & NAMED) release_waiting(M, W);
      } else {
        leave_block(M, W, block, lanes, taken);
      }
      break;
    }
  }
}
// One turn of a warp; notes whether it is idle.
static bool turn(Machine& M, int w) {
  Warp& W = M.cta->warps[w];
  u8* R = registers_of(M, w);
  M.warp = w;
  const u32 live = W.live, waiting = W.waiting, polled = W.polling;
  const u64 issued = W.issued;
  W.polling = W.stalled = W.looked = 0;
  if (!advance(M, W, R)) return false;
  W.idle = W.stalled && W.issued == issued;
  if (!W.polling) return true;
  const u64 state = std::hash<std::string_view>()({(const char*)R, M.program.deciding}) ^
                    std::hash<std::string_view>()({(const char*)W.pc, sizeof W.pc});
  W.idle = state == W.state && M.stores == W.stores && live == W.live &&
           waiting == W.waiting && polled == W.polling;
  W.state = state, W.stores = M.stores;
  return true;
}

Progress run_block(Machine& M) {
  const int warps = M.cta->warps.size();
  std::vector<int> order(warps);
  for (int w = 0; w < warps; ++w) order[w] = M.launch.flags & REVERSE ? warps - 1 - w : w;
  for (;;) {
    if (M.launch.flags & SHUFFLE) std::shuffle(order.begin(), order.end(), M.random);
    u32 live = 0;
    const u64 stores = M.stores;
    bool moved = false, idle = true;
    for (int w : order) {
      Warp& W = M.cta->warps[w];
      if (!(W.live & ~W.waiting) || (!M.insists && awaits_in_vain(W))) continue;
      if (!turn(M, w)) return STOPPED;
      moved |= !W.polling && !W.idle, idle &= W.idle;
    }
    for (Warp& W : M.cta->warps) live |= W.live;
    if (!live) return FINISHED;
    moved |= open_barrier_of_all(M) || M.stores != stores;
    M.cta->idle = idle && !moved;
    if (!moved || interrupted(M, 4)) return STUCK;
  }
}
