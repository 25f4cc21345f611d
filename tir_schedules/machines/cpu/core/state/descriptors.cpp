#include "state/descriptors.h"

Descriptor::Descriptor(u64 bits) {
  auto part = [&](int at) { return u32(bits >> at & 0x3fff) << 4; };
  const u32 spans[] = {0, 128, 64, 32};
  start = part(0), leading = part(16), stride = part(32), base = bits >> 49 & 7, span = spans[bits >> 62];
  reserved = (bits & 0x3ff1c000c000c000ull) != 0;
}
u32 swizzled(u32 address, u32 span, u32 base) {
  const u32 line = (address >> 7) - base;
  return span ? address ^ (line & (span / 16 - 1)) << 4 : address;
}
// piece: of a row along k, 0 or 1.
u32 Descriptor::along_k(u32 row, u32 piece) const {
  const u32 pitch = span ? span : 16, next = span ? 16 : leading;
  return swizzled(start + row / 8 * stride + row % 8 * pitch + piece * next, span, base);
}
// piece: of eight rows (columns of B) that follow one another in memory, for one k.
u32 Descriptor::across(u32 piece, u32 k) const {
  if (!span) return start + piece * stride + k / 8 * leading + k % 8 * 16;
  const u32 wide = span / 16;
  const u32 along = piece % wide * 16 + piece / wide * leading;
  return swizzled(start + along + k % 8 * span + k / 8 * stride, span, base);
}
