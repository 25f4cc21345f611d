// All accesses of one block to shared and global memory, each once with how often it was made; and what such accesses
// would cost at other addresses.
#include "cost/cost.h"
#include "observe/observer.h"

static u64 hash_of(const Record& record) {
  u64 hash = 14695981039346656037ull;
  const auto mix = [&](u64 value) { hash = (hash ^ value) * 1099511628211ull, hash ^= hash >> 29; };
  mix((u64)record.counter << 32 | record.warp), mix((u64)record.mask << 32 | record.reads);
  ACTIVE(record.mask, mix(record.address[l]), mix(record.source[l]))
  return hash;
}
static bool same_access(const Record& one, const Record& other) {
  return one.counter == other.counter && one.warp == other.warp && one.mask == other.mask &&
         one.reads == other.reads && !memcmp(one.address, other.address, sizeof one.address) &&
         !memcmp(one.source, other.source, sizeof one.source);
}
static void keep(Watch& watch, const Record& record) {
  const u32 places = 2 * watch.record_limit;
  for (u64 at = hash_of(record) % places;; at = at + 1 == places ? 0 : at + 1) {
    if (!watch.slots[at]) {
      if (watch.recorded == watch.record_limit) {
        watch.lost++;
        return;
      }
      watch.records[watch.recorded++] = record;
      watch.slots[at] = watch.recorded;
      return;
    }
    Record& known = watch.records[watch.slots[at] - 1];
    if (!same_access(known, record)) continue;
    known.times++;
    return;
  }
}
static Record started(const Machine& M, s32 counter, Counting rule, u32 lanes, u32 width, u32 cost, u32 ideal) {
  return {(u32)counter, NONE, rule, (u32)M.warp, lanes, 0, width, 1, cost, ideal, 0, 0, {0}, {0}};
}
void RecordAccesses::on(const Machine& M, const SharedAccess& made) {
  ALIGNED u32 addresses[32];
  SharedAccess access = made;
  if (!is_watched(M, watch) || !merge(M, access, addresses)) return;
  const SharedCost cost = shared_cost(access.address, access.lanes, access.width, access.store);
  Record record = started(M, access.counter, access.store ? STORE_COUNT : LOAD_COUNT, access.lanes, access.width,
                          cost.wavefronts, cost.phases);
  ACTIVE(access.lanes, record.address[l] = access.address[l])
  keep(watch, record);
}
void RecordAccesses::on(const Machine& M, const MatrixRows& access) {
  if (!is_watched(M, watch)) return;
  const u32 lanes = access.lanes();
  const u32 cost = row_wavefronts(access.rows, access.matrices);
  Record record = started(M, access.counter, ROWS_COUNT, lanes, 16, cost, access.matrices);
  ACTIVE(lanes, record.address[l] = access.rows[l])
  keep(watch, record);
}
void RecordAccesses::on(const Machine& M, const GlobalAccess& access) {
  if (!is_watched(M, watch) || !access.lanes || access.counter < 0) return;
  const GlobalCost cost = global_cost(access.address, access.lanes, access.width);
  Record record =
      started(M, access.counter, GLOBAL_COUNT, access.lanes, access.width, cost.sectors, cost.ideal());
  ACTIVE(access.lanes, record.address[l] = access.address[l])
  keep(watch, record);
}
void RecordAccesses::on(const Machine& M, const AsyncCopies& c) {
  if (!is_watched(M, watch) || !c.lanes) return;
  const CopyCost cost = copy_cost(c.target, c.source, c.lanes, c.reads, c.width, c.bypass);
  Record record = started(M, c.counter, c.bypass ? BYPASS_COUNT : COPY_COUNT, c.lanes, c.width, cost.wavefronts,
                          cost.ideal_wavefronts);
  record.source_counter = c.global_counter, record.reads = c.reads, record.source_cost = cost.sectors;
  ACTIVE(c.lanes, record.address[l] = c.target[l])
  ACTIVE(c.reads, record.source[l] = c.source[l])
  keep(watch, record);
}

// What each record would cost with the addresses that it has now, in `cost` and `source_cost`.
extern "C" void recounted(Record* records, u64 count) {
  for (u64 k = 0; k < count; ++k) {
    Record& r = records[k];
    u32 address[32];
    LANES(address[l] = (u32)r.address[l])
    switch (r.counting) {
      case LOAD_COUNT:
      case STORE_COUNT: r.cost = shared_cost(address, r.mask, r.width, r.counting == STORE_COUNT).wavefronts; break;
      case ROWS_COUNT: r.cost = row_wavefronts(address, __builtin_popcount(r.mask) / 8); break;
      case GLOBAL_COUNT: r.cost = global_cost(r.address, r.mask, r.width).sectors; break;
      default: {
        const CopyCost cost = copy_cost(address, r.source, r.mask, r.reads, r.width, r.counting == BYPASS_COUNT);
        r.cost = cost.wavefronts, r.source_cost = cost.sectors;
      }
    }
  }
}
