// The shared-memory requests of one warp of one block, in order, as they are counted.
#include "exec/machine.h"

void watch_request(Machine& M, s32 counter, const u32* address, u32 mask, u32 width, u64 cost, u64 ideal) {
  Watch& watch = *M.watch;
  if (M.warp != (int)watch.warp || watch.met++ >= watch.limit) return;
  Request& request = watch.requests[watch.held++];
  request = {(u32)counter, mask, width, (u32)cost, (u32)ideal, {0}, {0}};
  ACTIVE(mask, request.address[l] = address[l])
}
// Called when the instruction is done: what now lies at the addresses of the requests it made.
void watch_values(Machine& M) {
  Watch& watch = *M.watch;
  for (; watch.valued < watch.held; ++watch.valued) {
    Request& request = watch.requests[watch.valued];
    ACTIVE(request.mask, {
      const u32 from = request.address[l];
      if (from < M.shared_bytes)
        memcpy(&request.value[l], M.shared + from, least<u32>(4, M.shared_bytes - from));
    })
  }
}
// A cp.async, which is in flight: what it will leave there. before: its counter before it was counted.
void watch_copies(Machine& M, s32 counter, const Counter& before, const std::vector<AsyncCopy>& copies,
                  u64 first) {
  u32 address[32], mask = 0;
  for (u64 k = first; k < copies.size(); ++k)
    address[copies[k].lane] = copies[k].target, mask |= 1u << copies[k].lane;
  if (!mask) return;
  Watch& watch = *M.watch;
  const Counter& after = M.counters[counter];
  watch_request(M, counter, address, mask, copies[first].bytes, after.cost - before.cost,
                after.ideal - before.ideal);
  if (watch.valued == watch.held) return;
  Request& request = watch.requests[watch.valued++];
  for (u64 k = first; k < copies.size(); ++k) memcpy(&request.value[copies[k].lane], copies[k].data, 4);
}

// ---- what units do ---
// A launch that is watched runs no other blocks than those of one cluster.
u32 note_event(Machine& M, const Event& event, const Cta& place) {
  if (!M.watched || !M.watched->events) return NONE;
  Watch& watch = *M.watched;
  if (M.watch) watch.rank = M.cta->rank;
  const u32 number = watch.events_met++;
  if (number >= watch.event_limit) return NONE;
  Event& kept = watch.events[number];
  kept = event;
  kept.actor = M.cta->rank, kept.place = place.rank;
  return number;
}
void note_moved(Machine& M, const Moved& moved) {
  if (moved.event == NONE) return;
  Watch& watch = *M.watched;
  if (watch.moved_held < watch.moved_limit) watch.moved[watch.moved_held++] = moved;
}
