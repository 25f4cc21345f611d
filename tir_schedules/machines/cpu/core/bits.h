// Bit operations of one lane.
#pragma once
#include "numeric.h"

static inline u32 permute_bytes(u32 a, u32 b, u32 selector) {
  u64 source = (u64)b << 32 | a;
  u32 result = 0;
  for (int k = 0; k < 4; ++k) {
    u32 pick = selector >> 4 * k & 15, byte = source >> (pick & 7) * 8 & 255;
    if (pick & 8) byte = byte & 128 ? 255 : 0;
    result |= byte << 8 * k;
  }
  return result;
}
static inline u32 logic3(u32 a, u32 b, u32 c, int table) {
  u32 result = 0;
  for (int k = 0; k < 8; ++k)
    if (table >> k & 1) result |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
  return result;
}
template <class T> static inline T insert_field(T field, T into, u32 position, u32 length) {
  const u32 width = 8 * sizeof(T);
  position &= 255, length &= 255;
  if (position >= width) return into;
  T mask = (length >= width ? ~T(0) : (T(1) << length) - 1) << position;
  return ((field << position) & mask) | (into & ~mask);
}
// Extends the sign of a signed T.
template <class T> static inline T extract_field(T value, u32 position, u32 length) {
  typedef std::conditional_t<sizeof(T) == 8, u64, u32> Bits;
  const u32 width = 8 * sizeof(T);
  position &= 255, length &= 255;
  if (!length) return 0;
  bool negative = T(-1) < T(0) && (Bits)value >> least(position + length - 1, width - 1) & 1;
  Bits field = position >= width ? 0 : (Bits)value >> position,
       mask = length >= width ? ~Bits(0) : (Bits(1) << length) - 1;
  if (!negative) return field & mask;
  if (position + length > width) mask &= position >= width ? 0 : ~Bits(0) >> position;
  return (field & mask) | ~mask;
}
static inline u32 reverse_bits(u32 x) {
  u32 result = 0;
  for (int k = 0; k < 32; ++k) result |= (x >> k & 1) << (31 - k);
  return result;
}
static inline u32 find_highest(u32 x, bool is_signed, bool shift_amount) {
  if (is_signed && (s32)x < 0) x = ~x;
  if (!x) return ~0u;
  u32 position = 31 - __builtin_clz(x);
  return shift_amount ? 31 - position : position;
}
