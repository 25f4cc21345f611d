// All accesses of one block to shared and global memory, each once with how often it was made; and what such
// accesses would cost at other addresses, by the rules that count them.
#include "exec/machine.h"

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
static Record started(Machine& M, const Counted& counted) {
  return {(u32)counted.counter, NONE, counted.counting, (u32)M.warp, counted.mask, 0, counted.width, 1,
          counted.cost, counted.ideal, 0, 0, {0}, {0}};
}
void record_access(Machine& M, const Counted& counted, const u32* address, s32 source_counter,
                   const u64* source, u32 reads, u32 source_cost) {
  if (!M.watch->records) return;
  Record record = started(M, counted);
  record.source_counter = source_counter, record.reads = reads, record.source_cost = source_cost;
  ACTIVE(counted.mask, record.address[l] = address[l])
  ACTIVE(reads, record.source[l] = source[l])
  keep(*M.watch, record);
}
void record_access(Machine& M, const Counted& counted, const u64* address) {
  if (!M.watch->records) return;
  Record record = started(M, counted);
  ACTIVE(counted.mask, record.address[l] = address[l])
  keep(*M.watch, record);
}

// What each record would cost with the addresses that it has now, in `cost` and `source_cost`.
extern "C" void recounted(Record* records, u64 count) {
  for (u64 k = 0; k < count; ++k) {
    Record& record = records[k];
    u32 address[32];
    LANES(address[l] = (u32)record.address[l])
    int phases = 0;
    switch (record.counting) {
      case LOAD_COUNT:
      case STORE_COUNT:
        record.cost = shared_wavefronts(address, record.mask, record.width, record.counting == STORE_COUNT,
                                        phases);
        break;
      case ROWS_COUNT:
        record.cost = row_wavefronts(address, __builtin_popcount(record.mask) / 8);
        break;
      case GLOBAL_COUNT:
        record.cost = global_sectors(record.address, record.mask, record.width);
        break;
      default: {
        const CopyCost made = copy_cost(address, record.source, record.mask, record.reads, record.width,
                                        record.counting == BYPASS_COUNT);
        record.cost = made.wavefronts, record.source_cost = made.sectors;
      }
    }
  }
}
