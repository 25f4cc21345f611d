// Arithmetic of one lane that C++ has no operator for.
#pragma once
#include "lanes/numeric.h"

template <class T> static inline T divide(T a, T b) {  // what a GPU gives where C++ has no answer
  if (b == 0) return T(-1);
  return T(-1) < T(0) && b == T(-1) ? T(0 - (u64)a) : T(a / b);
}
template <class T> static inline T remainder_of(T a, T b) {
  if (b == 0) return T(-1);
  return T(-1) < T(0) && b == T(-1) ? T(0) : T(a % b);
}
static inline s32 saturate(s64 x) { return x < INT32_MIN ? INT32_MIN : x > INT32_MAX ? INT32_MAX : s32(x); }

// ---- parts of registers ---
static inline s32 part(u32 x, int bit, int width, bool is_signed) {
  const u32 at_top = x << (32 - width - bit);
  return is_signed ? (s32)at_top >> (32 - width) : s32(at_top >> (32 - width));
}
static inline s32 dot4(u32 a, u32 b, s32 c, bool signed_a, bool signed_b) {
  for (int k = 0; k < 32; k += 8) c += (u32)part(a, k, 8, signed_a) * (u32)part(b, k, 8, signed_b);
  return c;
}
// Two 16-bit parts of a by two bytes of b, from bit `from` on.
static inline s32 dot2(u32 a, u32 b, s32 c, bool signed_a, bool signed_b, int from) {
  for (int k = 0; k < 2; ++k)
    c += (u32)part(a, 16 * k, 16, signed_a) * (u32)part(b, from + 8 * k, 8, signed_b);
  return c;
}
// |a - b| of each part of `width` bits: side by side, or their sum added to c.
static inline u32 part_differences(u32 a, u32 b, u32 c, int width, bool is_signed, bool sum) {
  u32 result = sum ? c : 0;
  for (int k = 0; k < 32; k += width) {
    const s32 difference = part(a, k, width, is_signed) - part(b, k, width, is_signed);
    const u32 size = difference < 0 ? -difference : difference;
    result += sum ? size : size << k;
  }
  return result;
}
static inline s64 product24(u32 a, u32 b, bool is_signed) {
  return (s64)part(a, 0, 24, is_signed) * part(b, 0, 24, is_signed);
}
enum PartOperation { PART_ADD, PART_MIN, PART_MAX };
static inline u32 pair_of_16(u32 a, u32 b, int operation, bool is_signed, bool relu) {
  u32 result = 0;
  for (int k = 0; k < 32; k += 16) {
    const s32 x = part(a, k, 16, is_signed), y = part(b, k, 16, is_signed);
    s32 z = operation == PART_ADD ? x + y : operation == PART_MIN ? least(x, y) : greatest(x, y);
    if (relu) z = greatest(z, 0);
    result |= (u32)(u16)z << k;
  }
  return result;
}

// ---- floats ---
template <class T> static inline T either_nan(T a, T b, T result) { return a != a || b != b ? (T)NAN : result; }
static inline f32 with_xor_of_signs(f32 magnitude, f32 a, f32 b) {
  return bits<f32>(bits<u32>(magnitude) | ((bits<u32>(a) ^ bits<u32>(b)) & 0x80000000u));
}
static inline f64 directed_root(f64 a, int mode) {
  const f64 root = std::sqrt(a);
  const quad square = (quad)root * root;
  if (mode <= 0 && square > a) return std::nextafter(root, 0.);
  return mode > 0 && square < a ? std::nextafter(root, (f64)INFINITY) : root;
}
static inline f32 approximate_quotient(f32 a, f32 b) {  // a divisor that is too large counts as infinite
  return std::fabs(b) > 0x1p126f ? a * std::copysign(0.f, b) : a / b;
}
// The upper half of a float64, which is what the approximations of float64 give.
static inline f64 upper_half(f64 x) { return x != x ? x : bits<f64>(bits<u64>(x) >> 32 << 32); }
