// Tensor-core instructions: ldmatrix, mma.sync and wmma for half and bfloat16 operands. Accumulators are
// float32; the hardware truncates in ways of its own, so results agree with it within a tolerance only.
#include "exec/exec.h"

static void execute(Machine& M, Warp& W, const ops::Ldmatrix& op) {
  const Registers<u32> registers = op.registers();
  const int count = registers.count;
  if (!whole_warp(M, W, op.line())) return;
  u32 address[32];
  op.where().fill(address);
  tell(M, MatrixRows{op.counter(), address, (u32)count});
  u16 matrix[4][8][8];
  u32 found = 0;
  for (int row = 0; row < 8 * count; ++row) {
    const u8* data = at_shared(M, address[row], 16, op, row, READ);
    found |= (u32)(data != nullptr) << row;
    if (data) memcpy(matrix[row / 8][row % 8], data, 16);
    else memset(matrix[row / 8][row % 8], 0xff, 16);
  }
  check_shared_reads(M, address, found, 16, op.line(), TOGETHER);
  tell_performed(M);
  for (int k = 0; k < count; ++k) {
    u32* to = registers[k];
    if (op.transposed()) LANES(to[l] = pack(matrix[k][l % 4 * 2][l / 4], matrix[k][l % 4 * 2 + 1][l / 4]))
    else memcpy(to, matrix[k], 128);
  }
}

// 32 registers of two halves each -> 64 floats, in the order of lanes.
static void unpack(const u32* registers, f32* to, bool bfloat) {
#if defined(__AVX512F__)
  typedef short halves __attribute__((vector_size(32)));
  typedef float floats __attribute__((vector_size(64)));
  if (!bfloat) {
    for (int q = 0; q < 4; ++q) {
      halves h;
      memcpy(&h, (const u8*)registers + q * 32, 32);
      floats f = __builtin_ia32_vcvtph2ps512_mask(h, (floats){}, 0xffff, 4);
      memcpy(to + q * 16, &f, 64);
    }
    return;
  }
#endif
  LANES({
    const u16 low = registers[l] & 0xffff, high = registers[l] >> 16;
    to[2 * l] = bfloat ? bfloat_to_float(low) : half_to_float(low);
    to[2 * l + 1] = bfloat ? bfloat_to_float(high) : half_to_float(high);
  })
}
struct Types {
  bool bfloat, half_result, half_addend;
};
// D = A B + C of one m16n8kK; fragments as the PTX manual lays them out over lanes.
static void multiply(int K, Types types, const u32* const* a, const u32* const* b, const u32* const* c,
                     u32* const* d) {
  typedef float row_of_8 __attribute__((vector_size(32)));
  ALIGNED f32 A[16][16];
  ALIGNED f32 B[16][8], C[16][8], unpacked[64];
  for (int r = 0; r < K / 4; ++r) {
    unpack(a[r], unpacked, types.bfloat);
    for (int g = 0; g < 8; ++g) memcpy(&A[g + 8 * (r & 1)][8 * (r >> 1)], unpacked + g * 8, 32);
  }
  for (int r = 0; r < K / 8; ++r) {
    unpack(b[r], unpacked, types.bfloat);
    for (int g = 0; g < 8; ++g)
      for (int k = 0; k < 8; ++k) B[8 * r + k][g] = unpacked[g * 8 + k];
  }
  if (types.half_addend) {
    for (int r = 0; r < 2; ++r) {
      unpack(c[r], unpacked, false);
      memcpy(C[8 * r], unpacked, 256);
    }
  } else {
    for (int e = 0; e < 4; ++e) LANES(C[l / 4 + 8 * (e >> 1)][l % 4 * 2 + (e & 1)] = bits<f32>(c[e][l]))
  }
  row_of_8 rows[16];
  for (int k = 0; k < K; ++k) memcpy(&rows[k], B[k], 32);
  for (int i = 0; i < 16; i += 4) {
    row_of_8 sum[4] = {};
    for (int k = 0; k < K; ++k)
      for (int q = 0; q < 4; ++q) sum[q] += A[i + q][k] * rows[k];
    for (int q = 0; q < 4; ++q) {
      row_of_8 addend;
      memcpy(&addend, C[i + q], 32);
      addend += sum[q];
      memcpy(C[i + q], &addend, 32);
    }
  }
  if (types.half_result) {
    for (int r = 0; r < 2; ++r)
      LANES({
        const f32* from = &C[l / 4 + 8 * r][l % 4 * 2];
        d[r][l] = pack(float_to_half(from[0]), float_to_half(from[1]));
      })
  } else {
    for (int e = 0; e < 4; ++e) LANES(d[e][l] = bits<u32>(C[l / 4 + 8 * (e >> 1)][l % 4 * 2 + (e & 1)]))
  }
}
static void execute(Machine& M, Warp& W, const ops::MultiplyHalves& op) {
  if (!whole_warp(M, W, op.line())) return;
  const Types types = {op.bfloat(), op.half_result(), op.half_addend()};
  u32 *a[8], *b[8], *c[8], *results[8];
  ALIGNED u32 fresh[8][32];
  auto list = [](const Registers<u32>& from, u32** to) {
    for (u32 k = 0; k < from.count; ++k) to[k] = from[k];
  };
  list(op.a(), a), list(op.b(), b), list(op.c(), c);
  const Registers<u32> d = op.d();
  for (u32 k = 0; k < d.count; ++k) results[k] = fresh[k];
  multiply(op.k(), types, a, b, c, results);
  if (op.wmma())  // wmma m16n16k16 is two m16n8k16 side by side
    multiply(16, types, a, b + 2, c + (types.half_addend ? 2 : 4), results + (types.half_result ? 2 : 4));
  for (u32 k = 0; k < d.count; ++k) memcpy(d[k], fresh[k], 128);
}

// ---- wmma.load and wmma.store, m16n16k16 ---
// Row and column of element e of lane l, as seen on sm_80 and sm_90.
static std::array<int, 2> place(ops::Matrix matrix, int e, int l) {
  const int along = l % 4 * 2 + e % 2, across = l / 4, half = 8 * (e / 2 % 2), other = 8 * (e / 4 % 2);
  if (matrix == ops::Matrix::B) return {along + half, across + other};
  return {across + half, along + other};
}
// A 16x16 matrix in memory.
struct WmmaMatrix {
  ops::Matrix matrix;
  u32 space, element;
  bool row_major;
  u64 base;
  s64 stride;
};
static u64 element_address(const WmmaMatrix& t, int e, int l) {
  const auto [row, column] = place(t.matrix, e, l);
  return t.base + (t.row_major ? row * t.stride + column : column * t.stride + row) * t.element;
}
// As ptxas compiles it: a and b from shared memory are one ldmatrix.x4; c, and what global memory holds, are
// single or paired elements.
static void count_matrix(Machine& M, s32 counter, const WmmaMatrix& t, bool store, s32 line) {
  if (M.observers.empty()) return;
  if (t.space == SHARED && t.matrix != ops::Matrix::C) {
    u32 rows[32];
    LANES({
      const int quadrant = l / 8, row = (quadrant >> 1) * 8 + l % 8, column = (quadrant & 1) * 8;
      rows[l] = (u32)t.base + (row * (u32)t.stride + column) * 2;
    })
    return tell(M, MatrixRows{counter, rows, 4});
  }
  // Halves of a and b come in pairs along memory's rows, and movmatrix transposes them where need be.
  const bool along_rows = t.matrix == ops::Matrix::C ? t.row_major : t.element == 2;
  WmmaMatrix seen = t;
  if (along_rows && t.matrix != ops::Matrix::C) seen.matrix = ops::Matrix::A, seen.row_major = true;
  const int step = along_rows ? 2 : 1;
  for (int e = 0; e < 8; e += step) {
    u64 address[32];
    u32 narrow[32];
    LANES(address[l] = element_address(seen, e, l); narrow[l] = (u32)address[l])
    if (t.space == SHARED) tell(M, SharedAccess{counter, narrow, NONE, t.element * step, store});
    else tell(M, GlobalAccess{counter, address, NONE, t.element * step, line, store ? WRITE : READ});
  }
}
// What CUDA asks: a pointer to a multiple of 32 bytes, rows that are a multiple of 16 bytes apart. The
// instructions that ptxas makes of it need as much (ldmatrix 16 bytes, pairs of accumulators 8); what else
// works depends on the GPU.
const u32 MATRIX_ALIGNMENT = 32, ROW_ALIGNMENT = 16;
bool check_matrix(Machine& M, const MicroOp& op, u64 address, u32 pitch, Act act) {
  if (address % MATRIX_ALIGNMENT == 0 && pitch % ROW_ALIGNMENT == 0) return true;
  const bool shared = address - SHARED_WINDOW < WINDOW_BYTES;
  const u64 shown = shared ? address - SHARED_WINDOW : address;
  Finding* f = report_access(M, MISALIGNED, op.line, 0, act, shared ? SHARED : GLOBAL, shown, MATRIX_ALIGNMENT);
  if (f) f->detail = pitch % ROW_ALIGNMENT ? pitch : 0;
  return false;
}
// Where a matrix that is read begins in memory, or nullptr where each element has to be looked at by itself:
// where it does not lie in one array as a whole, or in one that is written, too.
static const u8* whole_matrix(const Machine& M, const MicroOp& op, const WmmaMatrix& t) {
  const u64 base = t.base + (t.space == SHARED ? SHARED_WINDOW : 0), in_shared = base - SHARED_WINDOW;
  const u64 bytes = (15 * t.stride + 16) * t.element;
  if (t.stride < 0) return nullptr;
  if (in_shared < WINDOW_BYTES) {
    const Range range = reach(SHARED, M.launch.shared_bytes, op);
    return in_shared >= range.low && in_shared + bytes <= range.high ? M.cta->shared + in_shared : nullptr;
  }
  const u64 number = (base >> BUFFER_SHIFT) - 1, offset = base & ((1ull << BUFFER_SHIFT) - 1);
  if (number >= M.global.count || M.global.buffers[number].cells) return nullptr;
  return offset + bytes <= M.global.buffers[number].bytes ? M.global.buffers[number].data + offset : nullptr;
}
static void load_whole_matrix(Machine& M, const MicroOp& op, const WmmaMatrix& t, const u8* start,
                              u32** words, bool doubled) {
  // Whether elements 2k and 2k + 1 of a lane are neighbours in memory, and in one granule.
  const bool pairs = t.element == 2 && (t.matrix == ops::Matrix::B) != t.row_major;
  const bool one = pairs && M.launch.granule_shift > 1;
  const bool in_shared = t.base - (t.space == SHARED ? 0 : SHARED_WINDOW) < WINDOW_BYTES;
  ALIGNED u64 offset[8][32];
  for (int e = 0; e < 8; ++e) LANES(offset[e][l] = element_address(t, e, l) - t.base)
  for (int e = 0; in_shared && e < 8; e += 1 + one) {
    ALIGNED u32 address[32];
    LANES(address[l] = u32(t.base + offset[e][l]))
    check_shared_reads(M, address, NONE, t.element, op.line);
  }
  auto half = [&](int e, int l) { return (u32)*(const u16*)(start + offset[e][l]); };
  for (int e = 0; e < 8; ++e) {
    if (t.element == 4) {
      LANES(words[e][l] = *(const u32*)(start + offset[e][l]))
      continue;
    }
    if (e & 1) continue;
    u32* to = words[e / 2];
    if (pairs) LANES(to[l] = *(const u32*)(start + offset[e][l]))
    else LANES(to[l] = half(e, l) | half(e + 1, l) << 16)
    if (doubled) memcpy(words[4 + e / 2], to, 128);
  }
}
template <bool STORE> static void wmma_access(Machine& M, Warp& W, const ops::Fragment& op) {
  if (!whole_warp(M, W, op.line())) return;
  const Registers<u32> registers = op.registers();
  const WmmaMatrix t = {op.matrix(), op.space(), op.element(), op.by_rows(), op.where()[0], *op.stride()};
  const u64 generic = t.base + (t.space == SHARED ? SHARED_WINDOW : 0);
  if (!check_matrix(M, op, generic, u32(t.stride * t.element), STORE ? WRITE : READ)) {
    for (u32 k = 0; !STORE && k < registers.count; ++k) memset(registers[k], 0xff, 128);
    return;
  }
  count_matrix(M, op.counter(), t, STORE, op.line());
  // Of half a and b, elements 8 to 15 repeat 0 to 7.
  const bool doubled = !STORE && t.element == 2 && registers.count == 8;
  if (const u8* start = STORE ? nullptr : whole_matrix(M, op, t)) {
    u32* words[8];
    for (u32 k = 0; k < registers.count; ++k) words[k] = registers[k];
    load_whole_matrix(M, op, t, start, words, doubled);
    tell_performed(M);
    return;
  }
  LANES(for (int e = 0; e < 8; ++e) {
    const u64 address = element_address(t, e, l) + (t.space == SHARED ? SHARED_WINDOW : 0);
    u8* data = at_generic(M, address, t.element, op, l, STORE ? WRITE : READ, 0);
    if (t.element == 4) {
      u32& word = registers[e][l];
      if (!STORE) word = data ? *(u32*)data : NONE;
      else if (data) *(u32*)data = word;
      continue;
    }
    u32& word = registers[e / 2][l];
    if (STORE) {
      if (data) *(u16*)data = e & 1 ? word >> 16 : word;
      continue;
    }
    const u16 half = data ? *(u16*)data : 0xffff;
    word = e & 1 ? (word & 0xffff) | (u32)half << 16 : half;
    if (doubled) registers[4 + e / 2][l] = word;
  })
  tell_performed(M);
}
static void execute(Machine& M, Warp& W, const ops::WmmaLoad& op) { wmma_access<false>(M, W, op); }
static void execute(Machine& M, Warp& W, const ops::WmmaStore& op) { wmma_access<true>(M, W, op); }
