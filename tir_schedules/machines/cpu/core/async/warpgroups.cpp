// wgmma: products that the four warps of a warpgroup begin together, and who waits for them. Numbers are in products.cpp;
// what is wrong with descriptors and registers is found in check/warpgroups.cpp.
#include "async/async.h"
#include "async/products.h"
#include "check/check.h"
#include "observe/observer.h"
#include "state/operands.h"

static bool same_in_all_lanes(const u64* values) {
  for (int l = 1; l < 32; ++l)
    if (values[l] != values[0]) return false;
  return true;
}
// What a warp reads: its own rows of A, and one quarter of B, each time another one, for the whole warpgroup.
static void check_factors(Machine& M, const Operation& operation, const Product& p, u32 turn) {
  const u32 options = p.op->operands[OPTIONS], columns = p.op->operands[COLUMNS];
  bool told = M.swizzles.empty();
  auto touch = [&](const Descriptor& d, bool of_right, u32 address) {
    check_unit_shared(M, operation, *M.cta, address, 16, READ);
    if (!told) told = check_swizzle(M, *p.op, d, of_right, address);
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
// A product, and of the first warp's the pieces that the warpgroup reads.
static void tell_product(const Machine& M, const MicroOp& op, const Product& p) {
  const u32 options = op.operands[OPTIONS], columns = op.operands[COLUMNS];
  const bool in_registers = options & IN_REGISTERS;
  tell(M, WarpgroupProduct{op.counter, (in_registers ? 0 : 64) + columns});
  if (!M.unit_events) return;
  const Descriptor left(p.left), right(p.right);
  Event event{MULTIPLIED};
  event.warp = M.warp, event.lanes = NONE, event.address = in_registers ? NONE : left.start;
  event.other = right.start, event.bytes = columns, event.row = options, event.line = op.line;
  UnitEvent made{event, *M.cta, {}};
  if (!p.member) {
    u32 at = 0;
    auto read = [&](u32 address) { made.moved.push_back({0, at++, address, 16}); };
    if (!in_registers) left.pieces(options & LEFT_ACROSS, 0, 64, read);
    at = RIGHT_FACTOR;
    right.pieces(options & RIGHT_ACROSS, 0, columns, read);
  }
  tell(M, made);
}
static void issue_product(Machine& M, Warp& W, Operation&& operation) {
  W.products.push_back(std::move(operation));
  if (!at_once(M)) return;
  for (Operation& each : W.products) perform(M, each);  // one after another: they may add to the same sums
}
// operands: see ProductOperand
static void multiply(Machine& M, Warp& W, u8* R, const MicroOp& op) {
  const bool from_registers = op.operands[OPTIONS] & IN_REGISTERS;
  const u64 *right = (const u64*)OPERAND(RIGHT), *left = from_registers ? right : (const u64*)OPERAND(LEFT);
  bool alike = true;
  if (!whole_group(M, W, op.line, &alike, left[0], right[0])) return;
  alike &= same_in_all_lanes(left) && same_in_all_lanes(right);
  if (!alike) report_different(M, op, left[0]);
  claim_registers(M, W, op);
  Product p{&op, R, left[0], right[0], (u32)M.warp % 4, WORDS(ADDS)[0] != 0, {}};
  if (from_registers) p.rows = rows_in_registers(R, op.operands + LEFT, op.operands[LEFT_KIND]);
  tell_product(M, op, p);
  Operation operation = begin_operation(M, product_unit(M.warp), op, W.active);
  const bool left_is_sound = from_registers || check_descriptor(M, op, p.left, false);
  if (check_descriptor(M, op, p.right, true) && left_is_sound)
    check_factors(M, operation, p, W.products_of->products);
  operation.perform = [p = std::move(p)](Machine& M) { execute(M, p); };
  issue_product(M, W, std::move(operation));
}

// ---- groups ---
static void tell_group(const Machine& M, Happening what, const MicroOp& op, u32 lanes, u32 group, u32 open) {
  Event event{what};
  event.lanes = lanes, event.phase = group, event.bytes = open, event.line = op.line;
  tell_event(M, event, *M.cta);
}
static void commit_products(Machine& M, Warp& W, u8*, const MicroOp& op) {
  tell_group(M, COMMITTED, op, W.active, W.product_groups.size(), 0);
  for (Operation& each : W.products)
    if (each.group == NONE) each.group = W.product_groups.size();
  W.product_groups.push_back(M.epoch++);
  ++M.stores;
}
// A product is one operation of the warpgroup: it is done when all four warps have asked for it. PTX does not say so;
// but a kernel in which one warp alone tells that a stage is free relies on it, and works. operands: groups
// that may stay in flight
static void wait_for_products(Machine& M, Warp& W, u8*, const MicroOp& op) {
  const u64 committed = W.product_groups.size();
  if (committed <= op.operands[0]) return;
  const u32 done = committed - op.operands[0], first = M.warp / 4 * 4;
  const u32 end = least<u32>(first + 4, M.cta->warps.size());
  for (u32 w = first; w < end; ++w)
    if (M.cta->warps[w].product_groups.size() < done) {
      W.refused = W.active, W.waits_for = PRODUCTS_OF_OTHERS;
      return;
    }
  tell_group(M, DRAINED, op, W.active, done, op.operands[0]);
  std::vector<ClockEntry> groups;
  for (u32 w = first; w < end; ++w) {
    for (Operation& each : M.cta->warps[w].products)
      if (each.group < done) perform(M, each);
    const u32 unit = product_unit(w), time = M.cta->warps[w].product_groups[done - 1];
    groups.push_back({M.block_number(), unit / 32, 1u << unit % 32, time});
  }
  while (!W.products.empty() && W.products.front().group < done) W.products.pop_front();
  acquire(M, W.active, clock_of(std::move(groups)));
}

static const Family warpgroup{{"wgmma", multiply},
                              {"wgmma.commit_group", commit_products},
                              {"wgmma.wait_group", wait_for_products}};
