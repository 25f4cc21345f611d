// Scalar types, halves, minimum and maximum, rounding. Every function is what one lane computes.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
typedef float f32;
typedef double f64;

template <class T, class S> static inline T bits(S value) { return __builtin_bit_cast(T, value); }

// ---- half, bfloat16 and tf32: stored as bits, computed in float32 ---
#if defined(__F16C__)
typedef float four_floats __attribute__((vector_size(16)));
typedef short eight_shorts __attribute__((vector_size(16)));
static inline f32 half_to_float(u16 h) {
  eight_shorts v = {(short)h};
  return __builtin_ia32_vcvtph2ps(v)[0];
}
static inline u16 float_to_half(f32 f) {
  four_floats v = {f};
  return __builtin_ia32_vcvtps2ph(v, 0)[0];
}
#else
static inline f32 half_to_float(u16 h) {
  u32 sign = (h & 0x8000u) << 16, exponent = (h >> 10) & 31, mantissa = h & 1023;
  if (exponent == 31) return bits<f32>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) {
    f32 value = mantissa * 0x1p-24f;
    return sign ? -value : value;
  }
  return bits<f32>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}
static inline u16 float_to_half(f32 f) {
  u32 pattern = bits<u32>(f), sign = (pattern >> 16) & 0x8000u, magnitude = pattern & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | 0x7e00;
  if (magnitude >= 0x477ff000u) return sign | 0x7c00;
  if (magnitude < 0x38800000u) return sign | (bits<u32>(bits<f32>(magnitude) + 0.5f) - bits<u32>(0.5f));
  magnitude += 0xc8000000u + 0xfff + ((magnitude >> 13) & 1);
  return sign | (magnitude >> 13);
}
#endif
static inline u16 float_to_bfloat(f32 f) {
  u32 pattern = bits<u32>(f);
  return f != f ? 0x7fff : (pattern + 0x7fff + ((pattern >> 16) & 1)) >> 16;
}
static inline f32 bfloat_to_float(u16 h) { return bits<f32>((u32)h << 16); }
static inline u32 pack(u16 low, u16 high) { return low | (u32)high << 16; }

// ---- minimum and maximum: a NaN loses against a number, and -0 is less than +0 ---
template <class T> static inline T least(T a, T b) { return a < b ? a : b; }
template <class T> static inline T greatest(T a, T b) { return a > b ? a : b; }
static inline f32 float_min(f32 a, f32 b) {
  return a == b ? bits<f32>(bits<u32>(a) | bits<u32>(b)) : a < b || b != b ? a : b;
}
static inline f32 float_max(f32 a, f32 b) {
  return a == b ? bits<f32>(bits<u32>(a) & bits<u32>(b)) : a > b || b != b ? a : b;
}
static inline f64 float_min(f64 a, f64 b) {
  return a == b ? bits<f64>(bits<u64>(a) | bits<u64>(b)) : a < b || b != b ? a : b;
}
static inline f64 float_max(f64 a, f64 b) {
  return a == b ? bits<f64>(bits<u64>(a) & bits<u64>(b)) : a > b || b != b ? a : b;
}

// ---- rounding ---
// A float64 result rounded to float32: mode -1 down, +1 up, 0 towards zero.
static inline f32 round_directed(f64 exact, int mode) {
  f32 rounded = (f32)exact;
  if (mode < 0 && (f64)rounded > exact) return nextafterf(rounded, -INFINITY);
  if (mode > 0 && (f64)rounded < exact) return nextafterf(rounded, INFINITY);
  if (mode == 0 && fabs((f64)rounded) > fabs(exact)) return nextafterf(rounded, 0.f);
  return rounded;
}
// The float32 that rounds to a narrower type as the float64 itself would: inexact results are odd.
static inline f32 round_to_odd(f64 exact) {
  f32 truncated = round_directed(exact, 0);
  return (f64)truncated == exact || exact != exact ? truncated : bits<f32>(bits<u32>(truncated) | 1);
}
// a + b as the float64 that rounds to float32, in any direction, as the sum itself would.
static inline f64 odd_sum(f64 a, f64 b) {
  const f64 sum = a + b, part = sum - a, error = (a - (sum - part)) + (b - part);
  const u64 pattern = bits<u64>(sum);
  if (!(error > 0 || error < 0) || pattern & 1) return sum;
  return bits<f64>((error > 0) == (sum > 0) ? pattern + 1 : pattern - 1);
}
static inline f32 directed_sum(f64 a, f64 b, int mode) {  // down is up of the negated, which makes 1 - 1 a -0
  return mode < 0 ? -round_directed(odd_sum(-a, -b), 1) : round_directed(odd_sum(a, b), mode);
}
static inline f32 flush(f32 x) { return fabsf(x) < 0x1p-126f ? copysignf(0.f, x) : x; }
