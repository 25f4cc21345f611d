// Faults as they are recorded.
#include "check/check.h"

// Number of the buffer, from 1; all that malloc gave is one, with what lies just before it.
static u64 buffer_of(const Machine& M, u64 address) {
  if (M.global.owned.empty()) return address >> BUFFER_SHIFT;
  return least<u64>((address + (1ull << (BUFFER_SHIFT - 1))) >> BUFFER_SHIFT, M.global.first + 1);
}
// Instructions that a warp may go on for after an access where no memory is: a GPU ends the kernel there, and what the
// access gave may be the bound of a loop.
static const u64 AFTER_FAULT = 1 << 24;

// One record per kind, source line, other source line and buffer, and one more where the other access is of another
// block; no kind takes the records of another.
Finding* report(Machine& M, Kind kind, s32 line, int lane, s32 other, u64 address, u32 other_block) {
  const s32* origins = M.launch.origins;
  Warp& W = M.cta->warps[M.warp];
  if (kind == OUT_OF_BOUNDS || kind == MISALIGNED) W.budget = least(W.budget, W.issued + AFTER_FAULT);
  u32 of_kind = 0;
  for (u32 k = 0; k < M.finding_count; ++k) {
    Finding& f = M.findings[k];
    if (f.kind != kind) continue;
    if (origins[f.line] == origins[line] && origins[f.other_line] == origins[other] &&
        buffer_of(M, f.address) == buffer_of(M, address) && !f.other_block == !other_block) {
      f.count++;
      return nullptr;
    }
    ++of_kind;
  }
  if (of_kind == M.finding_limit) return nullptr;
  Finding& f = M.findings[M.finding_count++];
  f = Finding{};
  f.kind = kind, f.line = line, f.other_line = other, f.address = address, f.warp = M.warp, f.lane = lane,
  f.count = 1, f.other_block = other_block;
  memcpy(f.block, M.cta->index, sizeof f.block);
  return &f;
}
Finding* report_access(Machine& M, Kind kind, s32 line, int lane, Act act, Space space, u64 address, u32 bytes,
                       s32 other, int other_thread, u32 other_block) {
  Finding* f = report(M, kind, line, lane, other, address, other_block);
  if (!f) return nullptr;
  f->act = act, f->space = space, f->bytes = bytes;
  if (other_thread >= (int)FIRST_UNIT) other_thread = thread_of_unit(other_thread);
  f->other_warp = other_thread < 0 ? -1 : other_thread / 32;
  f->other_lane = other_thread < 0 ? -1 : other_thread % 32;
  return f;
}
void report_unwritten(Machine& M, s32 line, int lane, Act act, Space space, u64 address, u32 bytes, u64 at, s32 other,
                      int other_thread) {
  FollowedLoad& load = M.followed;
  if (!load.width) {
    report_access(M, UNINITIALIZED, line, lane, act, space, address, bytes, other, other_thread);
    return;
  }
  const u32 k = at > address ? (at - address) / load.width : 0;
  Undefined& found = load.found[k];
  if (!found.lanes) found = {0, line, k, load.width, 0, 0, space};
  found.lanes |= 1u << lane;
  M.cta->warps[M.warp].unwritten[(u64)line << 2 | k][lane] = address + k * load.width;
}
void report_misuse(Machine& M, Misuse misuse, s32 line, int lane, u32 address, u32 value) {
  if (Finding* f = report(M, BARRIER_MISUSE, line, lane, 0, address))
    f->space = SHARED, f->detail = misuse, f->extent_bytes = value;
}

bool is_of_heap(const Machine& M, u64 number) {
  return !M.global.owned.empty() && number >= M.global.first && number < M.global.owned.size();
}
void describe_heap(const Machine& M, u64 address, Finding& f) {
  // An address before the start of a buffer is one past the end of the buffer before it.
  const u64 number = (address >> BUFFER_SHIFT) - 1 + (address >> (BUFFER_SHIFT - 1) & 1);
  if (!is_of_heap(M, number) || f.kind == MISALIGNED) return;
  const Allocation& made = M.global.made[number - M.global.first];
  f.detail = made.freed ? 2 : 1, f.extent_bytes = made.bytes;
}
