// mma and wmma of the types and shapes that tensor.cpp does not do by itself: integers, bits, tf32, float64,
// and the shapes of wmma that are not square; stmatrix and movmatrix.
#include <algorithm>
#include "exec/exec.h"

namespace fragments {

enum Element { F16, BF16, TF32, F64, F32, S32, S8, U8, S4, U4, B1 };
static int bits_of(u32 kind) {
  const int bits[] = {16, 16, 32, 64, 32, 32, 8, 8, 4, 4, 1};
  return bits[kind];
}
enum Matrix { MATRIX_A, MATRIX_B, MATRIX_C };
struct Shape {
  int m, n, k;
};
// Where elements lie: a register of a lane holds neighbours along k, or along a row of C; 8 rows of a
// (columns of b) and 4 such groups are a block; blocks follow each other down the columns of the matrix
// first.
struct Fragment {
  u32 matrix, kind;
  Shape shape;
  int per_register() const { return std::max(1, 32 / bits_of(kind)); }
  int rows() const { return matrix == MATRIX_B ? shape.k : shape.m; }
  int columns() const { return matrix == MATRIX_A ? shape.k : shape.n; }
  int registers() const { return rows() * columns() / 32 / per_register(); }  // without repetitions
  void place(int r, int i, int l, int& row, int& column) const {
    const int per = per_register(), group = 4 * per, along = l % 4 * per + i, across = l / 4;
    if (matrix == MATRIX_A) {
      const int blocks = shape.m / 8;
      row = across + 8 * (r % blocks), column = along + group * (r / blocks);
    } else if (matrix == MATRIX_B) {
      const int blocks = shape.k / group;
      row = along + group * (r % blocks), column = across + 8 * (r / blocks);
    } else {
      const int e = r * per + i, blocks = shape.m / 8;
      row = across + 8 * (e / 2 % blocks), column = l % 4 * 2 + e % 2 + 8 * (e / 2 / blocks);
    }
  }
};
static u64 pattern_at(const u8* place, u32 kind, int i, int l) {
  const int bits = bits_of(kind);
  if (bits == 64) return ((const u64*)place)[l];
  const u32 word = ((const u32*)place)[l] >> (bits * i & 31);
  return bits == 32 ? word : word & ((1u << bits) - 1);
}
template <class T> static T number(u64 pattern, u32 kind) {
  switch (kind) {
    case F16: return half_to_float(pattern);
    case BF16: return bfloat_to_float(pattern);
    case TF32: return bits<f32>(u32(pattern) & 0xffffe000u);  // the low bits are not looked at
    case F32: return bits<f32>(u32(pattern));
    case F64: return bits<f64>(pattern);
    case S32: return (s32)pattern;
    case S8: return (s8)pattern;
    case S4: return (s32)((u32)pattern << 28) >> 28;
  }
  return pattern;
}
template <class T> static std::vector<T> unpacked(u8* R, const u32* places, const Fragment& f) {
  std::vector<T> matrix(f.rows() * f.columns());
  for (int r = 0; r < f.registers(); ++r)
    for (int i = 0; i < f.per_register(); ++i) LANES({
        int row, column;
        f.place(r, i, l, row, column);
        matrix[row * f.columns() + column] = number<T>(pattern_at(R + places[r], f.kind, i, l), f.kind);
      })
  return matrix;
}
enum MultiplyFlag { SATURATE = 1, XOR_BITS = 2, AND_BITS = 4 };
static s64 product_sum(const std::vector<s64>& a, const std::vector<s64>& b, s64 c, Shape s, int i, int j,
                       u32 flags) {
  for (int k = 0; k < s.k; ++k) {
    const s64 x = a[i * s.k + k], y = b[k * s.n + j];
    c += flags & XOR_BITS ? x ^ y : x * y;
  }
  return flags & SATURATE ? std::min<s64>(std::max<s64>(c, INT32_MIN), INT32_MAX) : c;
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
static void put(u8* place, u32 kind, int i, int l, u64 pattern) {
  if (bits_of(kind) == 64) ((u64*)place)[l] = pattern;
  else if (bits_of(kind) == 32) ((u32*)place)[l] = pattern;
  else if (bits_of(kind) == 16) ((u16*)place)[2 * l + i] = pattern;
  else place[4 * l + i] = pattern;
}
static u64 pattern_of(s64 value, u32) { return (u32)value; }
static u64 pattern_of(f64 value, u32) { return bits<u64>(value); }
static u64 pattern_of(f32 value, u32 kind) { return kind == F16 ? float_to_half(value) : bits<u32>(value); }
// operands: kinds of d, a, b, c, then m, n, k, flags, registers of d, a, b, c, then the registers
template <class T> static void multiply(u8* R, const MicroOp& op) {
  const u32 *o = op.operands, *d = o + 12, *a = d + o[8], *b = a + o[9], *c = b + o[10];
  const Shape shape = {(int)o[4], (int)o[5], (int)o[6]};
  const std::vector<T> A = unpacked<T>(R, a, {MATRIX_A, o[1], shape}), 
                       B = unpacked<T>(R, b, {MATRIX_B, o[2], shape}),
                       C = unpacked<T>(R, c, {MATRIX_C, o[3], shape});
  const Fragment f = {MATRIX_C, o[0], shape};
  for (int r = 0; r < f.registers(); ++r)
    for (int i = 0; i < f.per_register(); ++i) LANES({
        int row, column;
        f.place(r, i, l, row, column);
        const T sum = product_sum(A, B, C[row * shape.n + column], shape, row, column, o[7]);
        put(R + d[r], f.kind, i, l, pattern_of(sum, f.kind));
      })
}
static void mma(Machine& M, Warp& W, u8* R, const MicroOp& op) {
  if (!whole_warp(M, W, op.line)) return;
  switch (op.operands[0]) {
    case F64: return multiply<f64>(R, op);
    case S32: return multiply<s64>(R, op);
    default: return multiply<f32>(R, op);
  }
}

// ---- wmma.load and wmma.store ---
const u32 MATRIX_ALIGNMENT = 32, ROW_ALIGNMENT = 16;  // what CUDA asks for
static bool is_aligned(Machine& M, const MicroOp& op, u64 base, u32 stride, u32 space, Act act) {
  if (base % MATRIX_ALIGNMENT == 0 && stride % ROW_ALIGNMENT == 0) return true;
  const bool shared = base - SHARED_WINDOW < WINDOW_BYTES;
  if (Finding* f = report_access(M, MISALIGNED, op.line, 0, act, shared ? SHARED : GLOBAL,
                                   shared ? base - SHARED_WINDOW : base, MATRIX_ALIGNMENT))
    f->detail = stride % ROW_ALIGNMENT ? stride : 0;
  return false;
}
// operands: address, wide, matrix, kind, m, n, k, row major, space, stride, registers, then the registers
template <bool STORE> static void wmma_access(Machine& M, Warp& W, u8* R, const MicroOp& op) {
  if (!whole_warp(M, W, op.line)) return;
  const u32 *o = op.operands, *places = o + 11, space = o[8];
  const Fragment f = {o[2], o[3], {(int)o[4], (int)o[5], (int)o[6]}};
  const u64 own = (o[1] ? *(u64*)OPERAND(0) : *WORDS(0)) + op.offset;
  const u64 base = own + (space == SHARED ? SHARED_WINDOW : 0);
  const s64 stride = *(s32*)OPERAND(9);
  const u32 bytes = bits_of(f.kind) / 8;
  if (!is_aligned(M, op, base, u32(stride * bytes), space, STORE ? WRITE : READ)) {
    for (u32 r = 0; !STORE && r < o[10]; ++r) memset(R + places[r], 0xff, bytes == 8 ? 256 : 128);
    return;
  }
  // Neighbours in a register are neighbours in memory where memory runs along them: then it is one access.
  const bool pairs = f.matrix == MATRIX_C && o[7] && bytes > 2;
  const bool together = (f.matrix == MATRIX_B) != (o[7] != 0);
  for (int r = 0; r < f.registers(); ++r)
    for (int i = 0; i < f.per_register(); ++i) {
      u64 address[32];
      u32 narrow[32];
      LANES({
        int row, column;
        f.place(r, i, l, row, column);
        address[l] = base + (o[7] ? row * stride + column : column * stride + row) * bytes;
        narrow[l] = u32(address[l]);
        u8* data = at_generic(M, address[l], bytes, op, l, STORE ? WRITE : READ);
        u64 pattern = ~0ull;
        if (STORE && data) pattern = pattern_at(R + places[r], f.kind, i, l), memcpy(data, &pattern, bytes);
        else if (!STORE && data) memcpy(&pattern, data, bytes);
        for (u32 to = r; !STORE && to < o[10]; to += f.registers())
          put(R + places[to], f.kind, i, l, pattern);
      })
      const bool first = pairs ? r % 2 == 0 : !together || i == 0;
      if (M.observers.empty() || op.counter < 0 || !first) continue;
      const u32 width = pairs ? 2 * bytes : together ? bytes * f.per_register() : bytes;
      if (space == SHARED) tell(M, SharedAccess{op.counter, narrow, NONE, width, STORE});
      else if (space == GLOBAL) tell(M, GlobalAccess{op.counter, address, NONE, width});
    }
  tell_performed(M);
}

// ---- 8x8 matrices of 16 bits ---
static u16& half_at(u32* words, int row, int column) { return ((u16*)words)[row * 8 + column]; }
// operands: address, wide, matrices, whether transposed, registers
static void store_matrices(Machine& M, Warp& W, u8* R, const MicroOp& op) {
  const int count = op.operands[2];
  if (!whole_warp(M, W, op.line)) return;
  ALIGNED u32 address[32];
  addresses(OPERAND(0), op.operands[1], op.offset, address);
  tell(M, MatrixRows{op.counter, address, (u32)count});
  for (int row = 0; row < 8 * count; ++row) {
    u8* data = at_shared(M, address[row], 16, op, row, WRITE);
    if (!data) continue;
    check_shared(M, address[row], 16, WRITE, row, op.line);
    for (int column = 0; column < 8; ++column) {
      u32* words = WORDS(4 + row / 8);
      const bool transposed = op.operands[3];
      ((u16*)data)[column] =
          transposed ? half_at(words, column, row % 8) : half_at(words, row % 8, column);
    }
  }
  tell_performed(M);
}
// operands: result, source
static void transpose_matrix(Machine& M, Warp& W, u8* R, const MicroOp& op) {
  if (!whole_warp(M, W, op.line)) return;
  u32 result[32];
  for (int row = 0; row < 8; ++row)
    for (int column = 0; column < 8; ++column) half_at(result, row, column) = half_at(WORDS(1), column, row);
  memcpy(WORDS(0), result, 128);
}

static const Family family{{"mma.fragments", mma},
                           {"wmma.load.fragments", wmma_access<false>},
                           {"wmma.store.fragments", wmma_access<true>},
                           {"stmatrix", store_matrices},
                           {"movmatrix", transpose_matrix}};
}  // namespace fragments
