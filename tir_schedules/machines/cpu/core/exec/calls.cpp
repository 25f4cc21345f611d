// Calls. Each lane has a stack of its own: where it returns to, registers saved, and, behind all other local
// memory, the frames of recursive functions.
#include "exec/exec.h"

CallState& calls_of(Machine& M, Warp& W) {
  if (!W.calls) {
    W.calls.reset(new CallState);
    for (u32& top : W.calls->top) top = M.launch.stack_start;
  }
  return *W.calls;
}
void stop_launch(Machine& M) {
  static const volatile u32 yes = 1;
  M.stop = &yes;
}
static void forget(Machine& M, int lane, u64 first, u64 bytes) {
  memset(M.local_of(lane) + first, 0xff, bytes), memset(M.local_written_of(lane) + first, 0, bytes);
}
static void copy_within(Machine& M, int lane, u64 to, u64 from, u64 bytes) {
  memcpy(M.local_of(lane) + to, M.local_of(lane) + from, bytes);
  memcpy(M.local_written_of(lane) + to, M.local_written_of(lane) + from, bytes);
}
u64 argument(Machine& M, int lane, u32 offset, u32 bytes) {
  u64 value = 0;
  memcpy(&value, M.local_of(lane) + offset, bytes);
  return value;
}
void give_back(Machine& M, int lane, u32 offset, u64 value, u32 bytes) {
  memcpy(M.local_of(lane) + offset, &value, bytes), memset(M.local_written_of(lane) + offset, 1, bytes);
}

// Room on a lane's stack, of which `counted` bytes count against its limit. When there is no room the launch
// stops, and the room is that at its start.
static u64 room(Machine& M, Warp& W, const MicroOp& op, int lane, u64 bytes, u64 counted, u64 align) {
  CallState& calls = calls_of(M, W);
  const u64 start = (calls.top[lane] + align - 1) & ~(align - 1);
  if (calls.used[lane] + counted <= M.launch.stack_limit && start + bytes <= M.launch.local_bytes) {
    calls.top[lane] = start + bytes, calls.used[lane] += counted;
    return start;
  }
  if (Finding* f = report(M, STACK_OVERFLOW, op.line, lane)) f->detail = M.launch.stack_limit, f->bytes = counted;
  stop_launch(M);
  return M.launch.stack_start;
}
static void execute(Machine& M, Warp& W, const ops::Enter& op) {
  ACTIVE(W.active, copy_within(M, l, op.place(), op.given(), op.passed()))
}
// A pointer into the parameters or variables of a function that has returned reads bytes that no thread has written.
static void execute(Machine& M, Warp& W, const ops::Leave& op) {
  ACTIVE(W.active, forget(M, l, op.place(), op.bytes()))
}
static void execute(Machine& M, Warp& W, const ops::Push& op) {
  u64* frame = op.frame();
  ACTIVE(W.active, {
    frame[l] = room(M, W, op, l, op.bytes(), op.counted(), 16);
    if (frame[l] + op.bytes() <= M.launch.local_bytes) copy_within(M, l, frame[l], op.given(), op.passed());
  })
}
static void execute(Machine& M, Warp& W, const ops::Allocate& op) {
  ACTIVE(W.active, {
    const u64 align = greatest<u64>(op.align(), 16),
              bytes = (least<u64>(op.bytes()[l], 1u << 31) + 15) & ~15ull;
    op.result()[l] = room(M, W, op, l, bytes, bytes, align);
  })
}
static void execute(Machine& M, Warp& W, const ops::CallSave& op) {
  CallState& calls = calls_of(M, W);
  const Registers<u8> registers = op.registers();
  ACTIVE(W.active, for (u32 k = 0; k < registers.count; ++k) {
    CallState::Saved saved{};
    const u32 bytes = op.sizes()[k];
    memcpy(&saved.value, registers[k] + l * bytes, bytes);
    if (const Undefined* u = op.undefined()[k]) saved.undefined = u->lanes >> l & 1;
    calls.saved[l].push_back(saved);
  })
}
static void execute(Machine& M, Warp& W, const ops::CallResume& op) {
  CallState& calls = calls_of(M, W);
  const Registers<u8> registers = op.registers();
  ACTIVE(W.active, {
    const u64 first = calls.saved[l].size() - registers.count;
    for (u32 k = 0; k < registers.count; ++k) {
      const CallState::Saved& saved = calls.saved[l][first + k];
      const u32 bytes = op.sizes()[k];
      memcpy(registers[k] + l * bytes, &saved.value, bytes);
      if (Undefined* u = op.undefined()[k]) u->lanes = (u->lanes & ~(1u << l)) | (u32)saved.undefined << l;
    }
    calls.saved[l].resize(first);
  })
}
static void report_stop(Machine& M, const MicroOp& op, int lane, ops::Stop stop, u64 address = 0) {
  if (Finding* f = report(M, TRAP, op.line, lane))
    f->detail = (u32)stop, f->bytes = (u32)address, f->extent_bytes = address >> 32;
  stop_launch(M);
}
static void execute(Machine& M, Warp& W, const ops::StopLaunch& op) {
  ACTIVE(W.active, report_stop(M, op, l, op.why()))
}
static void execute(Machine& M, Warp& W, const ops::Target& op) {
  CallState& calls = calls_of(M, W);
  const Numbers starts = op.starts();
  ACTIVE(W.active, {
    const u64 address = op.address()[l], number = (address - FUNCTION_WINDOW) / FUNCTION_BYTES - 1;
    const bool known = address % FUNCTION_BYTES == 0 && number < starts.count;
    calls.target[l] = known ? starts[number] : NONE;
    if (calls.target[l] == NONE) calls.target[l] = 0, report_stop(M, op, l, ops::Stop::NO_FUNCTION, address);
  })
}
// PTX does not define an index past the last.
static void execute(Machine& M, Warp& W, const ops::Switch& op) {
  CallState& calls = calls_of(M, W);
  const Numbers targets = op.targets();
  ACTIVE(W.active, {
    const u32 index = op.index()[l];
    calls.target[l] = targets[index < targets.count ? index : 0];
    if (index >= targets.count) report_stop(M, op, l, ops::Stop::NO_TARGET, index);
  })
}

void leave_block(Machine& M, Warp& W, const BasicBlock& block, u32 lanes, u32 taken) {
  CallState& calls = calls_of(M, W);
  ACTIVE(lanes & ~taken, W.pc[l] = block.otherwise)
  ACTIVE(taken, {
    if (block.exit == RETURN) {
      const CallState::Call& call = calls.made[l].back();
      forget(M, l, call.top, calls.top[l] - call.top);
      W.pc[l] = call.back_to, calls.top[l] = call.top, calls.used[l] = call.used;
      calls.made[l].pop_back();
      continue;
    }
    if (block.exit == CALL) calls.made[l].push_back({block.otherwise, calls.top[l], calls.used[l]});
    W.pc[l] = block.exit == SWITCH || block.taken == NONE ? calls.target[l] : block.taken;
  })
}

// ---- memcpy and memset, where nvcc calls them ---
static void mark_written(Machine& M, u64 address, int lane) {
  if (address >= LOCAL_WINDOW && address - LOCAL_WINDOW < M.launch.local_bytes)
    M.local_written_of(lane)[address - LOCAL_WINDOW] = 1;
}
static void execute(Machine& M, Warp& W, const ops::CallMemcpy& op) {
  ACTIVE(W.active, {
    const u64 to = argument(M, l, op.arguments(), 8), from = argument(M, l, op.arguments() + 8, 8),
              bytes = argument(M, l, op.arguments() + 16, 8);
    for (u64 k = 0; k < bytes; ++k) {
      const u8* source = at_generic(M, from + k, 1, op, l, READ);
      u8* target = source ? at_generic(M, to + k, 1, op, l, WRITE) : nullptr;
      if (!target) break;
      *target = *source, mark_written(M, to + k, l);
    }
    give_back(M, l, op.result(), to, 8);
  })
}
static void execute(Machine& M, Warp& W, const ops::CallMemset& op) {
  ACTIVE(W.active, {
    const u64 to = argument(M, l, op.arguments(), 8), bytes = argument(M, l, op.arguments() + 16, 8);
    for (u64 k = 0; k < bytes; ++k) {
      u8* target = at_generic(M, to + k, 1, op, l, WRITE);
      if (!target) break;
      *target = argument(M, l, op.arguments() + 8, 1), mark_written(M, to + k, l);
    }
    give_back(M, l, op.result(), to, 8);
  })
}
