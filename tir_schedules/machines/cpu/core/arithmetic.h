// Arithmetic of one lane that C++ has no operator for.
#pragma once
#include "numeric.h"

template <class T> static inline T divide(T a, T b) {  // what a GPU gives where C++ has no answer
  if (b == 0) return T(-1);
  return T(-1) < T(0) && b == T(-1) ? T(0 - (u64)a) : T(a / b);
}
template <class T> static inline T remainder_of(T a, T b) {
  if (b == 0) return T(-1);
  return T(-1) < T(0) && b == T(-1) ? T(0) : T(a % b);
}
static inline s32 dot4(u32 a, u32 b, s32 c, bool signed_a, bool signed_b) {
  for (int k = 0; k < 32; k += 8)
    c += (signed_a ? (s32)(s8)(a >> k) : (s32)(u8)(a >> k)) *
         (signed_b ? (s32)(s8)(b >> k) : (s32)(u8)(b >> k));
  return c;
}
