// The numbers of a wgmma, and where they lie in shared memory.
#pragma once
#include "exec/machine.h"

// A matrix in shared memory. leading, stride: bytes between its parts; span: bytes of a row over which pieces
// of 16 bytes change places, 0: none; base: in rows of 128 bytes, where the pattern of that begins.
struct Descriptor {
  u32 start, leading, stride, base, span;
  bool reserved;  // whether bits are set that have no meaning

  explicit Descriptor(u64 bits);
  // Bytes after which the swizzle repeats.
  u32 pattern() const { return 8 * span; }
  u32 along_k(u32 row, u32 piece) const;
  u32 across(u32 piece, u32 k) const;
  // Address of each piece of some rows: as many as two for each row.
  template <class F> void pieces(bool lies_across, u32 first, u32 rows, F f) const {
    if (lies_across) {
      for (u32 k = 0; k < 16; ++k)
        for (u32 piece = first / 8; piece < (first + rows) / 8; ++piece) f(across(piece, k));
    } else {
      for (u32 row = first; row < first + rows; ++row)
        for (u32 piece = 0; piece < 2; ++piece) f(along_k(row, piece));
    }
  }
};
// Where a byte of shared memory is in place of its address: pieces of 16 bytes change places by the number of
// their line of 128 bytes.
u32 swizzled(u32 address, u32 span, u32 base = 0);
// Rows of A of one warp, k by k, of what its registers hold.
std::vector<f32> rows_in_registers(const u8* registers, const u32* places, u32 kind);
// ---- sums of floats: sums.cpp --- B of a product, and the exponents of its elements.
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
void execute(const Machine&, const Product&);
