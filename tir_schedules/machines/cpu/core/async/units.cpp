// Operations of asynchronous units: see state/units.h.
#include "async/async.h"
#include "check/check.h"
#include "observe/observer.h"

Operation begin_operation(Machine& M, u32 thread, const MicroOp& op, u32 lanes) {
  ++M.epoch;
  Operation operation;
  operation.cta = M.cta, operation.block = M.block_number(), operation.thread = thread;
  operation.line = op.line, operation.warp = M.warp, operation.lane = __builtin_ctz(lanes);
  operation.clock = clock_of_lanes(M, lanes);
  operation.epoch = M.epoch++;
  return operation;
}
void perform(Machine& M, Operation& operation) {
  if (!operation.perform) return;
  const auto move_data = std::move(operation.perform);
  operation.perform = nullptr;
  Cta* const cta = M.cta;
  const int warp = M.warp;
  M.cta = operation.cta, M.warp = operation.warp;
  move_data(M);
  M.cta = cta, M.warp = warp;
  ++M.stores;
}
bool at_once(Machine& M) { return M.launch.flags & SHUFFLE ? M.random() % 2 : M.launch.flags & EARLY; }
void tell_group(const Machine& M, Happening what, s32 line, u32 lanes, u32 group, u32 open) {
  tell_event(M, event_of(what, line, lanes, 0, group, open), *M.cta);
}
