// Scalar types and the arithmetic of PTX that C++ has no operator for. Every function is what one lane computes.
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

// ---- half, bfloat16 and tf32: stored as bits, computed in float32 -------------------------------------------------
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
static inline f32 round_to_tf32(f32 f) {  // to nearest, ties away from zero
  return bits<f32>(f != f ? 0x7fffe000u : (bits<u32>(f) + 0x1000u) & 0xffffe000u);
}
static inline u32 pack(u16 low, u16 high) { return low | (u32)high << 16; }

// ---- minimum and maximum: a NaN loses against a number, and -0 is less than +0 ------------------------------------
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

// ---- integers -----------------------------------------------------------------------------------------------------
template <class T> static inline T divide(T a, T b) {  // what a GPU gives where C++ has no answer
  if (b == 0) return T(-1);
  return T(-1) < T(0) && b == T(-1) ? T(0 - (u64)a) : T(a / b);
}
template <class T> static inline T remainder_of(T a, T b) {
  if (b == 0) return T(-1);
  return T(-1) < T(0) && b == T(-1) ? T(0) : T(a % b);
}
// Conversion of a rounded value to an integer type with limits lo and hi; saturates, NaN gives `nan`.
template <class T> static inline T to_integer(f64 value, f64 lo, f64 hi, u64 nan) {
  if (value != value) return T(nan);
  if (value <= lo) return T(lo);
  if (value < hi) return T(value);
  return T(-1) < T(0) ? T(((u64)1 << (8 * sizeof(T) - 1)) - 1) : T(-1);
}
// A float64 result rounded to float32: mode -1 down, +1 up, 0 towards zero.
static inline f32 round_directed(f64 exact, int mode) {
  f32 rounded = (f32)exact;
  if (mode < 0 && (f64)rounded > exact) return nextafterf(rounded, -INFINITY);
  if (mode > 0 && (f64)rounded < exact) return nextafterf(rounded, INFINITY);
  if (mode == 0 && fabs((f64)rounded) > fabs(exact)) return nextafterf(rounded, 0.f);
  return rounded;
}
// The float32 from which rounding to a narrower type gives what rounding the float64 itself would: inexact results are odd.
static inline f32 round_to_odd(f64 exact) {
  f32 truncated = round_directed(exact, 0);
  return (f64)truncated == exact || exact != exact ? truncated : bits<f32>(bits<u32>(truncated) | 1);
}
// a + b as the float64 from which rounding to float32 in any direction gives what rounding the sum itself would.
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
template <class T> static inline T extract_field(T value, u32 position, u32 length) {  // signed T: sign-extended
  typedef std::conditional_t<sizeof(T) == 8, u64, u32> Bits;
  const u32 width = 8 * sizeof(T);
  position &= 255, length &= 255;
  if (!length) return 0;
  bool negative = T(-1) < T(0) && (Bits)value >> least(position + length - 1, width - 1) & 1;
  Bits field = position >= width ? 0 : (Bits)value >> position, mask = length >= width ? ~Bits(0) : (Bits(1) << length) - 1;
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
static inline s32 dot4(u32 a, u32 b, s32 c, bool signed_a, bool signed_b) {
  for (int k = 0; k < 32; k += 8)
    c += (signed_a ? (s32)(s8)(a >> k) : (s32)(u8)(a >> k)) * (signed_b ? (s32)(s8)(b >> k) : (s32)(u8)(b >> k));
  return c;
}
