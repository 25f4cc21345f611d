// Wavefronts of shared memory (32 banks of 4 bytes), sectors of global memory.
//
// A shared wavefront serves one word per bank, to any number of lanes. A request is split into phases first: the whole
// warp up to 4 bytes per lane, half warps for 8, quarter warps for 16. Loads may do with half as many phases: when
// every active lane t asks for the address of lane t^1, or every one for that of t^2, two phases are one (the "pair"
// rule). Stores never do (the "quarter" rule). All rules here are those that Nsight Compute's counters follow on an
// H200.
#include <algorithm>
#include "cost/cost.h"

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
SharedCost shared_cost(const u32* address, u32 mask, u32 width, bool store) {
  const int words = width <= 4 ? 1 : width / 4;
  int lanes = 32 / words;
  if (!store && words > 1 && lanes_pair(address, mask)) lanes *= 2;
  SharedCost cost{0, 0};
  for (int first = 0; first < 32; first += lanes) {
    u32 asked[64];
    int count = 0;
    for (int l = first; l < first + lanes; ++l)
      if (mask >> l & 1)
        for (int q = 0; q < words; ++q) asked[count++] = (address[l] >> 2) + q;
    if (!count) continue;
    cost.wavefronts += conflict_degree(asked, count), cost.phases++;
  }
  return cost;
}
u32 row_wavefronts(const u32* rows, int matrices) {
  u32 cost = 0;
  for (int k = 0; k < matrices; ++k) {
    u32 words[32];
    for (int l = 0; l < 32; ++l) words[l] = (rows[k * 8 + l / 4] >> 2) + l % 4;
    cost += conflict_degree(words, 32);
  }
  return cost;
}
GlobalCost global_cost(const u64* address, u32 mask, u32 width) {
  u64 sorted[32];
  int count = 0;
  ACTIVE(mask, sorted[count++] = address[l])
  if (!std::is_sorted(sorted, sorted + count)) std::sort(sorted, sorted + count);
  u64 bytes = 0, sectors = 0, next = 0;  // next: the first sector that is not counted
  for (int k = 0; k < count; ++k) {
    const u64 first = greatest(sorted[k] >> 5, next), end = ((sorted[k] + width - 1) >> 5) + 1;
    bytes += k ? least<u64>(sorted[k] - sorted[k - 1], width) : width;
    if (end > first) sectors += end - first, next = end;
  }
  return {(u32)sectors, (u32)bytes};
}
