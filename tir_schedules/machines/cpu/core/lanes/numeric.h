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
typedef unsigned __int128 u128;
typedef __int128 s128;
typedef float f32;
typedef double f64;
typedef __float128 quad;

template <class T, class S> static inline T bits(S value) { return __builtin_bit_cast(T, value); }
template <class T> struct Pattern;  // unsigned integer of the same width
template <> struct Pattern<f32> { typedef u32 type; };
template <> struct Pattern<f64> { typedef u64 type; };
template <> struct Pattern<quad> { typedef u128 type; };
template <class T> static inline auto pattern(T value) { return bits<typename Pattern<T>::type>(value); }

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
  const u16 h = __builtin_ia32_vcvtps2ph(v, 0)[0];
  return f != f ? 0x7fff : h;
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
  if (magnitude > 0x7f800000u) return 0x7fff;
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
template <class T> static inline T float_min(T a, std::common_type_t<T> b) {
  return a == b ? bits<T>(pattern(a) | pattern(b)) : a < b || b != b ? a : b;
}
template <class T> static inline T float_max(T a, std::common_type_t<T> b) {
  return a == b ? bits<T>(pattern(a) & pattern(b)) : a > b || b != b ? a : b;
}

// ---- rounding ---
// A wider result rounded to N: mode -1 down, +1 up, 0 towards zero.
template <class N, class W> static inline N round_directed(W exact, int mode) {
  const N rounded = (N)exact;
  const W back = rounded, size = back < 0 ? -back : back, whole = exact < 0 ? -exact : exact;
  if (mode < 0 && back > exact) return std::nextafter(rounded, (N)-INFINITY);
  if (mode > 0 && back < exact) return std::nextafter(rounded, (N)INFINITY);
  if (mode == 0 && size > whole) return std::nextafter(rounded, (N)0);
  return rounded;
}
// The N that rounds to a narrower type as the wider result itself would: inexact results are odd.
template <class N = f32, class W> static inline N round_to_odd(W exact) {
  const N truncated = round_directed<N>(exact, 0);
  return (W)truncated == exact || exact != exact ? truncated : bits<N>(pattern(truncated) | 1);
}
// a + b as the W that rounds to a type of half its digits, in any direction, as the sum itself would.
template <class W> static inline W odd_sum(W a, W b) {
  const W sum = a + b, part = sum - a, error = (a - (sum - part)) + (b - part);
  const auto own = pattern(sum);
  if (!(error > 0 || error < 0) || own & 1) return sum;
  return bits<W>((error > 0) == (sum > 0) ? own + 1 : own - 1);
}
// Down is up of the negated, which makes 1 - 1 a -0.
template <class N, class W> static inline N directed_sum(W a, W b, int mode) {
  return mode < 0 ? -round_directed<N>(odd_sum<W>(-a, -b), 1) : round_directed<N>(odd_sum<W>(a, b), mode);
}
static inline f32 flush(f32 x) { return fabsf(x) < 0x1p-126f ? copysignf(0.f, x) : x; }
static inline f64 flush(f64 x) { return fabs(x) < 0x1p-1022 ? copysign(0., x) : x; }
static inline u16 flush_f16(u16 h) { return h & 0x7c00 ? h : h & 0x8000; }
static inline u16 flush_bf16(u16 h) { return h & 0x7f80 ? h : h & 0x8000; }
// Negative results become 0; a NaN stays one.
template <class T> static inline T rectify(T x) { return x > 0 || x != x ? x : T(0); }
