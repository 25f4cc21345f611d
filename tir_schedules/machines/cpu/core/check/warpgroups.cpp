// What the four warps of a warpgroup have to execute alike, and what is wrong with descriptors and registers of a wgmma.
#include "check/check.h"
#include "operands.h"
#include "state/descriptors.h"

typedef ops::ProductOption Option;
const u32 REGISTERS = 1 << 16;  // of a multiprocessor

static Warpgroup& warpgroup_of(Machine& M) {
  std::vector<Warpgroup>& groups = M.cta->warpgroups;
  if (groups.empty()) groups.resize((M.cta->warps.size() + 3) / 4);
  return groups[M.warp / 4];
}
bool whole_group(Machine& M, const Warp& W, s32 line, bool* alike, u64 left, u64 right) {
  if (!whole_warp(M, W, line)) return false;
  if (M.warp / 4 * 4 + 4 > (int)M.cta->warps.size()) {
    if (Finding* f = report(M, DIVERGENT_ALIGNED, line, 0))
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
    if (Finding* f = report(M, DIVERGENT_ALIGNED, line, 0, there.line)) f->extent = DIFFERENT_WARPS;
    return false;
  }
  if (alike) *alike = there.left == left && there.right == right;
  return true;
}

// Registers move from warps to others of the block, which has as many as it was launched with.
static void check_registers(Machine& M) {
  const std::vector<Warpgroup>& groups = M.cta->warpgroups;
  const u32 launched = M.launch.registers * M.cta->warps.size() * 32;
  u32 all = 0, most = 0;
  for (const Warpgroup& group : groups) {
    for (u32 asked : group.asked) all += (asked ? asked : M.launch.registers) * 32;
    if (group.asked[0] > groups[most].asked[0]) most = &group - groups.data();
  }
  if (!M.launch.registers || !groups[most].line || all <= launched) return;
  M.warp = most * 4;
  if (Finding* f = report(M, TOO_MANY_REGISTERS, groups[most].line, 0))
    f->detail = groups[most].asked[0], f->bytes = all, f->extent_bytes = launched;
}
void check_warpgroups(Machine& M) {
  check_registers(M);
  for (u32 g = 0; g < M.cta->warpgroups.size(); ++g) {
    const Warpgroup& group = M.cta->warpgroups[g];
    for (u32 member = 0; member < 4; ++member) {
      const u32 own = group.issued[member];
      if (own == group.furthest || own + REMEMBERED < group.furthest) continue;
      M.warp = g * 4 + member;
      const s32 line = group.last[own % REMEMBERED].line;
      if (Finding* f = report(M, DIVERGENT_ALIGNED, line, 0)) f->extent = LEFT_OUT;
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
  if (Finding* f = report(M, BAD_DESCRIPTOR, op.line, 0, 0, d.start))
    f->detail = fault | of_right << 8, f->extent = d.base, f->extent_bytes = d.span, f->bytes = beyond;
}
bool check_descriptor(Machine& M, const ops::Wgmma& op, u64 bits, bool of_right) {
  const Descriptor d(bits);
  const bool across = op.options() & (of_right ? Option::RIGHT_ACROSS : Option::LEFT_ACROSS);
  const u32 rows = of_right ? op.columns() : 64;
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
  return end <= M.launch.shared_bytes || fault(BEYOND, end);
}

// ---- registers ---
static ProductRegisters& own_registers(Machine& M, Warp& W) {
  if (!W.products_of) {
    W.products_of = std::make_shared<ProductRegisters>();
    W.products_of->uses.resize(M.program.register_bytes / PLACE + 1);
  }
  return *W.products_of;
}
static bool in_flight(const Warp& W, const RegisterUse& use) {
  return use.number && use.number + W.products.size() > W.products_of->products;
}
static void report_touched(Machine& M, const MicroOp& op, Act act, const RegisterUse& use) {
  Finding* f = report_access(M, WGMMA_REGISTERS, op.line, 0, act, GENERIC, 0, 0, use.op.line());
  if (f) f->detail = use.factor;
}
// Of an instruction that is not a wgmma. nvcc moves a mov behind a wgmma.fence, as no operand of that holds it
// back; so it counts as if it stood behind the last product.
static void execute(Machine& M, Warp& W, const ops::TouchRegisters& op) {
  ProductRegisters& own = own_registers(M, W);
  const u32 fence = op.moves() ? own.fences_before : own.fences;
  auto touch = [&](const Registers<u32>& registers, bool writes) {
    for (u32 k = 0; k < registers.count; ++k) {
      RegisterUse& use = own.uses[registers.places[k] / PLACE];
      if (in_flight(W, use) && (writes || !use.factor))
        report_touched(M, op, writes ? WRITE : READ, use);
      if (writes) use.fence = fence, use.written = op.line();
    }
  };
  touch(op.read(), false), touch(op.written(), true);
}
static bool same_sums(const ops::Wgmma& one, const ops::Wgmma& other) {
  const Registers<u8> a = one.sums(), b = other.sums();
  return one.columns() == other.columns() && one.sum_kind() == other.sum_kind() && a.count == b.count &&
         !memcmp(a.places, b.places, 4 * a.count);
}
void claim_registers(Machine& M, Warp& W, const ops::Wgmma& op) {
  ProductRegisters& own = own_registers(M, W);
  bool told = false;
  auto claim = [&](u32 place, bool factor) {
    RegisterUse& use = own.uses[place / PLACE];
    auto clashes = [&] { return factor ? !use.factor : use.factor || !same_sums(use.op, op); };
    if (!told && in_flight(W, use) && clashes()) {
      report_touched(M, op, factor ? READ : WRITE, use);
      told = true;
    }
    if (!told && use.fence >= own.fences) {
      if (Finding* f = report(M, UNFENCED_WGMMA, op.line(), 0, use.written)) f->detail = factor;
      told = true;
    }
    use.op = op, use.number = own.products + 1, use.factor = factor;
  };
  const Registers<u32> rows = op.rows();
  const Registers<u8> sums = op.sums();
  for (u32 k = 0; k < rows.count; ++k) claim(rows.places[k], true);
  for (u32 k = 0; k < sums.count; ++k) claim(sums.places[k], false);
  own.products++, own.fences_before = own.fences;
}
static void execute(Machine& M, Warp& W, const ops::FenceProducts& op) {
  if (whole_group(M, W, op.line())) own_registers(M, W).fences++;
}

void report_different(Machine& M, const MicroOp& op, u64 descriptor) {
  report_descriptor(M, op, NOT_ALIKE, false, Descriptor(descriptor));
}
bool check_swizzle(Machine& M, const MicroOp& op, const Descriptor& d, bool of_right, u32 address) {
  const s32 line = M.cta->shadow[address >> M.launch.granule_shift].write_line;
  const auto found = M.swizzles.find(line);
  if (found == M.swizzles.end() || found->second == MIXED || d.base) return false;
  if (swizzled(address, found->second) == swizzled(address, d.span)) return false;
  if (Finding* f = report(M, BAD_DESCRIPTOR, op.line, 0, line, d.start))
    f->detail = OTHER_SWIZZLE | of_right << 8, f->extent = found->second, f->extent_bytes = d.span;
  return true;
}
static void execute(Machine& M, Warp& W, const ops::AskForRegisters& op) {
  if (!whole_group(M, W, op.line()) || M.launch.registers == NONE) return;
  Warpgroup& own = warpgroup_of(M);
  own.asked[M.warp % 4] = op.asked(), own.line = op.line();
  u32 all = 0;
  for (const Warpgroup& group : M.cta->warpgroups)
    for (u32 asked : group.asked) all += asked * 32;
  if (all <= REGISTERS) return;
  if (Finding* f = report(M, TOO_MANY_REGISTERS, op.line(), 0)) f->detail = op.asked(), f->bytes = all;
}
