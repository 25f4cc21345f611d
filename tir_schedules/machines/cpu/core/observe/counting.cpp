// Counts what each access costs, by the instruction that makes it.
#include "cost/cost.h"
#include "observe/observer.h"

static void add(Counter& to, u64 cost, u64 ideal) { to.requests++, to.cost += cost, to.ideal += ideal; }

bool merge(const Machine& M, SharedAccess& access, u32* addresses) {
  if (!access.lanes || access.counter < 0) return false;
  const Merge merge = M.launch.merges[access.counter];
  if (merge.width == NONE) return false;  // part of another access, which counts for it
  if (merge.width) {
    LANES(addresses[l] = access.address[l] + merge.offset)
    access.address = addresses, access.width = merge.width;
  }
  return true;
}
void CountAccesses::on(const Machine& M, const SharedAccess& made) {
  ALIGNED u32 addresses[32];
  SharedAccess access = made;
  if (!merge(M, access, addresses)) return;
  const SharedCost cost = shared_cost(access.address, access.lanes, access.width, access.store);
  add(counters[access.counter], cost.wavefronts, cost.phases);
}
void CountAccesses::on(const Machine&, const MatrixRows& access) {
  add(counters[access.counter], row_wavefronts(access.rows, access.matrices), access.matrices);
}
void CountAccesses::on(const Machine&, const GlobalAccess& access) {
  if (!access.lanes || access.counter < 0) return;
  const GlobalCost cost = global_cost(access.address, access.lanes, access.width);
  add(counters[access.counter], cost.sectors, cost.ideal());
}
void CountAccesses::on(const Machine&, const AsyncCopies& c) {
  if (!c.lanes) return;
  const CopyCost cost = copy_cost(c.target, c.source, c.lanes, c.reads, c.width, c.bypass);
  add(counters[c.counter], cost.wavefronts, cost.ideal_wavefronts);
  if (c.reads && c.global_counter >= 0) add(counters[c.global_counter], cost.sectors, cost.ideal_sectors);
}
void CountAccesses::on(const Machine&, const BoxCopy& box) {
  if (box.counter >= 0) add(counters[box.counter], box.sectors, (box.bytes + 31) / 32);
}
// A model: pieces of A and of B come from shared memory once for the warpgroup, 128 bytes in a wavefront.
void CountAccesses::on(const Machine& M, const WarpgroupProduct& product) {
  if (product.counter < 0 || M.warp % 4) return;
  const u32 wavefronts = product.rows * 32 / 128;
  add(counters[product.counter], wavefronts, wavefronts);
}
