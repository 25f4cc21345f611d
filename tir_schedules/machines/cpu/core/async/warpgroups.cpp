// wgmma: products that the four warps of a warpgroup begin together, and the wait for them. Numbers are in products.cpp;
// what is wrong with descriptors and registers is found in check/warpgroups.cpp.
#include "async/async.h"
#include "async/products.h"
#include "check/check.h"
#include "observe/observer.h"

typedef ops::ProductOption Option;

static bool same_in_all_lanes(const u64* values) {
  for (int l = 1; l < 32; ++l)
    if (values[l] != values[0]) return false;
  return true;
}
// What a warp reads: its own rows of A, and one quarter of B, each time another one, for the whole warpgroup.
static void check_factors(Machine& M, const Operation& operation, const Product& p, u32 turn) {
  const u32 options = p.op.options(), columns = p.op.columns();
  bool told = M.swizzles.empty();
  auto touch = [&](const Descriptor& d, bool of_right, u32 address) {
    check_unit_shared(M, operation, *M.cta, address, 16, READ);
    if (!told) told = check_swizzle(M, p.op, d, of_right, address);
  };
  const Descriptor left(p.left), right(p.right);
  if (!p.op.rows().count)
    left.pieces(options & Option::LEFT_ACROSS, p.member * 16, 16, [&](u32 address) { touch(left, false, address); });
  const u32 quarter = (p.member + turn) % 4;
  u32 piece = 0;
  right.pieces(options & Option::RIGHT_ACROSS, 0, columns, [&](u32 address) {
    if (piece++ * 4 / (2 * columns) == quarter) touch(right, true, address);
  });
}
// A product, and of the first warp's the pieces that the warpgroup reads.
static void tell_product(const Machine& M, const ops::Wgmma& op, const Product& p) {
  const u32 options = op.options();
  const bool in_registers = op.rows().count;
  tell(M, WarpgroupProduct{op.counter(), (in_registers ? 0 : 64) + op.columns()});
  if (!M.unit_events) return;
  const Descriptor left(p.left), right(p.right);
  Event event = event_of(MULTIPLIED, op.line(), NONE, in_registers ? NONE : left.start, 0, op.columns());
  event.warp = M.warp, event.other = right.start, event.row = options;
  UnitEvent made{event, *M.cta, {}};
  if (!p.member) {
    u32 at = 0;
    auto read = [&](u32 address) { made.moved.push_back({0, at++, address, 16}); };
    if (!in_registers) left.pieces(options & Option::LEFT_ACROSS, 0, 64, read);
    at = RIGHT_FACTOR;
    right.pieces(options & Option::RIGHT_ACROSS, 0, op.columns(), read);
  }
  tell(M, made);
}
static void issue_product(Machine& M, Warp& W, Operation&& operation) {
  W.products.push_back(std::move(operation));
  if (!at_once(M)) return;
  for (Operation& each : W.products) perform(M, each);  // one after another: they may add to the same sums
}
static void execute(Machine& M, Warp& W, const ops::Wgmma& op) {
  const bool from_registers = op.rows().count;
  const u64 *right = op.right(), *left = from_registers ? right : op.left();
  bool alike = true;
  if (!whole_group(M, W, op.line(), &alike, left[0], right[0])) return;
  alike &= same_in_all_lanes(left) && same_in_all_lanes(right);
  if (!alike) report_different(M, op, left[0]);
  claim_registers(M, W, op);
  Product p{op, left[0], right[0], (u32)M.warp % 4, op.adds()[0] != 0, {}};
  if (from_registers) p.rows = rows_in_registers(op.rows(), op.left_kind());
  tell_product(M, op, p);
  Operation operation = begin_operation(M, product_unit(M.warp), op, W.active);
  const bool left_is_sound = from_registers || check_descriptor(M, op, p.left, false);
  if (check_descriptor(M, op, p.right, true) && left_is_sound)
    check_factors(M, operation, p, W.products_of->products);
  if (!M.traced || !M.traced->idle) operation.perform = [p = std::move(p)](Machine& M) { execute(M, p); };
  issue_product(M, W, std::move(operation));
}

// ---- groups ---
static void execute(Machine& M, Warp& W, const ops::CommitProducts& op) {
  tell_group(M, COMMITTED, op.line(), W.active, W.product_groups.size(), 0);
  for (Operation& each : W.products)
    if (each.group == NONE) each.group = W.product_groups.size();
  W.product_groups.push_back(M.epoch++);
  ++M.stores;
}
// A product is one operation of the warpgroup: it is done when all four warps have asked for it. PTX does not say so;
// but a kernel in which one warp alone tells that a stage is free relies on it, and works.
static void execute(Machine& M, Warp& W, const ops::WaitForProducts& op) {
  const u64 committed = W.product_groups.size();
  if (committed <= op.open()) return;
  const u32 done = committed - op.open(), first = M.warp / 4 * 4;
  const u32 end = least<u32>(first + 4, M.cta->warps.size());
  for (u32 w = first; w < end; ++w)
    if (M.cta->warps[w].product_groups.size() < done) {
      W.refused = W.active, W.waits_for = PRODUCTS_OF_OTHERS;
      return;
    }
  tell_group(M, DRAINED, op.line(), W.active, done, op.open());
  std::vector<ClockEntry> entries;
  for (u32 w = first; w < end; ++w) {
    for (Operation& each : M.cta->warps[w].products)
      if (each.group < done) perform(M, each);
    const u32 unit = product_unit(w), epoch = M.cta->warps[w].product_groups[done - 1];
    entries.push_back({M.block_number(), unit / 32, 1u << unit % 32, epoch});
  }
  while (!W.products.empty() && W.products.front().group < done) W.products.pop_front();
  acquire(M, W.active, clock_of(std::move(entries)));
}
