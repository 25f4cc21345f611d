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

// Room on a lane's stack, of which `counted` bytes count against its limit. When there is none the launch
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
// operands: place, bytes of the parameters, where these are handed over
static void enter_function(Machine& M, Warp& W, u8*, const MicroOp& op) {
  const u32* o = op.operands;
  ACTIVE(W.active, copy_within(M, l, o[0], o[2], o[1]))
}
// What points into the parameters and variables of a function that has returned reads what nobody wrote.
// operands: place, bytes
static void leave_function(Machine& M, Warp& W, u8*, const MicroOp& op) {
  ACTIVE(W.active, forget(M, l, op.operands[0], op.operands[1]))
}
// operands: register for the place, bytes, bytes of the parameters, where these are, bytes that count
static void push(Machine& M, Warp& W, u8* R, const MicroOp& op) {
  const u32* o = op.operands;
  u64* frame = (u64*)OPERAND(0);
  ACTIVE(W.active, {
    frame[l] = room(M, W, op, l, o[1], o[4], 16);
    if (frame[l] + o[1] <= M.launch.local_bytes) copy_within(M, l, frame[l], o[3], o[2]);
  })
}
// operands: result, bytes, alignment
static void allocate_on_stack(Machine& M, Warp& W, u8* R, const MicroOp& op) {
  u64 *result = (u64*)OPERAND(0), *asked = (u64*)OPERAND(1);
  ACTIVE(W.active, {
    const u64 align = greatest<u64>(op.operands[2], 16),
              bytes = (least<u64>(asked[l], 1u << 31) + 15) & ~15ull;
    result[l] = room(M, W, op, l, bytes, bytes, align);
  })
}
// operands: count, then place, bytes and place of what is undefined or NONE, of each register
static void save(Machine& M, Warp& W, u8* R, const MicroOp& op) {
  CallState& calls = calls_of(M, W);
  ACTIVE(W.active, for (u32 k = 0; k < op.operands[0]; ++k) {
    const u32 *o = op.operands + 1 + 3 * k, bytes = o[1];
    CallState::Saved saved{};
    memcpy(&saved.value, R + o[0] + l * bytes, bytes);
    if (o[2] != NONE) saved.undefined = ((Undefined*)(R + o[2]))->lanes >> l & 1;
    calls.saved[l].push_back(saved);
  })
}
static void resume(Machine& M, Warp& W, u8* R, const MicroOp& op) {
  CallState& calls = calls_of(M, W);
  const u32 count = op.operands[0];
  ACTIVE(W.active, {
    const u64 first = calls.saved[l].size() - count;
    for (u32 k = 0; k < count; ++k) {
      const u32 *o = op.operands + 1 + 3 * k, bytes = o[1];
      const CallState::Saved& saved = calls.saved[l][first + k];
      memcpy(R + o[0] + l * bytes, &saved.value, bytes);
      if (o[2] == NONE) continue;
      Undefined& u = *(Undefined*)(R + o[2]);
      u.lanes = (u.lanes & ~(1u << l)) | (u32)saved.undefined << l;
    }
    calls.saved[l].resize(first);
  })
}
enum Stop { TRAPPED, BROKE, NO_FUNCTION, NO_TARGET };
static void report_stop(Machine& M, const MicroOp& op, int lane, Stop stop, u64 address = 0) {
  if (Finding* f = report(M, TRAP, op.line, lane))
    f->detail = stop, f->bytes = (u32)address, f->extent_bytes = address >> 32;
  stop_launch(M);
}
// operands: Stop
static void stop(Machine& M, Warp& W, u8*, const MicroOp& op) {
  ACTIVE(W.active, report_stop(M, op, l, (Stop)op.operands[0]))
}
// operands: register with the address, functions of the module, the first block of each, or NONE
static void target(Machine& M, Warp& W, u8* R, const MicroOp& op) {
  CallState& calls = calls_of(M, W);
  ACTIVE(W.active, {
    const u64 address = ((u64*)OPERAND(0))[l], number = (address - FUNCTION_WINDOW) / FUNCTION_BYTES - 1;
    const bool known = address % FUNCTION_BYTES == 0 && number < op.operands[1];
    calls.target[l] = known ? op.operands[2 + number] : NONE;
    if (calls.target[l] == NONE) calls.target[l] = 0, report_stop(M, op, l, NO_FUNCTION, address);
  })
}
// operands: register with the index, targets, and their blocks. PTX does not define an index past the last.
static void choose(Machine& M, Warp& W, u8* R, const MicroOp& op) {
  CallState& calls = calls_of(M, W);
  ACTIVE(W.active, {
    const u32 index = WORDS(0)[l], count = op.operands[1];
    calls.target[l] = op.operands[2 + (index < count ? index : 0)];
    if (index >= count) report_stop(M, op, l, NO_TARGET, index);
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

// operands: where arguments are, where the result goes
static void copy(Machine& M, Warp& W, u8*, const MicroOp& op) {
  ACTIVE(W.active, {
    const u64 to = argument(M, l, op.operands[0], 8), from = argument(M, l, op.operands[0] + 8, 8),
              bytes = argument(M, l, op.operands[0] + 16, 8);
    for (u64 k = 0; k < bytes; ++k) {
      const u8* source = at_generic(M, from + k, 1, op, l, READ);
      u8* target = source ? at_generic(M, to + k, 1, op, l, WRITE) : nullptr;
      if (!target) break;
      *target = *source, mark_written(M, to + k, l);
    }
    give_back(M, l, op.operands[1], to, 8);
  })
}
static void fill(Machine& M, Warp& W, u8*, const MicroOp& op) {
  ACTIVE(W.active, {
    const u64 to = argument(M, l, op.operands[0], 8), bytes = argument(M, l, op.operands[0] + 16, 8);
    for (u64 k = 0; k < bytes; ++k) {
      u8* target = at_generic(M, to + k, 1, op, l, WRITE);
      if (!target) break;
      *target = argument(M, l, op.operands[0] + 8, 1), mark_written(M, to + k, l);
    }
    give_back(M, l, op.operands[1], to, 8);
  })
}
static const Family calls{{"call.enter", enter_function},   {"call.leave", leave_function},   {"call.push", push},
                          {"call.save", save},
                          {"call.resume", resume}, {"call.target", target}, {"call.memcpy", copy},
                          {"call.memset", fill},   {"switch", choose}, {"stop", stop},
                          {"alloca", allocate_on_stack}};
