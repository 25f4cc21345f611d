// Sums of floats of a wgmma, with the bits of an H200: it adds all products of an element and what they are
// added to at once. Products are exact. Each term is cut to so many bits behind the leading one of the
// largest, where the exponent of a product is the sum of its factors'. The sum of these is exact, and is cut to
// the digits of a float32 (of 8-bit floats: to as many as terms have), or rounded to a float16.
#include <cmath>
#include "async/sums.h"

const s32 OF_ZERO = -4096, OF_INFINITY = 1 << 20;  // exponents
const s32 FAR = 100;  // where a float32 may not hold a product, or the unit of its sum
// As many as a register holds: g++ makes slow code of more.
#if defined(__AVX512F__)
const u32 WIDE = 16;
#elif defined(__AVX2__)
const u32 WIDE = 8;
#else
const u32 WIDE = 4;
#endif
typedef s32 Integers __attribute__((vector_size(4 * WIDE)));
typedef f32 Floats __attribute__((vector_size(4 * WIDE)));
typedef s32 HalfOfIntegers __attribute__((vector_size(2 * WIDE)));
typedef f32 HalfOfFloats __attribute__((vector_size(2 * WIDE)));
typedef f64 Doubles __attribute__((vector_size(4 * WIDE)));
typedef u64 Patterns __attribute__((vector_size(4 * WIDE)));

static inline Integers integers(Floats values) { return __builtin_convertvector(values, Integers); }
// Half of the values of a vector.
template <class Half, class T> static inline Doubles doubles(const T& values, u32 half) {
  return __builtin_convertvector(((const Half*)&values)[half], Doubles);
}
static inline Integers exponents_of(Floats values, s32 lowest) {
  const Integers sizes = (Integers)values & 0x7fffffff, fields = sizes >> 23;
  const Integers of_finite = (fields > lowest + 127 ? fields : fields * 0 + lowest + 127) - 127;
  const Integers of_numbers = fields < 255 ? of_finite : fields * 0 + OF_INFINITY;
  return sizes != 0 ? of_numbers : fields * 0 + OF_ZERO;
}
void RightFactors::find_exponents(s32 lowest) {
  for (u32 k = 0; k < depth; ++k)
    for (u32 column = 0; column < columns; column += WIDE)
      *(Integers*)&exponents[k][column] = exponents_of(*(const Floats*)&values[k][column], lowest);
}
static inline f64 cut(f64 value, u32 digits) { return bits<f64>(bits<u64>(value) & ~0ull << (52 - digits)); }

// One sum of numbers of any size, infinity and NaN among them. most: the largest exponent of its terms.
static f32 sum_of(const f32* left, const RightFactors& B, u32 column, f32 before, s32 most, const Rounding& r) {
  if (most < OF_ZERO / 2) return 0;
  f64 plain = before;
  s64 units = (s64)std::ldexp((f64)before, r.kept - most);
  for (u32 k = 0; k < B.depth; ++k) {
    const f64 product = (f64)left[k] * B.values[k][column];
    plain += product, units += (s64)std::ldexp(product, r.kept - most);
  }
  if (!std::isfinite(plain)) return plain;
  const f64 sum = std::ldexp((f64)units, most - r.kept);
  if (std::fabs(sum) >= 0x1p128) return sum;
  return round_directed<f32>(r.halves ? sum : cut(sum, r.digits()), 0);
}
// float32 that keep so many digits, or round to a float16 as the sums themselves do.
static inline HalfOfFloats rounded(Doubles sums, const Rounding& r) {
  const u64 last = 1ull << 29, rest = last - 1;  // of a float32
  Patterns patterns = (Patterns)sums;
  if (r.halves) patterns = (patterns & ~rest) | (((patterns & rest) + rest) & last);
  else patterns &= ~0ull << (52 - r.digits());
  return __builtin_convertvector((Doubles)patterns, HalfOfFloats);
}
void add_products(const f32* left, s32 lowest, const RightFactors& B, const Rounding& r, f32* sums) {
  s32 exponents[MOST_K];
  for (u32 k = 0; k < MOST_K; k += WIDE) {
    const Integers some = exponents_of(*(const Floats*)(left + k), lowest);
    memcpy(exponents + k, &some, sizeof some);
  }
  for (u32 first = 0; first < B.columns; first += WIDE) {
    const Floats before = *(const Floats*)(sums + first);
    Integers most = exponents_of(before, r.halves ? -14 : -126);
    for (u32 k = 0; k < B.depth; ++k) {
      const Integers exponent = *(const Integers*)&B.exponents[k][first] + exponents[k];
      most = most > exponent ? most : exponent;
    }
    Integers near = most < FAR ? most : most * 0 + FAR;
    near = near > -FAR ? near : near * 0 - FAR;
    const Floats scale = (Floats)((r.kept - near + 127) << 23), unit = (Floats)((near - r.kept + 127) << 23);
    Integers units = {};
    for (u32 k = 0; k < B.depth; ++k)
      units += integers(*(const Floats*)&B.values[k][first] * left[k] * scale);
    const Integers units_before = integers(before * scale);
    for (u32 half = 0; half < 2; ++half) {
      const Doubles sum = doubles<HalfOfIntegers>(units, half) + doubles<HalfOfIntegers>(units_before, half);
      ((HalfOfFloats*)(sums + first))[half] = rounded(sum * doubles<HalfOfFloats>(unit, half), r);
    }
    const Integers far = near ^ most;
    u32 any = 0;
    for (u32 i = 0; i < WIDE; ++i) any |= far[i];
    for (u32 i = 0; any && i < WIDE && first + i < B.columns; ++i)
      if (far[i]) sums[first + i] = sum_of(left, B, first + i, before[i], most[i], r);
  }
}
