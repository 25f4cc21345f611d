// Special registers that change while a warp runs, or that only a launch knows.
#include "exec/exec.h"

typedef ops::LaunchRegister Which;
// Time goes on with the instructions that the warp issues, and from one reading to the next, so that a loop
// that waits for a time to pass ends. It begins anew with each block.
static u64 now(Warp& W) { return W.clock = greatest(W.clock + 1, W.issued); }
static u64 read_special(Machine& M, Warp& W, Which which, u32 static_shared) {
  switch (which) {
    case Which::CLOCK: case Which::CLOCK64: case Which::GLOBALTIMER: case Which::GLOBALTIMER_LO: return now(W);
    case Which::CLOCK_HI: case Which::GLOBALTIMER_HI: return now(W) >> 32;
    case Which::NWARPID: return (M.threads + 31) / 32;
    case Which::DYNAMIC_SMEM_SIZE: return M.launch.shared_bytes - static_shared;
    case Which::TOTAL_SMEM_SIZE: return (M.launch.shared_bytes + 127) & ~127u;  // as it is allocated
    case Which::CLUSTER_CTARANK: return M.cta->rank;
    case Which::CLUSTER_NCTARANK: return M.cta->cluster->blocks.size();
    case Which::IS_EXPLICIT_CLUSTER: return M.cta->cluster->blocks.size() > 1;
  }
  const u32 name = (u32)which, axis = (name - (u32)Which::CLUSTERID_X) % 3;
  switch ((Which)(name - axis)) {
    case Which::CLUSTERID_X: return M.cta->index[axis] / M.launch.cluster[axis];
    case Which::NCLUSTERID_X: return M.launch.grid[axis] / M.launch.cluster[axis];
    case Which::CLUSTER_CTAID_X: return M.cta->index[axis] % M.launch.cluster[axis];
  }
  return M.launch.cluster[axis];
}
static void execute(Machine& M, Warp& W, const ops::ReadSpecial& op) {
  const u64 value = read_special(M, W, op.which(), op.static_shared());
  u8* result = op.result();
  if (op.bytes() == 8) ACTIVE(W.active, ((u64*)result)[l] = value)
  else ACTIVE(W.active, ((u32*)result)[l] = (u32)value)
}
