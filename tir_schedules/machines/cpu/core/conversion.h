// Conversions of one lane.
#pragma once
#include "numeric.h"

static inline f32 round_to_tf32(f32 f) {  // to nearest, ties away from zero
  return bits<f32>(f != f ? 0x7fffe000u : (bits<u32>(f) + 0x1000u) & 0xffffe000u);
}
// Conversion of a rounded value to an integer type with limits lo and hi; saturates, NaN gives `nan`.
template <class T> static inline T to_integer(f64 value, f64 lo, f64 hi, u64 nan) {
  if (value != value) return T(nan);
  if (value <= lo) return T(lo);
  if (value < hi) return T(value);
  return T(-1) < T(0) ? T(((u64)1 << (8 * sizeof(T) - 1)) - 1) : T(-1);
}
