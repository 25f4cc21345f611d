// Special registers that change while a warp runs, or that only a launch knows.
#include "exec/exec.h"

enum SpecialRegister {
  CLOCK, CLOCK64, CLOCK_HI, TIMER, TIMER_LOW, TIMER_HIGH, WARPS, DYNAMIC_SHARED, TOTAL_SHARED,
  CLUSTER_X, CLUSTER_Y, CLUSTER_Z, CLUSTERS_X, CLUSTERS_Y, CLUSTERS_Z, IN_CLUSTER_X, IN_CLUSTER_Y,
  IN_CLUSTER_Z, OF_CLUSTER_X, OF_CLUSTER_Y, OF_CLUSTER_Z, CLUSTER_RANK, CLUSTER_SIZE, EXPLICIT
};
// Time goes on with the instructions that the warp issues, and from one reading to the next, so that a loop
// that waits for a time to pass ends. It begins anew with each block.
static u64 now(Warp& W) { return W.clock = greatest(W.clock + 1, W.issued); }
static u64 read_special(Machine& M, Warp& W, u32 name, u32 static_shared) {
  switch (name) {
    case CLOCK: case CLOCK64: case TIMER: case TIMER_LOW: return now(W);
    case CLOCK_HI: case TIMER_HIGH: return now(W) >> 32;
    case WARPS: return (M.threads + 31) / 32;
    case DYNAMIC_SHARED: return M.launch.shared_bytes - static_shared;
    case TOTAL_SHARED: return (M.launch.shared_bytes + 127) & ~127u;  // as it is allocated
    case CLUSTER_RANK: return M.cta->rank;
    case CLUSTER_SIZE: return M.cta->cluster->blocks.size();
    case EXPLICIT: return M.cta->cluster->blocks.size() > 1;
  }
  const u32 axis = (name - CLUSTER_X) % 3;
  switch (name - axis) {
    case CLUSTER_X: return M.cta->index[axis] / M.launch.cluster[axis];
    case CLUSTERS_X: return M.launch.grid[axis] / M.launch.cluster[axis];
    case IN_CLUSTER_X: return M.cta->index[axis] % M.launch.cluster[axis];
  }
  return M.launch.cluster[axis];
}
// operands: which, result, its bytes, static shared memory
static void special(Machine& M, Warp& W, u8* R, const MicroOp& op) {
  const u64 value = read_special(M, W, op.operands[0], op.operands[3]);
  if (op.operands[2] == 8) ACTIVE(W.active, ((u64*)OPERAND(1))[l] = value)
  else ACTIVE(W.active, WORDS(1)[l] = (u32)value)
}

static const Family special_registers{{"special", special}};
