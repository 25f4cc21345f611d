// Runs a launch: blocks one after another; in a block, warps from barrier to barrier; in a warp, the lanes at
// the lowest basic block. Warps advance one at a time on purpose: what lockstep would hide, a missing
// __syncthreads, shows. A launch that is watched runs one block alone.
#include "machine.h"

static void send(Warp& W, u32 mask, u32 target) { LANES(W.pc[l] = mask >> l & 1 ? target : W.pc[l]) }
// The lanes that run next: those at the lowest basic block that do not wait at a barrier.
static u32 pick(const Warp& W, u32& pc) {
  u32 best = NONE, mask = 0;
  ACTIVE(W.live & ~W.waiting, {
    if (W.pc[l] < best) best = W.pc[l], mask = 0;
    if (W.pc[l] == best) mask |= 1u << l;
  })
  pc = best;
  return mask;
}
static void set_mask(Warp& W, u32 mask) {
  W.active = mask;
  LANES(W.mask[l] = -(s32)(mask >> l & 1))
}
static void set_special_registers(const Machine& M, u8* R, const u32* special) {
  auto put = [&](u32 name, int l, u32 value) { ((u32*)(R + special[name]))[l] = value; };
  LANES({
    const u32 t = M.warp * 32 + l, x = M.block[0], y = M.block[1];
    put(TID_X, l, t % x), put(TID_Y, l, t / x % y), put(TID_Z, l, t / (x * y));
    put(LANEID, l, l), put(WARPID, l, M.warp);
    for (u32 d = 0; d < 3; ++d) {
      put(CTAID_X + d, l, M.block_index[d]), put(NTID_X + d, l, M.block[d]), put(NCTAID_X + d, l, M.grid[d]);
    }
  })
}

// Run a warp until all its lanes wait or have left. False when the launch has to stop or its budget is spent.
static bool advance(Machine& M, Warp& W, u8* R, const Program& program) {
  if (!W.started) set_special_registers(M, R, program.special), W.started = 1;
  u32 pc;
  while (const u32 lanes = pick(W, pc)) {
    const bool together = lanes == W.live;
    const u32 lane_count = __builtin_popcount(lanes);
    set_mask(W, lanes);
    for (;;) {
      const BasicBlock& block = program.blocks[pc];
      M.block_counts[pc].warps++, M.block_counts[pc].threads += lane_count;
      W.issued += block.cost;
      if (__builtin_expect(W.issued > M.budget, 0)) {
        M.report(ENDLESS_LOOP, block.line, __builtin_ctz(lanes));
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
      u32 taken = lanes;
      if (block.guard != NONE) {
        const u32 holds = ballot((const u32*)(R + block.guard));
        taken &= block.guard_negated ? ~holds : holds;
      }
      if (block.exit == BRANCH) {
        if (together && (taken == lanes || !taken)) {
          pc = taken ? block.taken : block.otherwise;
          continue;
        }
        send(W, taken, block.taken), send(W, lanes & ~taken, block.otherwise);
      } else if (block.exit == BARRIER) {
        send(W, lanes, block.taken);
        W.waiting |= taken;
        ACTIVE(taken, W.barrier_line[l] = block.line)
      } else if (block.exit == LEAVE) {
        W.live &= ~taken;
        send(W, lanes & ~taken, block.otherwise);
      } else {
        leave_block(M, W, block, lanes, taken);
      }
      break;
    }
  }
  return !*M.stop;
}

// Every thread of the block must wait at the same barrier.
static void check_barrier(Machine& M, int warps) {
  s32 line = 0;
  for (int w = 0; w < warps && !line; ++w)
    if (M.warps[w].live) line = M.warps[w].barrier_line[__builtin_ctz(M.warps[w].live)];
  for (int w = 0; w < warps; ++w) {
    const u32 threads = M.threads - w * 32, all = threads >= 32 ? NONE : (1u << threads) - 1;
    for (int l = 0; l < 32; ++l) {
      if (!(all >> l & 1)) continue;
      const bool left = !(M.warps[w].live >> l & 1);
      if (!left && M.warps[w].barrier_line[l] == line) continue;
      M.warp = w;
      if (Finding* f = M.report(DIVERGENT_BARRIER, line, l, left ? 0 : M.warps[w].barrier_line[l]))
        f->other_warp = w, f->other_lane = l;
      return;
    }
  }
}

static bool run_block(Machine& M, const Program& program, u8* registers) {
  const int warps = (M.threads + 31) / 32;
  std::vector<Warp> state(warps);
  M.warps = state.data();
  M.first_epoch = ++M.epoch;
  for (int w = 0; w < warps; ++w) {
    const u32 threads = M.threads - w * 32;
    memcpy(registers + (u64)program.register_bytes * w, program.initial_registers, program.register_bytes);
    state[w].live = threads >= 32 ? NONE : (1u << threads) - 1;
    memset(state[w].pc, 0, sizeof state[w].pc);
    memset(state[w].groups, 0, sizeof state[w].groups);
  }
  for (;;) {
    u32 live = 0;
    for (int k = 0; k < warps; ++k) {
      M.warp = M.flags & REVERSE ? warps - 1 - k : k;
      if (!advance(M, state[M.warp], registers + (u64)program.register_bytes * M.warp, program)) return false;
      live |= state[M.warp].live;
    }
    if (!live) break;
    check_barrier(M, warps);
    M.epoch++;
    for (Warp& W : state) W.waiting = 0, W.sync++;
  }
  for (int w = 0; w < warps; ++w)  // copies that nobody waited for still land, unseen
    for (const AsyncCopy& copy : state[w].copies)
      GRANULES(M, copy.target, copy.bytes, M.shadow[g].in_flight = 0)
  return true;
}

const Family* Family::all = nullptr;

extern "C" void* function_named(const char* name) {
  for (const Family* family = Family::all; family; family = family->next)
    for (const NamedFunction& named : family->functions)
      if (!strcmp(name, named.name)) return (void*)named.function;
  return nullptr;
}

// Returns the number of findings.
extern "C" u32 launch(const LaunchArguments* a) {
  Machine M{};
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
  M.threads = M.block[0] * M.block[1] * M.block[2];
  const u64 warps = (M.threads + 31) / 32;
  std::vector<u8> shared(M.shared_bytes + 192), local(warps * 32 * M.local_stride + 64),
      written(local.size());
  std::vector<u8> registers(warps * a->program->register_bytes + 64);
  M.shadow.resize((M.shared_bytes >> M.granule_shift) + 1);
  M.shared = (u8*)(((u64)shared.data() + 127) & ~127ull);
  M.local = (u8*)(((u64)local.data() + 63) & ~63ull);
  M.local_written = written.data();
  u8* first_register = (u8*)(((u64)registers.data() + 63) & ~63ull);
  auto run = [&] {
    memset(shared.data(), 0xff, shared.size());  // what nobody wrote reads as NaN
    memset(local.data(), 0xff, local.size()), memset(written.data(), 0, written.size());
    return run_block(M, *a->program, first_register);
  };
  if (M.watch) {
    memcpy(M.block_index, M.watch->block, sizeof M.block_index);
    run();
    return M.finding_count;
  }
  for (M.block_index[2] = 0; M.block_index[2] < M.grid[2]; ++M.block_index[2])
    for (M.block_index[1] = 0; M.block_index[1] < M.grid[1]; ++M.block_index[1])
      for (M.block_index[0] = 0; M.block_index[0] < M.grid[0]; ++M.block_index[0], ++M.block_number)
        if (!run()) return M.finding_count;
  return M.finding_count;
}
