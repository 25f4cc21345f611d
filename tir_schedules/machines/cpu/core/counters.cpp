// What an access costs: wavefronts of shared memory (32 banks of 4 bytes) and 32-byte sectors of global memory.
//
// A shared wavefront serves one word per bank, to any number of lanes. A request is split into phases first: the whole warp
// up to 4 bytes per lane, half warps for 8, quarter warps for 16. Loads may do with half as many phases: when every active
// lane t asks for the address of lane t^1, or every one for that of t^2, two phases are one (the "pair" rule). Stores never
// do (the "quarter" rule). All rules here are those that Nsight Compute's counters follow on an H200.
#include <algorithm>
#include "machine.h"

// The most distinct words that one bank is asked for.
static int conflict_degree(const u32* words, int count) {
  u32 seen[32][64];
  u8 used[32] = {0};
  int worst = 0;
  for (int i = 0; i < count; ++i) {
    const u32 bank = words[i] & 31;
    int k = 0;
    while (k < used[bank] && seen[bank][k] != words[i]) ++k;
    if (k < used[bank]) continue;
    seen[bank][k] = words[i];
    worst = greatest<int>(worst, ++used[bank]);
  }
  return worst;
}
static bool lanes_pair(const u32* address, u32 mask) {
  bool next = true, second = true;
  ACTIVE(mask, {
    if (mask >> (l ^ 1) & 1 && address[l] != address[l ^ 1]) next = false;
    if (mask >> (l ^ 2) & 1 && address[l] != address[l ^ 2]) second = false;
  })
  return next || second;
}
static void add(Counter& counter, u64 cost, u64 ideal) {
  counter.requests++, counter.cost += cost, counter.ideal += ideal;
}

void count_shared(Machine& M, s32 id, const u32* address, u32 mask, u32 width, bool store) {
  if (!mask || id < 0) return;
  ALIGNED u32 merged[32];
  const Merge merge = M.merges[id];
  if (merge.width == NONE) return;   // part of another access, which counts for it
  if (merge.width) {
    LANES(merged[l] = address[l] + merge.offset)
    address = merged, width = merge.width;
  }
  const int words = width <= 4 ? 1 : width / 4;
  int lanes = 32 / words, cost = 0, phases = 0;
  if (!store && words > 1 && lanes_pair(address, mask)) lanes *= 2;
  for (int first = 0; first < 32; first += lanes) {
    u32 asked[64];
    int count = 0;
    for (int l = first; l < first + lanes; ++l)
      if (mask >> l & 1) for (int q = 0; q < words; ++q) asked[count++] = (address[l] >> 2) + q;
    if (!count) continue;
    cost += conflict_degree(asked, count), phases++;
  }
  add(M.counters[id], cost, phases);
}
// ldmatrix: one phase per 8x8 matrix, eight rows of 16 bytes.
void count_rows(Machine& M, s32 id, const u32* rows, int matrices) {
  int cost = 0;
  for (int k = 0; k < matrices; ++k) {
    u32 words[32];
    LANES(words[l] = (rows[k * 8 + l / 4] >> 2) + l % 4)
    cost += conflict_degree(words, 32);
  }
  add(M.counters[id], cost, matrices);
}
void count_global(Machine& M, s32 id, const u64* address, u32 mask, u32 width) {
  if (!mask || id < 0) return;
  u64 sectors[64];
  int count = 0;
  ACTIVE(mask, {
    const u64 first = address[l] >> 5, last = (address[l] + width - 1) >> 5;
    if (!count || sectors[count - 1] != first) sectors[count++] = first;
    if (last != first) sectors[count++] = last;
  })
  if (!std::is_sorted(sectors, sectors + count)) std::sort(sectors, sectors + count);
  add(M.counters[id], std::unique(sectors, sectors + count) - sectors, (__builtin_popcount(mask) * width + 31) / 32);
}

// cp.async through the L1 cache (4 and 8 bytes, .ca): sectors of the source; a wavefront takes lanes, first fit, as long as
// neither side has a bank conflict.
static int passes_through_cache(const u32* target, const u64* source, u32 mask, u32 width) {
  struct Pass { u32 source_banks, target_banks; } passes[32];
  const u32 lanes = 128 / width, banks = (1u << width / 4) - 1;
  int total = 0;
  for (u32 first = 0; first < 32; first += lanes) {
    int used = 0;
    ACTIVE(mask, {
      if ((u32)l / lanes != first / lanes) continue;
      const u32 from = banks << (source[l] >> 2 & 31), to = banks << (target[l] >> 2 & 31);
      int k = 0;
      while (k < used && (passes[k].source_banks & from || passes[k].target_banks & to)) ++k;
      if (k == used) passes[used++] = {0, 0};
      passes[k].source_banks |= from, passes[k].target_banks |= to;
    })
    total += used;
  }
  return total;
}
// Keys seen so far; true when the key is new.
static bool is_new(u64* keys, int& count, u64 key) {
  for (int k = 0; k < count; ++k) if (keys[k] == key) return false;
  keys[count++] = key;
  return true;
}
// cp.async that passes the L1 cache by (16 bytes, .cg). Of lanes with one target, the last counts. Sectors are those of the
// target, apart for each 128-byte line they come from; a wavefront is what goes from one line to one line with its
// 16-byte chunks permuted by one XOR. The former is exact for all probes of an H200, the latter for 50 of 55.
void count_copy(Machine& M, s32 shared_id, s32 global_id, const u32* target, const u64* source, u32 mask, u32 reads,
                u32 width, bool bypass) {
  if (!mask) return;
  const u64 phases = (__builtin_popcount(mask) * width + 127) / 128;
  if (!bypass) {
    add(M.counters[shared_id], passes_through_cache(target, source, mask, width), phases);
    return count_global(M, global_id, source, reads, width);
  }
  u64 sectors[32], moves[32];
  int sector_count = 0, move_count = 0;
  ACTIVE(mask, {
    bool last = true;
    for (int other = l + 1; other < 32; ++other) last &= !(mask >> other & 1 && target[other] == target[l]);
    if (!last) continue;
    if (reads >> l & 1) is_new(sectors, sector_count, (source[l] >> 7) << 16 | target[l] >> 5);
    is_new(moves, move_count, (source[l] >> 7) << 24 | (u64)(target[l] >> 7) << 8 | ((target[l] ^ source[l]) & 0x70));
  })
  add(M.counters[shared_id], move_count, phases);
  if (reads) add(M.counters[global_id], sector_count, (__builtin_popcount(reads) * width + 31) / 32);
}
