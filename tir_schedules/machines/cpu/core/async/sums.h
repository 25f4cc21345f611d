// Sums of floats of a wgmma, with the bits of an H200.
#pragma once
#include "lanes/lanes.h"

// B of a product, and the exponents of its elements.
const u32 MOST_K = 32, MOST_COLUMNS = 256;
struct RightFactors {
  u32 depth, columns;
  ALIGNED f32 values[MOST_K][MOST_COLUMNS];
  ALIGNED s32 exponents[MOST_K][MOST_COLUMNS];

  void find_exponents(s32 lowest);
};
// kept: bits of a term behind the leading one of the largest; halves: whether sums are in float16.
struct Rounding {
  s32 kept;
  bool halves;
  u32 digits() const { return least(kept, 23); }
};
// Adds the products of a row of A to each of its sums, which become float32, or what rounds to the right
// float16. lowest: the least exponent of a number of A's type, which subnormal ones have, too.
void add_products(const f32* left, s32 lowest, const RightFactors&, const Rounding&, f32* sums);
