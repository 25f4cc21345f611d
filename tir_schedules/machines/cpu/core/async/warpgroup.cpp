// wgmma and setmaxnreg: instructions that the four warps of a warpgroup execute together, and what is wrong
// with their descriptors and registers. Numbers are in products.cpp.
#include "async/products.h"

enum { DIFFERENT_WARPS = 1, INCOMPLETE_GROUP, LEFT_OUT };  // what DIVERGENT_ALIGNED is about
static Warpgroup& warpgroup_of(Machine& M) {
  std::vector<Warpgroup>& groups = M.cta->warpgroups;
  if (groups.empty()) groups.resize((M.cta->warps.size() + 3) / 4);
  return groups[M.warp / 4];
}
// Whether all lanes are there, and the warps of the group have executed the same so far. The descriptors are
// those of the first warp that came; false in `alike` where this one has others.
static bool whole_group(Machine& M, const Warp& W, s32 line, bool* alike = nullptr, u64 left = 0,
                        u64 right = 0) {
  if (!whole_warp(M, W, line)) return false;
  if (M.warp / 4 * 4 + 4 > (int)M.cta->warps.size()) {
    if (Finding* f = M.report(DIVERGENT_ALIGNED, line, 0))
      f->extent = INCOMPLETE_GROUP, f->bytes = M.cta->warps.size();
    return false;
  }
  Warpgroup& group = warpgroup_of(M);
  const u32 own = group.issued[M.warp % 4]++;
  Warpgroup::Issued& there = group.last[own % REMEMBERED];
  if (own == group.furthest) {
    group.furthest++, there = {line, left, right};
    return true;
  }
  if (own + REMEMBERED < group.furthest) return true;
  if (there.line != line) {
    if (Finding* f = M.report(DIVERGENT_ALIGNED, line, 0, there.line)) f->extent = DIFFERENT_WARPS;
    return false;
  }
  if (alike) *alike = there.left == left && there.right == right;
  return true;
}

// Registers move from warps to others of the block, which has as many as it was launched with.
static void check_registers(Machine& M) {
  const std::vector<Warpgroup>& groups = M.cta->warpgroups;
  const u32 launched = M.thread_registers * M.cta->warps.size() * 32;
  u32 all = 0, most = 0;
  for (const Warpgroup& group : groups) {
    for (u32 asked : group.asked) all += (asked ? asked : M.thread_registers) * 32;
    if (group.asked[0] > groups[most].asked[0]) most = &group - groups.data();
  }
  if (!M.thread_registers || !groups[most].line || all <= launched) return;
  M.warp = most * 4;
  if (Finding* f = M.report(TOO_MANY_REGISTERS, groups[most].line, 0))
    f->detail = groups[most].asked[0], f->bytes = all, f->extent_bytes = launched;
}
// At the end of a block: whether the warps of each group have executed as much.
void check_warpgroups(Machine& M) {
  check_registers(M);
  for (u32 g = 0; g < M.cta->warpgroups.size(); ++g) {
    const Warpgroup& group = M.cta->warpgroups[g];
    for (u32 member = 0; member < 4; ++member) {
      const u32 own = group.issued[member];
      if (own == group.furthest || own + REMEMBERED < group.furthest) continue;
      M.warp = g * 4 + member;
      const s32 line = group.last[own % REMEMBERED].line;
      if (Finding* f = M.report(DIVERGENT_ALIGNED, line, 0)) f->extent = LEFT_OUT;
    }
  }
}

// ---- descriptors ---
enum DescriptorFault {
  RESERVED_BITS = 1, BEYOND, BASE_WITHOUT_SWIZZLE, ACROSS_ROWS, BETWEEN_PATTERNS, WRONG_BASE, NOT_ALIKE, OTHER_SWIZZLE,
  STRIDE_OVERLAPS, LEADING_OVERLAPS
};
static void report_descriptor(Machine& M, const MicroOp& op, DescriptorFault fault, bool of_right,
                              const Descriptor& d, u32 beyond = 0) {
  if (Finding* f = M.report(BAD_DESCRIPTOR, op.line, 0, 0, d.start))
    f->detail = fault | of_right << 8, f->extent = d.base, f->extent_bytes = d.span, f->bytes = beyond;
}
static bool check_descriptor(Machine& M, const MicroOp& op, u64 bits, bool of_right) {
  const Descriptor d(bits);
  const bool across = op.operands[OPTIONS] & (of_right ? RIGHT_ACROSS : LEFT_ACROSS);
  const u32 rows = of_right ? op.operands[COLUMNS] : 64;
  auto fault = [&](DescriptorFault which, u32 beyond = 0) {
    report_descriptor(M, op, which, of_right, d, beyond);
    return false;
  };
  if (d.reserved) return fault(RESERVED_BITS);
  if (d.base && !d.span) return fault(BASE_WITHOUT_SWIZZLE);
  if (d.span) {
    const u32 into = d.start % d.pattern() / d.span * d.span;  // bytes of whole rows before it in the pattern
    if (!across && d.start % d.span + 32 > d.span) return fault(ACROSS_ROWS);
    if (!d.base && into) return fault(BETWEEN_PATTERNS);
    if (d.base && into != d.base << 7) return fault(WRONG_BASE);
    // Parts of as many bytes as the pattern; 0 may be meant, to repeat one.
    auto overlaps = [&](u32 distance) { return distance && distance < d.pattern(); };
    if (overlaps(d.stride) && (across || rows > 8)) return fault(STRIDE_OVERLAPS, d.stride);
    if (overlaps(d.leading) && across && rows > d.span / 2) return fault(LEADING_OVERLAPS, d.leading);
  }
  u32 end = 0;
  d.pieces(across, 0, rows, [&](u32 address) { end = greatest(end, address + 16); });
  return end <= M.shared_bytes || fault(BEYOND, end);
}

// ---- registers ---
static ProductRegisters& own_registers(Machine& M, Warp& W) {
  if (!W.products_of) {
    W.products_of = std::make_shared<ProductRegisters>();
    W.products_of->uses.resize(M.program->register_bytes / PLACE + 1);
  }
  return *W.products_of;
}
static bool in_flight(const Warp& W, const RegisterUse& use) {
  return use.number && use.number + W.products.size() > W.products_of->products;
}
static void report_touched(Machine& M, const MicroOp& op, Act act, const RegisterUse& use) {
  Finding* f = M.report_access(WGMMA_REGISTERS, op.line, 0, act, GENERIC, 0, 0, use.op->line);
  if (f) f->detail = use.factor;
}
// Of an instruction that is no wgmma. nvcc moves a mov behind a wgmma.fence, as no operand of that holds it
// back; so it counts as if it stood behind the last product.
// operands: whether it is a mov, how many it reads, how many it writes, their places
static void touch_registers(Machine& M, Warp& W, u8*, const MicroOp& op) {
  ProductRegisters& own = own_registers(M, W);
  const u32 reads = op.operands[1], all = reads + op.operands[2];
  const u32 fence = op.operands[0] ? own.fences_before : own.fences;
  for (u32 k = 0; k < all; ++k) {
    RegisterUse& use = own.uses[op.operands[3 + k] / PLACE];
    const bool writes = k >= reads;
    if (in_flight(W, use) && (writes || !use.factor))
      report_touched(M, op, writes ? WRITE : READ, use);
    if (writes) use.fence = fence, use.written = op.line;
  }
}
static bool same_sums(const MicroOp& one, const MicroOp& other) {
  const u32 *a = one.operands, *b = other.operands, bytes = 4 * (a[SUM_COUNT] + 1);
  return a[COLUMNS] == b[COLUMNS] && a[SUM_KIND] == b[SUM_KIND] &&
         !memcmp(a + SUM_COUNT, b + SUM_COUNT, bytes);
}
static void claim_registers(Machine& M, Warp& W, const MicroOp& op) {
  ProductRegisters& own = own_registers(M, W);
  bool told = false;
  auto claim = [&](u32 place, bool factor) {
    RegisterUse& use = own.uses[place / PLACE];
    auto clashes = [&] { return factor ? !use.factor : use.factor || !same_sums(*use.op, op); };
    if (!told && in_flight(W, use) && clashes()) {
      report_touched(M, op, factor ? READ : WRITE, use);
      told = true;
    }
    if (!told && use.fence >= own.fences) {
      if (Finding* f = M.report(UNFENCED_WGMMA, op.line, 0, use.written)) f->detail = factor;
      told = true;
    }
    use.op = &op, use.number = own.products + 1, use.factor = factor;
  };
  if (op.operands[OPTIONS] & IN_REGISTERS)
    for (u32 k = 0; k < 4; ++k) claim(op.operands[LEFT + k], true);
  for (u32 k = 0; k < op.operands[SUM_COUNT]; ++k) claim(op.operands[SUMS + k], false);
  own.products++, own.fences_before = own.fences;
}
static void fence_registers(Machine& M, Warp& W, u8*, const MicroOp& op) {
  if (whole_group(M, W, op.line)) own_registers(M, W).fences++;
}

// ---- products ---
static bool same_in_all_lanes(const u64* values) {
  for (int l = 1; l < 32; ++l)
    if (values[l] != values[0]) return false;
  return true;
}
// A model: pieces of A and of B come from shared memory once for the warpgroup, 128 bytes in a wavefront.
static void count_product(Machine& M, const MicroOp& op) {
  if (!(M.flags & COUNT) || op.counter < 0 || M.warp % 4) return;
  const u32 rows = (op.operands[OPTIONS] & IN_REGISTERS ? 0 : 64) + op.operands[COLUMNS];
  const u32 wavefronts = rows * 32 / 128;
  M.counters[op.counter].add(wavefronts, wavefronts);
}
// A piece that a box has brought in another swizzle than the descriptor's lies in another place.
static bool misplaced(Machine& M, const MicroOp& op, const Descriptor& d, bool of_right, u32 address) {
  const s32 line = M.cta->shadow[address >> M.granule_shift].write_line;
  const auto found = M.swizzles.find(line);
  if (found == M.swizzles.end() || found->second == MIXED || d.base) return false;
  if (swizzled(address, found->second) == swizzled(address, d.span)) return false;
  if (Finding* f = M.report(BAD_DESCRIPTOR, op.line, 0, line, d.start))
    f->detail = OTHER_SWIZZLE | of_right << 8, f->extent = found->second, f->extent_bytes = d.span;
  return true;
}
// What a warp reads: its own rows of A, and one quarter of B, each time another one, for the whole warpgroup.
static void touch_factors(Machine& M, const Operation& operation, const Product& p, u32 turn) {
  const u32 options = p.op->operands[OPTIONS], columns = p.op->operands[COLUMNS];
  bool told = M.swizzles.empty();
  auto touch = [&](const Descriptor& d, bool of_right, u32 address) {
    touch_shared(M, operation, *M.cta, address, 16, READ);
    if (!told) told = misplaced(M, *p.op, d, of_right, address);
  };
  const Descriptor left(p.left), right(p.right);
  if (!(options & IN_REGISTERS))
    left.pieces(options & LEFT_ACROSS, p.member * 16, 16, [&](u32 address) { touch(left, false, address); });
  const u32 quarter = (p.member + turn) % 4;
  u32 piece = 0;
  right.pieces(options & RIGHT_ACROSS, 0, columns, [&](u32 address) {
    if (piece++ * 4 / (2 * columns) == quarter) touch(right, true, address);
  });
}
// For who watches: a product, and of the first warp's the pieces that the warpgroup reads.
static void note_product(Machine& M, const MicroOp& op, const Product& p) {
  const u32 options = op.operands[OPTIONS];
  const bool in_registers = options & IN_REGISTERS;
  const Descriptor left(p.left), right(p.right);
  const u32 number = note_event(M, {MULTIPLIED, 0, 0, (u32)M.warp, NONE, in_registers ? NONE : left.start,
                                    right.start, 0, op.operands[COLUMNS], options, 0, op.line}, *M.cta);
  if (p.member) return;
  u32 at = 0;
  auto read = [&](u32 address) { note_moved(M, {number, at++, address, 16}); };
  if (!in_registers) left.pieces(options & LEFT_ACROSS, 0, 64, read);
  at = RIGHT_FACTOR;
  right.pieces(options & RIGHT_ACROSS, 0, op.operands[COLUMNS], read);
}
// operands: see ProductOperand
static void multiply(Machine& M, Warp& W, u8* R, const MicroOp& op) {
  const bool from_registers = op.operands[OPTIONS] & IN_REGISTERS;
  const u64 *right = (const u64*)OPERAND(RIGHT), *left = from_registers ? right : (const u64*)OPERAND(LEFT);
  bool alike = true;
  if (!whole_group(M, W, op.line, &alike, left[0], right[0])) return;
  alike &= same_in_all_lanes(left) && same_in_all_lanes(right);
  if (!alike) report_descriptor(M, op, NOT_ALIKE, false, Descriptor(left[0]));
  claim_registers(M, W, op);
  count_product(M, op);
  Product p{&op, R, left[0], right[0], (u32)M.warp % 4, WORDS(ADDS)[0] != 0, {}};
  if (from_registers) p.rows = rows_in_registers(R, op.operands + LEFT, op.operands[LEFT_KIND]);
  if (M.watched) note_product(M, op, p);
  Operation operation = begun_product(M, op);
  const bool left_is_sound = from_registers || check_descriptor(M, op, p.left, false);
  if (check_descriptor(M, op, p.right, true) && left_is_sound)
    touch_factors(M, operation, p, W.products_of->products);
  operation.perform = [p = std::move(p)](Machine& M) { execute(M, p); };
  issue_product(M, W, std::move(operation));
}

// operands: registers of a thread
static void ask_for_registers(Machine& M, Warp& W, u8*, const MicroOp& op) {
  if (!whole_group(M, W, op.line)) return;
  Warpgroup& own = warpgroup_of(M);
  own.asked[M.warp % 4] = op.operands[0], own.line = op.line;
  u32 all = 0;
  for (const Warpgroup& group : M.cta->warpgroups)
    for (u32 asked : group.asked) all += asked * 32;
  if (all <= REGISTERS) return;
  if (Finding* f = M.report(TOO_MANY_REGISTERS, op.line, 0)) f->detail = op.operands[0], f->bytes = all;
}

static const Family warpgroup{{"wgmma", multiply},
                              {"wgmma.fence", fence_registers},
                              {"wgmma.registers", touch_registers},
                              {"setmaxnreg", ask_for_registers}};
