// Conversions of one lane.
#pragma once
#include "lanes/numeric.h"

// float32 with 10 bits of mantissa: ties go away from zero, ties go to even, the rest is cut off. With ties
// away from zero a GPU only cuts a NaN off.
static inline f32 round_to_tf32(f32 f) {
  return bits<f32>((f != f ? bits<u32>(f) : bits<u32>(f) + 0x1000u) & 0xffffe000u);
}
static inline f32 round_to_tf32_even(f32 f) {
  const u32 pattern = bits<u32>(f);
  return bits<f32>(f != f ? 0x7fffe000u : (pattern + 0xfffu + (pattern >> 13 & 1)) & 0xffffe000u);
}
static inline f32 truncate_to_tf32(f32 f) { return bits<f32>(f != f ? 0x7fffe000u : bits<u32>(f) & 0xffffe000u); }
// Conversion of a rounded value to an integer type with limits lo and hi; saturates, NaN gives `nan`.
template <class T> static inline T to_integer(f64 value, f64 lo, f64 hi, u64 nan) {
  if (value != value) return T(nan);
  if (value <= lo) return T(lo);
  if (value < hi) return T(value);
  return T(-1) < T(0) ? T(((u64)1 << (8 * sizeof(T) - 1)) - 1) : T(-1);
}
static inline s64 within(s128 value, s64 lo, u64 hi) {
  return value < lo ? lo : value > (s128)hi ? (s64)hi : (s64)value;
}
// A half or bfloat16 of a float64, rounded down (mode -1), up (+1) or towards zero (0).
template <f32 WIDEN(u16), u16 NARROW(f32)> static inline u16 directed_half(f64 exact, int mode) {
  const u16 pattern = NARROW(round_to_odd(exact));
  const f64 rounded = WIDEN(pattern);
  const bool negative = pattern >> 15;
  const bool down = mode < 0 || (mode == 0 && !negative), up = mode > 0 || (mode == 0 && negative);
  if (down && rounded > exact) return negative ? pattern + 1 : pattern - 1;
  if (up && rounded < exact) return negative ? pattern - 1 : pattern + 1;
  return pattern;
}
static inline f32 limited(f32 value, f32 limit) {  // a NaN stays one
  return value > limit ? limit : value < -limit ? -limit : value;
}
// ---- 8-bit floats: MANTISSA bits, exponents from BIAS on; too large becomes the largest ---
template <int MANTISSA, int BIAS> static inline u8 to_float8(f32 value, bool relu) {
  const f32 largest = MANTISSA == 3 ? 448 : 57344;
  if (value != value) return 0x7f;
  if (relu && std::signbit(value)) return 0;
  const u8 sign = std::signbit(value) ? 0x80 : 0;
  const f64 size = std::fabs(value);
  if (size > largest) return sign | (MANTISSA == 3 ? 0x7e : 0x7b);
  const int exponent = size > 0 ? greatest(std::ilogb(size), 1 - BIAS) : 1 - BIAS;
  const int steps = (int)std::rint(std::ldexp(size, MANTISSA - exponent));
  return sign | u8(((exponent + BIAS - 1) << MANTISSA) + steps);
}
template <int MANTISSA, int BIAS> static inline f32 from_float8(u8 pattern) {
  const int exponent = (pattern & 0x7f) >> MANTISSA, mantissa = pattern & ((1 << MANTISSA) - 1);
  f32 value = exponent ? std::ldexp(1.f + std::ldexp((f32)mantissa, -MANTISSA), exponent - BIAS)
                       : std::ldexp((f32)mantissa, 1 - BIAS - MANTISSA);
  if (MANTISSA == 3 && (pattern & 0x7f) == 0x7f) value = NAN;
  if (MANTISSA == 2 && exponent == 31) value = mantissa ? NAN : INFINITY;
  return pattern & 0x80 ? -value : value;
}
