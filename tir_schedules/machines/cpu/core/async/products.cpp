// D = A B + D of m64nNkK by the 16 rows of one warp: factors in shared memory as descriptors give them, or rows of A in
// registers. Sums of floats are in sums.cpp.
#include "async/products.h"
#include "async/sums.h"
#include "lanes/conversion.h"

using ops::Factor;
using ops::Sum;
typedef ops::ProductOption Option;
u32 factor_bytes(Factor kind) { return kind <= Factor::BF16 ? 2 : kind == Factor::TF32 ? 4 : 1; }
static s32 lowest_exponent(Factor kind) {
  return kind == Factor::F16 || kind == Factor::E5M2 ? -14 : kind == Factor::E4M3 ? -6 : -126;
}

template <int MANTISSA, int BIAS> static const f32* floats_of_8() {
  static const std::vector<f32> table = [] {
    std::vector<f32> values(256);
    for (int k = 0; k < 256; ++k) values[k] = from_float8<MANTISSA, BIAS>(k);
    return values;
  }();
  return table.data();
}
// The numbers of a piece of 16 bytes. The low bits of tf32 do not count.
static void unpack(const u8* piece, Factor kind, f32* to) {
  u16 halves[8];
  u32 words[4];
  memcpy(halves, piece, 16), memcpy(words, piece, 16);
  auto fill = [&](u32 count, auto number) {
    for (u32 k = 0; k < count; ++k) to[k] = number(k);
  };
  switch (kind) {
    case Factor::F16: return fill(8, [&](u32 k) { return half_to_float(halves[k]); });
    case Factor::BF16: return fill(8, [&](u32 k) { return bfloat_to_float(halves[k]); });
    case Factor::TF32: return fill(4, [&](u32 k) { return bits<f32>(words[k] & 0xffffe000u); });
    case Factor::E4M3: return fill(16, [&](u32 k) { return floats_of_8<3, 7>()[piece[k]]; });
    case Factor::E5M2: return fill(16, [&](u32 k) { return floats_of_8<2, 15>()[piece[k]]; });
    case Factor::S8: return fill(16, [&](u32 k) { return (s8)piece[k]; });
    case Factor::U8: return fill(16, [&](u32 k) { return piece[k]; });
  }
}
static void unpack_at(const Machine& M, u32 address, Factor kind, f32* to) {
  static const u8 nothing[16] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
  unpack(address + 16 <= M.launch.shared_bytes ? M.cta->shared + address : nothing, kind, to);
}

static void load_right(const Machine& M, const Product& p, f32 (*B)[MOST_COLUMNS]) {
  const Factor kind = p.op.right_kind();
  const u32 columns = p.op.columns(), per = 16 / factor_bytes(kind);
  const Descriptor d(p.right);
  if (p.op.options() & Option::RIGHT_ACROSS) {
    for (u32 k = 0; k < 2 * per; ++k)
      for (u32 piece = 0; piece < columns / 8; ++piece)
        unpack_at(M, d.across(piece, k), kind, B[k] + piece * 8);
    return;
  }
  f32 numbers[16];
  for (u32 column = 0; column < columns; ++column)
    for (u32 piece = 0; piece < 2; ++piece) {
      unpack_at(M, d.along_k(column, piece), kind, numbers);
      for (u32 k = 0; k < per; ++k) B[piece * per + k][column] = numbers[k];
    }
}
static void load_left(const Machine& M, const Product& p, f32 (*A)[MOST_K]) {
  const Factor kind = p.op.left_kind();
  const u32 per = 16 / factor_bytes(kind), first = p.member * 16;
  if (!p.rows.empty()) {
    for (u32 row = 0; row < 16; ++row) memcpy(A[row], &p.rows[row * 2 * per], 8 * per);
    return;
  }
  const Descriptor d(p.left);
  if (!(p.op.options() & Option::LEFT_ACROSS)) {
    for (u32 row = 0; row < 16; ++row)
      for (u32 piece = 0; piece < 2; ++piece)
        unpack_at(M, d.along_k(first + row, piece), kind, A[row] + piece * per);
    return;
  }
  f32 numbers[16];
  for (u32 k = 0; k < 2 * per; ++k)
    for (u32 piece = 0; piece < 2; ++piece) {
      unpack_at(M, d.across(first / 8 + piece, k), kind, numbers);
      for (u32 row = 0; row < 8; ++row) A[piece * 8 + row][k] = numbers[row];
    }
}
std::vector<f32> rows_in_registers(const Registers<u32>& registers, Factor kind) {
  const u32 bytes = factor_bytes(kind), per = 4 / bytes;
  std::vector<f32> rows(16 * 8 * per);
  for (u32 r = 0; r < 4; ++r) {
    const u32* words = registers[r];
    LANES({
      u8 piece[16] = {0};
      f32 numbers[16];
      memcpy(piece, words + l, 4);
      unpack(piece, kind, numbers);
      const u32 row = l / 4 + 8 * (r & 1), column = l % 4 * per + (r >> 1) * 4 * per;
      for (u32 i = 0; i < per; ++i) rows[row * 8 * per + column + i] = numbers[i];
    })
  }
  return rows;
}

static s32 added(u32 before, f32 sum, u32 options) {
  const s64 whole = (s64)(s32)before + (s64)sum;
  return options & Option::SATURATED ? within(whole, INT32_MIN, INT32_MAX) : (s32)whole;
}
// f(column, where its sum is) of a row.
template <class T, class F> static inline void each_sum(const Product& p, u32 row, F f) {
  const u32 each = 4 / sizeof(T);  // in a register
  const Registers<u8> sums = p.op.sums();
  const u32 *places = sums.places + row / 8 * (2 / each), columns = p.op.columns();
  for (u32 column = 0; column < columns; column += 8, places += 4 / each)
#pragma GCC unroll 8
    for (u32 i = 0; i < 8; ++i)
      f(column + i, ((T*)(sums.R + places[i % 2 / each]))[(row % 8 * 4 + i / 2) * each + i % each]);
}
static void add_integers(const Product& p, u32 row, const f32* left, const RightFactors& right) {
  f32 sums[MOST_COLUMNS] = {0};  // exact
  for (u32 k = 0; k < right.depth; ++k)
    for (u32 column = 0; column < right.columns; ++column) sums[column] += left[k] * right.values[k][column];
  each_sum<u32>(p, row, [&](u32 column, u32& d) {
    d = added(p.adds ? d : 0, sums[column], p.op.options());
  });
}
template <class T> static void add_floats(const Product& p, u32 row, const f32* left, const RightFactors& right) {
  const Factor kind = p.op.left_kind();
  const bool halves = sizeof(T) == 2;
  ALIGNED f32 sums[MOST_COLUMNS];
  if (p.adds)
    each_sum<T>(p, row, [&](u32 column, T& d) { sums[column] = halves ? half_to_float(d) : bits<f32>((u32)d); });
  else memset(sums, 0, sizeof sums);
  add_products(left, lowest_exponent(kind), right, {factor_bytes(kind) == 1 ? 13 : 25, halves}, sums);
  each_sum<T>(p, row, [&](u32 column, T& d) {
    const f32 sum = sums[column];
    d = halves ? float_to_half(sum) : sum != sum ? 0x7fffffff : bits<u32>(sum);
  });
}
void execute(const Machine& M, const Product& p) {
  static thread_local RightFactors factors;
  RightFactors& right = factors;
  ALIGNED f32 A[16][MOST_K];
  right.columns = p.op.columns(), right.depth = 32 / factor_bytes(p.op.left_kind());
  load_left(M, p, A), load_right(M, p, right.values);
  const Sum sums = p.op.sum_kind();
  if (sums != Sum::S32) right.find_exponents(lowest_exponent(p.op.right_kind()));
  for (u32 row = 0; row < 16; ++row) {
    if (p.op.options() & Option::NEGATED)
      for (f32& factor : A[row]) factor = -factor;
    if (sums == Sum::S32) add_integers(p, row, A[row], right);
    else if (sums == Sum::F16) add_floats<u16>(p, row, A[row], right);
    else add_floats<u32>(p, row, A[row], right);
  }
}
