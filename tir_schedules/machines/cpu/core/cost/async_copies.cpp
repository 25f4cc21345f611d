// What a cp.async costs: wavefronts of shared memory and sectors of global memory, as Nsight Compute counts
// LDGSTS on an H200.
//
// Found by fitting: exact for every pattern of 16 bytes that was probed, and for every one that the kernels
// here have; for patterns of 4 and 8 bytes where only one side has bank conflicts, and for most others.
#include "cost/cost.h"

static u32 sector_of(u64 address) { return address >> 5 & 3; }  // in its 128-byte line
static u32 half_of(u64 address) { return address >> 4 & 1; }    // in its sector

// Moves of 32-byte sectors between one line of global and one of shared memory, all with the same halves. A
// wavefront makes those that one rotation (target = source + r) or one reflection (target = s - source) of
// the line's four sectors describes.
struct Moves {
  u64 key;
  u8 halves[4][4];  // by sector of the source and of the target
};
static u32 rotations_and_reflections(bool (&left)[4][4]) {
  for (int cost = 0;; ++cost) {
    int rotated[4] = {0}, reflected[4] = {0}, best = 0;
    bool rotate = true;
    u32 amount = 0;
    for (u32 a = 0; a < 4; ++a)
      for (u32 b = 0; b < 4; ++b)
        if (left[a][b]) rotated[(b - a) & 3]++, reflected[(a + b) & 3]++;
    for (u32 k = 0; k < 4; ++k) {
      if (rotated[k] > best) best = rotated[k], amount = k, rotate = true;
      if (reflected[k] > best) best = reflected[k], amount = k, rotate = false;
    }
    if (!best) return cost;
    for (u32 a = 0; a < 4; ++a) left[a][(rotate ? a + amount : amount - a) & 3] = false;
  }
}
// 16 bytes, past the L1 cache (.cg). written: the lanes whose data stay, where several write one target.
static u32 bypass_wavefronts(const u32* target, const u64* source, u32 written) {
  Moves groups[32];
  int count = 0, cost = 0;
  ACTIVE(written, {
    const u64 key =
        (source[l] >> 7) << 32 | (target[l] >> 7) << 1 | (half_of(source[l]) ^ half_of(target[l]));
    int k = 0;
    while (k < count && groups[k].key != key) ++k;
    if (k == count) groups[count++] = {key, {{0}}};
    groups[k].halves[sector_of(source[l])][sector_of(target[l])] |= 1 << half_of(source[l]);
  })
  for (int k = 0; k < count; ++k)
    for (int halves = 1; halves <= 3; ++halves) {
      bool left[4][4];
      for (int a = 0; a < 4; ++a)
        for (int b = 0; b < 4; ++b) left[a][b] = groups[k].halves[a][b] == halves;
      cost += rotations_and_reflections(left);
    }
  return cost;
}
// Where some lanes fill with zeros, that is a store by all lanes besides; and the lanes that read take one
// line per quarter warp.
static u32 lines_beyond_first(const u64* source, u32 reads) {
  int found = 0;
  for (int first = 0; first < 32; first += 8) {
    u64 lines[8];
    int count = 0;
    ACTIVE(reads & 0xffu << first, {
      int k = 0;
      while (k < count && lines[k] != source[l] >> 7) ++k;
      if (k == count) lines[count++] = source[l] >> 7;
    })
    found += greatest(count - 1, 0);
  }
  return found;
}
// 4 and 8 bytes, through the L1 cache (.ca): lanes go in rounds without a bank conflict of their sources, a
// round in wavefronts without one of their targets; neighbouring wavefronts are one where neither side
// objects. A lane that fills with zeros has no source.
static u32 cached_wavefronts(const u32* target, const u64* source, u32 mask, u32 reads, u32 width) {
  const u32 lanes = 128 / width, banks = (1u << width / 4) - 1;
  int cost = 0;
  for (u32 first = 0; first < 32; first += lanes) {
    u32 left = lanes == 32 ? mask : mask & ((1u << lanes) - 1) << first, open_from = NONE, open_to = NONE;
    while (left) {
      u32 round = 0, from = 0;
      ACTIVE(left, {
        const u32 bank = reads >> l & 1 ? banks << (source[l] >> 2 & 31) : 0;
        if (!(from & bank)) round |= 1u << l, from |= bank;
      })
      left &= ~round;
      while (round) {
        u32 taken = 0, to = 0;
        from = 0;
        ACTIVE(round, {
          const u32 bank = banks << (target[l] >> 2 & 31);
          if (to & bank) continue;
          taken |= 1u << l, to |= bank;
          if (reads >> l & 1) from |= banks << (source[l] >> 2 & 31);
        })
        round &= ~taken;
        if (open_from & from || open_to & to) cost++, open_from = from, open_to = to;
        else open_from |= from, open_to |= to;
      }
    }
  }
  return cost;
}
// Sectors of 16-byte copies are those of the target, apart for each 128-byte line they come from.
static u32 bypass_sectors(const u32* target, const u64* source, u32 reads) {
  u64 sectors[32];
  int count = 0;
  ACTIVE(reads, {
    const u64 key = (source[l] >> 7) << 16 | target[l] >> 5;
    int k = 0;
    while (k < count && sectors[k] != key) ++k;
    if (k == count) sectors[count++] = key;
  })
  return count;
}
static u32 last_writers(const u32* target, u32 mask) {
  u32 last = 0;
  ACTIVE(mask, {
    bool overwritten = false;
    for (int other = l + 1; other < 32; ++other)
      overwritten |= mask >> other & 1 && target[other] == target[l];
    if (!overwritten) last |= 1u << l;
  })
  return last;
}
CopyCost copy_cost(const u32* target, const u64* source, u32 mask, u32 reads, u32 width, bool bypass) {
  const u32 last = last_writers(target, mask);
  const u32 ideal = (__builtin_popcount(last) * width + 127) / 128;
  const GlobalCost read = global_cost(source, bypass ? last & reads : reads, width);
  if (!bypass) return {cached_wavefronts(target, source, mask, reads, width), read.sectors, ideal, read.ideal()};
  u32 cost = reads ? bypass_wavefronts(target, source, last & reads) : 0;
  if (reads != mask) cost += shared_cost(target, mask, width, true).wavefronts;
  if (reads && reads != mask) cost += lines_beyond_first(source, reads);
  return {cost, bypass_sectors(target, source, last & reads), ideal, read.ideal()};
}
