// What an access costs: wavefronts of shared memory (32 banks of 4 bytes), 32-byte sectors of global memory.
//
// A shared wavefront serves one word per bank, to any number of lanes. A request is split into phases first:
// the whole warp up to 4 bytes per lane, half warps for 8, quarter warps for 16. Loads may do with half as
// many phases: when every active lane t asks for the address of lane t^1, or every one for that of t^2, two
// phases are one (the "pair" rule). Stores never do (the "quarter" rule). All rules here are those that
// Nsight Compute's counters follow on an H200.
#include <algorithm>
#include "exec/machine.h"

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
int shared_wavefronts(const u32* address, u32 mask, u32 width, bool store, int& phases) {
  const int words = width <= 4 ? 1 : width / 4;
  int lanes = 32 / words, cost = 0;
  if (!store && words > 1 && lanes_pair(address, mask)) lanes *= 2;
  for (int first = 0; first < 32; first += lanes) {
    u32 asked[64];
    int count = 0;
    for (int l = first; l < first + lanes; ++l)
      if (mask >> l & 1)
        for (int q = 0; q < words; ++q) asked[count++] = (address[l] >> 2) + q;
    if (!count) continue;
    cost += conflict_degree(asked, count), phases++;
  }
  return cost;
}
void count_shared(Machine& M, s32 id, const u32* address, u32 mask, u32 width, bool store) {
  if (!mask || id < 0) return;
  ALIGNED u32 merged[32];
  const Merge merge = M.merges[id];
  if (merge.width == NONE) return;  // part of another access, which counts for it
  if (merge.width) {
    LANES(merged[l] = address[l] + merge.offset)
    address = merged, width = merge.width;
  }
  int phases = 0;
  const int cost = shared_wavefronts(address, mask, width, store, phases);
  M.counters[id].add(cost, phases);
  if (!M.watch) return;
  watch_request(M, id, address, mask, width, cost, phases);
  record_access(M, {id, store ? STORE_COUNT : LOAD_COUNT, mask, width, (u32)cost, (u32)phases},
                address);
}
// ldmatrix: one phase per 8x8 matrix, eight rows of 16 bytes.
int row_wavefronts(const u32* rows, int matrices) {
  int cost = 0;
  for (int k = 0; k < matrices; ++k) {
    u32 words[32];
    LANES(words[l] = (rows[k * 8 + l / 4] >> 2) + l % 4)
    cost += conflict_degree(words, 32);
  }
  return cost;
}
void count_rows(Machine& M, s32 id, const u32* rows, int matrices) {
  const int cost = row_wavefronts(rows, matrices);
  M.counters[id].add(cost, matrices);
  if (!M.watch) return;
  const u32 mask = matrices == 4 ? NONE : (1u << 8 * matrices) - 1;
  watch_request(M, id, rows, mask, 16, cost, matrices);
  record_access(M, {id, ROWS_COUNT, mask, 16, (u32)cost, (u32)matrices}, rows);
}
int global_sectors(const u64* address, u32 mask, u32 width) {
  u64 sectors[64];
  int count = 0;
  ACTIVE(mask, {
    const u64 first = address[l] >> 5, last = (address[l] + width - 1) >> 5;
    if (!count || sectors[count - 1] != first) sectors[count++] = first;
    if (last != first) sectors[count++] = last;
  })
  if (!std::is_sorted(sectors, sectors + count)) std::sort(sectors, sectors + count);
  return std::unique(sectors, sectors + count) - sectors;
}
void count_global(Machine& M, s32 id, const u64* address, u32 mask, u32 width) {
  if (!mask || id < 0) return;
  const u32 cost = global_sectors(address, mask, width), ideal = (__builtin_popcount(mask) * width + 31) / 32;
  M.counters[id].add(cost, ideal);
  if (M.watch) record_access(M, {id, GLOBAL_COUNT, mask, width, cost, ideal}, address);
}
