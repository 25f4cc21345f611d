// mma and wmma of the types and shapes that tensor.cpp does not do by itself: integers, bits, tf32, float64,
// and the shapes of wmma that are not square; stmatrix and movmatrix.
#include <algorithm>
#include "exec/exec.h"

using ops::Element;
using ops::Matrix;
static int bits_of(Element kind) {
  const int bits[] = {16, 16, 32, 64, 32, 32, 8, 8, 4, 4, 1};
  return bits[(u32)kind];
}
struct Shape {
  int m, n, k;
};
// Where elements lie: a register of a lane holds neighbours along k, or along a row of C; 8 rows of a
// (columns of b) and 4 such groups are a block; blocks follow each other down the columns of the matrix
// first.
struct Fragment {
  Matrix matrix;
  Element kind;
  Shape shape;
  int per_register() const { return std::max(1, 32 / bits_of(kind)); }
  int rows() const { return matrix == Matrix::B ? shape.k : shape.m; }
  int columns() const { return matrix == Matrix::A ? shape.k : shape.n; }
  int registers() const { return rows() * columns() / 32 / per_register(); }  // without repetitions
  std::array<int, 2> place(int r, int i, int l) const {
    const int per = per_register(), group = 4 * per, along = l % 4 * per + i, across = l / 4;
    const int e = r * per + i, high = shape.m / 8, deep = shape.k / group;  // blocks
    if (matrix == Matrix::A) return {across + 8 * (r % high), along + group * (r / high)};
    if (matrix == Matrix::B) return {along + group * (r % deep), across + 8 * (r / deep)};
    return {across + 8 * (e / 2 % high), l % 4 * 2 + e % 2 + 8 * (e / 2 / high)};
  }
};
static u64 pattern_at(const u8* place, Element kind, int i, int l) {
  const int bits = bits_of(kind);
  if (bits == 64) return ((const u64*)place)[l];
  const u32 word = ((const u32*)place)[l] >> (bits * i & 31);
  return bits == 32 ? word : word & ((1u << bits) - 1);
}
template <class T> static T number(u64 pattern, Element kind) {
  switch (kind) {
    case Element::F16: return half_to_float(pattern);
    case Element::BF16: return bfloat_to_float(pattern);
    case Element::TF32: return bits<f32>(u32(pattern) & 0xffffe000u);  // the low bits are not looked at
    case Element::F32: return bits<f32>(u32(pattern));
    case Element::F64: return bits<f64>(pattern);
    case Element::S32: return (s32)pattern;
    case Element::S8: return (s8)pattern;
    case Element::S4: return (s32)((u32)pattern << 28) >> 28;
  }
  return pattern;
}
template <class T> static std::vector<T> unpacked(const Registers<u8>& registers, const Fragment& f) {
  std::vector<T> matrix(f.rows() * f.columns());
  for (int r = 0; r < f.registers(); ++r)
    for (int i = 0; i < f.per_register(); ++i) LANES({
        const auto [row, column] = f.place(r, i, l);
        matrix[row * f.columns() + column] = number<T>(pattern_at(registers[r], f.kind, i, l), f.kind);
      })
  return matrix;
}
using Flags = ops::MultiplyFlag;
static s64 product_sum(const std::vector<s64>& a, const std::vector<s64>& b, s64 c, Shape s, int i, int j,
                       u32 flags) {
  for (int k = 0; k < s.k; ++k) {
    const s64 x = a[i * s.k + k], y = b[k * s.n + j];
    c += flags & Flags::XOR_BITS ? x ^ y : x * y;
  }
  return flags & Flags::SATURATE ? std::min<s64>(std::max<s64>(c, INT32_MIN), INT32_MAX) : c;
}
static f32 product_sum(const std::vector<f32>& a, const std::vector<f32>& b, f32 c, Shape s, int i, int j,
                       u32) {
  f32 sum = 0;
  for (int k = 0; k < s.k; ++k) sum += a[i * s.k + k] * b[k * s.n + j];
  return c + sum;
}
static f64 product_sum(const std::vector<f64>& a, const std::vector<f64>& b, f64 c, Shape s, int i, int j,
                       u32) {
  for (int k = 0; k < s.k; ++k) c = std::fma(a[i * s.k + k], b[k * s.n + j], c);
  return c;
}
static void put(u8* place, Element kind, int i, int l, u64 pattern) {
  if (bits_of(kind) == 64) ((u64*)place)[l] = pattern;
  else if (bits_of(kind) == 32) ((u32*)place)[l] = pattern;
  else if (bits_of(kind) == 16) ((u16*)place)[2 * l + i] = pattern;
  else place[4 * l + i] = pattern;
}
static u64 pattern_of(s64 value, Element) { return (u32)value; }
static u64 pattern_of(f64 value, Element) { return bits<u64>(value); }
static u64 pattern_of(f32 value, Element kind) { return kind == Element::F16 ? float_to_half(value) : bits<u32>(value); }
template <class T> static void multiply(const ops::MultiplyFragments& op) {
  const Shape shape = {(int)op.m(), (int)op.n(), (int)op.k()};
  const std::vector<T> A = unpacked<T>(op.a(), {Matrix::A, op.a_kind(), shape}),
                       B = unpacked<T>(op.b(), {Matrix::B, op.b_kind(), shape}),
                       C = unpacked<T>(op.c(), {Matrix::C, op.c_kind(), shape});
  const Fragment f = {Matrix::C, op.d_kind(), shape};
  for (int r = 0; r < f.registers(); ++r)
    for (int i = 0; i < f.per_register(); ++i) LANES({
        const auto [row, column] = f.place(r, i, l);
        const T sum = product_sum(A, B, C[row * shape.n + column], shape, row, column, op.flags());
        put(op.d()[r], f.kind, i, l, pattern_of(sum, f.kind));
      })
}
static void execute(Machine& M, Warp& W, const ops::MultiplyFragments& op) {
  if (!whole_warp(M, W, op.line())) return;
  switch (op.d_kind()) {
    case Element::F64: return multiply<f64>(op);
    case Element::S32: return multiply<s64>(op);
    default: return multiply<f32>(op);
  }
}

// ---- wmma.load and wmma.store ---
template <bool STORE> static void wmma_access(Machine& M, Warp& W, const ops::AnyFragment& op) {
  if (!whole_warp(M, W, op.line())) return;
  const Registers<u8> registers = op.registers();
  const Space space = op.space();
  const Fragment f = {op.matrix(), op.kind(), {(int)op.m(), (int)op.n(), (int)op.k()}};
  const u64 base = op.where()[0] + (space == SHARED ? SHARED_WINDOW : 0);
  const s64 stride = *op.stride();
  const bool by_rows = op.by_rows();
  const u32 bytes = bits_of(f.kind) / 8;
  if (!check_matrix(M, op, base, u32(stride * bytes), STORE ? WRITE : READ)) {
    for (u32 r = 0; !STORE && r < registers.count; ++r) memset(registers[r], 0xff, bytes == 8 ? 256 : 128);
    return;
  }
  // Neighbours in a register are neighbours in memory where memory runs along them: then it is one access.
  const bool pairs = f.matrix == Matrix::C && by_rows && bytes > 2;
  const bool together = (f.matrix == Matrix::B) != by_rows;
  for (int r = 0; r < f.registers(); ++r)
    for (int i = 0; i < f.per_register(); ++i) {
      u64 address[32];
      u32 narrow[32];
      LANES({
        const auto [row, column] = f.place(r, i, l);
        address[l] = base + (by_rows ? row * stride + column : column * stride + row) * bytes;
        narrow[l] = u32(address[l]);
        u8* data = at_generic(M, address[l], bytes, op, l, STORE ? WRITE : READ);
        u64 pattern = ~0ull;
        if (STORE && data) pattern = pattern_at(registers[r], f.kind, i, l), memcpy(data, &pattern, bytes);
        else if (!STORE && data) memcpy(&pattern, data, bytes);
        for (u32 to = r; !STORE && to < registers.count; to += f.registers())
          put(registers[to], f.kind, i, l, pattern);
      })
      const bool first = pairs ? r % 2 == 0 : !together || i == 0;
      if (M.observers.empty() || !first) continue;
      const u32 width = pairs ? 2 * bytes : together ? bytes * f.per_register() : bytes;
      if (space == SHARED) tell(M, SharedAccess{op.counter(), narrow, NONE, width, STORE});
      else tell(M, GlobalAccess{op.counter(), address, NONE, width, op.line(), STORE ? WRITE : READ});
    }
  tell_performed(M);
}
static void execute(Machine& M, Warp& W, const ops::WmmaLoadFragments& op) { wmma_access<false>(M, W, op); }
static void execute(Machine& M, Warp& W, const ops::WmmaStoreFragments& op) { wmma_access<true>(M, W, op); }

// ---- 8x8 matrices of 16 bits ---
static u16& half_at(u32* words, int row, int column) { return ((u16*)words)[row * 8 + column]; }
static void execute(Machine& M, Warp& W, const ops::Stmatrix& op) {
  const int count = op.registers().count;
  if (!whole_warp(M, W, op.line())) return;
  ALIGNED u32 address[32];
  op.where().fill(address);
  tell(M, MatrixRows{op.counter(), address, (u32)count});
  for (int row = 0; row < 8 * count; ++row) {
    u8* data = at_shared(M, address[row], 16, op, row, WRITE);
    if (!data) continue;
    check_shared(M, address[row], 16, WRITE, row, op.line());
    for (int column = 0; column < 8; ++column) {
      u32* words = op.registers()[row / 8];
      ((u16*)data)[column] =
          op.transposed() ? half_at(words, column, row % 8) : half_at(words, row % 8, column);
    }
  }
  tell_performed(M);
}
static void execute(Machine& M, Warp& W, const ops::Transpose& op) {
  if (!whole_warp(M, W, op.line())) return;
  u32 result[32];
  for (int row = 0; row < 8; ++row)
    for (int column = 0; column < 8; ++column) half_at(result, row, column) = half_at(op.source(), column, row);
  memcpy(op.result(), result, 128);
}
