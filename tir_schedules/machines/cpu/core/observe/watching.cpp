// What is kept of one block: the requests of one of its warps to shared memory, in order, as they are counted; and
// what its units and mbarriers do.
#include "cost/cost.h"
#include "observe/observer.h"

bool is_watched(const Machine& M, const Watch& watch) { return !memcmp(M.cta->index, watch.block, sizeof watch.block); }

// ---- requests ---
// The next one; nullptr where it is not kept.
static Request* next_request(const Machine& M, Watch& watch, s32 counter, u32 lanes, u32 width, u32 cost, u32 ideal,
                             const u32* address) {
  if (!is_watched(M, watch) || M.warp != (int)watch.warp || watch.met++ >= watch.limit) return nullptr;
  Request& request = watch.requests[watch.held++];
  request = {(u32)counter, lanes, width, cost, ideal, {0}, {0}};
  ACTIVE(lanes, request.address[l] = address[l])
  return &request;
}
void KeepRequests::on(const Machine& M, const SharedAccess& made) {
  ALIGNED u32 addresses[32];
  SharedAccess access = made;
  if (!merge(M, access, addresses)) return;
  const SharedCost cost = shared_cost(access.address, access.lanes, access.width, access.store);
  next_request(M, watch, access.counter, access.lanes, access.width, cost.wavefronts, cost.phases, access.address);
}
void KeepRequests::on(const Machine& M, const MatrixRows& access) {
  const u32 lanes = access.lanes();
  next_request(M, watch, access.counter, lanes, 16, row_wavefronts(access.rows, access.matrices), access.matrices,
               access.rows);
}
// What now lies at the addresses of the requests that the instruction made.
void KeepRequests::on_performed(const Machine& M) {
  const u32 shared_bytes = M.launch.shared_bytes;
  for (; watch.valued < watch.held; ++watch.valued) {
    Request& request = watch.requests[watch.valued];
    ACTIVE(request.mask, {
      const u32 from = request.address[l];
      if (from < shared_bytes)
        memcpy(&request.value[l], M.cta->shared + from, least<u32>(4, shared_bytes - from));
    })
  }
}
// A cp.async, which is under way: what it will leave there.
void KeepRequests::on(const Machine& M, const AsyncCopies& c) {
  u32 lanes = 0;
  for (u64 k = 0; k < c.count; ++k) lanes |= 1u << c.copies[k].lane;
  if (!lanes) return;
  const CopyCost cost = copy_cost(c.target, c.source, c.lanes, c.reads, c.width, c.bypass);
  Request* request =
      next_request(M, watch, c.counter, lanes, c.width, cost.wavefronts, cost.ideal_wavefronts, c.target);
  if (!request) return;
  ++watch.valued;
  for (u64 k = 0; k < c.count; ++k) memcpy(&request->value[c.copies[k].lane], c.copies[k].data, 4);
}

// ---- what units do: a launch that is watched runs no other blocks than those of one cluster ---
void KeepUnitEvents::on(const Machine& M, const UnitEvent& made) {
  if (is_watched(M, watch)) watch.rank = M.cta->rank;
  const u32 number = watch.events_met++;
  if (number >= watch.event_limit) return;
  Event& kept = watch.events[number];
  kept = made.event;
  kept.actor = M.cta->rank, kept.place = made.place.rank;
  for (Moved moved : made.moved) {
    if (watch.moved_held == watch.moved_limit) return;
    moved.event = number;
    watch.moved[watch.moved_held++] = moved;
  }
}
