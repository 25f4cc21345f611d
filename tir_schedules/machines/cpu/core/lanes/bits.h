// Bit operations of one lane.
#pragma once
#include "lanes/numeric.h"

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
// A position or length of a field: of 32 bits its low byte, of 64 bits all of it, as GPUs take them.
template <class T> static inline u32 field_bound(u32 bound) {
  return sizeof(T) == 8 ? least(bound, 64u) : bound & 255;
}
template <class T> static inline T insert_field(T field, T into, u32 position, u32 length) {
  const u32 width = 8 * sizeof(T);
  position = field_bound<T>(position), length = field_bound<T>(length);
  if (position >= width) return into;
  T mask = (length >= width ? ~T(0) : (T(1) << length) - 1) << position;
  return ((field << position) & mask) | (into & ~mask);
}
// Extends the sign of a signed T.
template <class T> static inline T extract_field(T value, u32 position, u32 length) {
  typedef std::conditional_t<sizeof(T) == 8, u64, u32> Bits;
  const u32 width = 8 * sizeof(T);
  position = field_bound<T>(position), length = field_bound<T>(length);
  if (!length) return 0;
  bool negative = T(-1) < T(0) && (Bits)value >> least(position + length - 1, width - 1) & 1;
  Bits field = position >= width ? 0 : (Bits)value >> position,
       mask = length >= width ? ~Bits(0) : (Bits(1) << length) - 1;
  if (!negative) return field & mask;
  if (position + length > width) mask &= position >= width ? 0 : ~Bits(0) >> position;
  return (field & mask) | ~mask;
}
// The modes of prmt in which the low two bits of the selector choose a pattern of bytes.
enum PermuteMode { F4E, B4E, RC8, ECL, ECR, RC16 };
static inline u32 permute_by_mode(u32 a, u32 b, u32 selector, int mode) {
  const int n = selector & 3;
  u32 picks = 0;
  for (int k = 0; k < 4; ++k) {
    const int by_mode[] = {n + k, (n - k) & 7, n, greatest(k, n), least(k, n), (n & 1) * 2 + (k & 1)};
    picks |= by_mode[mode] << 4 * k;
  }
  return permute_bytes(a, b, picks);
}
template <class T> static inline T reverse_bits(T x) {
  const int width = 8 * sizeof(T);
  T result = 0;
  for (int k = 0; k < width; ++k) result |= (x >> k & 1) << (width - 1 - k);
  return result;
}
template <class T> static inline u32 find_highest(T x, bool is_signed, bool shift_amount) {
  const u32 top = 8 * sizeof(T) - 1;
  if (is_signed && x >> top) x = ~x;
  if (!x) return ~0u;
  const u32 position = 63 - __builtin_clzll(x);
  return shift_amount ? top - position : position;
}
// Where the nth bit that is set lies, from bit `base` on; upwards, or downwards where n is negative.
static inline u32 find_nth(u32 mask, u32 base, s32 n) {
  if (n == 0) return base < 32 && mask >> base & 1 ? base : ~0u;
  s64 left = n < 0 ? -(s64)n : n;
  for (s64 k = (s32)base; k >= 0 && k < 32; k += n < 0 ? -1 : 1)
    if (mask >> k & 1 && --left == 0) return k;
  return ~0u;
}
static inline u32 bit_mask(u32 position, u32 length, bool clamp) {
  if (clamp && position >= 32) return 0;
  const u32 first = position & 31, count = clamp ? least(length, 32u) : length & 31;
  return u32((((u64)1 << count) - 1) << first);
}
static inline u32 extend_sign_or_zeros(u32 value, u32 width, bool is_signed, bool clamp) {
  if (clamp && width >= 32) return value;
  width &= 31;
  if (!width) return 0;
  const u32 at_top = value << (32 - width);
  return is_signed ? u32((s32)at_top >> (32 - width)) : at_top >> (32 - width);
}
