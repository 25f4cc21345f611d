// Values that nothing has written: of variables that have none yet, of local memory, what a shuffle takes from lanes
// that its mask does not name, and what loads give that nvcc has made ahead of their condition. Each register that may
// hold one has a place that says for which lanes it does. Moving such a value about is not a fault; a fault is to compute
// an address with it, to decide a branch by it, or to store it where other threads see it.
#include "check/check.h"
#include "operands.h"

static void report_use(Machine& M, const MicroOp& op, const Undefined& u, u32 lanes) {
  if (!lanes) return;
  const Space space = u.bytes ? (Space)u.space : GENERIC;
  const int lane = __builtin_ctz(lanes);
  u64 address = u.address;
  if (u.bytes && space != LOCAL) address = M.cta->warps[M.warp].unwritten[(u64)u.line << 2 | u.address][lane];
  Finding* f = report_access(M, UNINITIALIZED, u.line ? u.line : op.line, lane, READ, space, address, u.bytes,
                             op.line);
  if (f) f->extent = u.extent, f->extent_bytes = u.extent_bytes, f->detail = space != LOCAL && u.line;
}
static void add(Undefined& to, const Undefined& from, u32 lanes) {
  if (!lanes) return;
  const u32 before = to.lanes;
  if (!before) to = from;
  to.lanes = before | lanes;
}
static void assign(Undefined& to, Undefined from, u32 active) {
  const u32 others = to.lanes & ~active, own = from.lanes & active;
  if (!own) {
    to.lanes = others;
    return;
  }
  to = from, to.lanes = others | own;
}
static void execute(Machine&, Warp& W, const ops::Pass& op) {
  const Registers<Undefined> results = op.results(), sources = op.sources();
  Undefined found{};
  switch (op.how()) {
    case ops::Flow::EACH:
      for (u32 k = 0; k < results.count; ++k)
        if (results[k]) assign(*results[k], sources[k] ? *sources[k] : found, W.active);
      return;
    case ops::Flow::CHOSEN: {
      const u32 holds = ballot(op.predicate()), lanes[3] = {holds, ~holds, NONE};
      for (u32 k = 0; k < 3; ++k)
        if (const Undefined* source = sources[k]) add(found, *source, source->lanes & W.active & lanes[k]);
      break;
    }
    case ops::Flow::ALL_OF: {
      u32 lanes = W.active;
      for (u32 k = 0; k < sources.count; ++k) lanes &= sources[k]->lanes;
      if (lanes) add(found, *sources[0], lanes);
      break;
    }
    default:
      for (u32 k = 0; k < sources.count; ++k) add(found, *sources[k], sources[k]->lanes & W.active);
  }
  for (u32 k = 0; k < results.count; ++k) assign(*results[k], found, W.active);
}
static void execute(Machine& M, Warp& W, const ops::Use& op) {
  const Registers<Undefined> used = op.used();
  for (u32 k = 0; k < used.count; ++k) report_use(M, op, *used[k], used[k]->lanes & W.active);
}
static void execute(Machine&, Warp& W, const ops::StartSums& op) {
  const u32 anew = W.active & ~ballot(op.adds());
  const Registers<Undefined> sums = op.sums();
  for (u32 k = 0; k < sums.count; ++k) sums[k]->lanes &= ~anew;
}
static void execute(Machine&, Warp& W, const ops::Shuffled& op) {
  Undefined found{0, op.line()};
  ACTIVE(W.active, {
    bool valid;
    const int from = shuffle_source(op.mode(), l, op.lane()[l], op.clamp()[l], valid);
    found.lanes |= (u32)!(op.members()[l] >> from & 1) << l;
  })
  assign(*op.undefined(), found, W.active);
}

// What the load between the two finds unwritten is not a fault yet.
static void execute(Machine& M, Warp&, const ops::Follow& op) { M.followed = {op.width(), {}}; }
static void execute(Machine& M, Warp& W, const ops::Followed& op) {
  const Registers<Undefined> values = op.values();
  for (u32 k = 0; k < values.count; ++k)
    if (values[k]) assign(*values[k], M.followed.found[k], W.active);
  M.followed.width = 0;
}

// Flags of bytes of local memory; nullptr for another space.
static u8* written(Machine& M, u64 address, u32 bytes, int lane) {
  const u64 offset = address - LOCAL_WINDOW;
  if (address < LOCAL_WINDOW || offset + bytes > M.launch.local_bytes) return nullptr;
  return M.local_written_of(lane) + offset;
}
// An element is undefined when no byte of it was written: padding is copied along with what it pads.
static void execute(Machine& M, Warp& W, const ops::UndefinedLoad& op) {
  const Registers<Undefined> values = op.values();
  const u32 width = op.width(), count = values.count;
  const Address where = op.where();
  const Extent& e = op.extent();
  Undefined found[4] = {};
  ACTIVE(W.active, {
    const u64 address = where[l];
    const u8* flags = written(M, address, width * count, l);
    const u64 offset = address - LOCAL_WINDOW;
    const bool outside = e.space == LOCAL && (offset < e.low || offset + width * count > e.high);
    if (outside) continue;  // which is a fault of its own
    for (u32 k = 0; flags && k < count; ++k) {
      bool any = false;
      for (u32 byte = 0; byte < width; ++byte) any |= flags[k * width + byte];
      if (any) continue;
      if (!found[k].lanes) {
        found[k] = {0, op.line(), address - LOCAL_WINDOW + k * width, width, 0, 0, LOCAL};
        if (e.space == LOCAL)
          found[k].extent = e.number, found[k].extent_bytes = least(e.high, M.launch.local_bytes) - e.low;
      }
      found[k].lanes |= 1u << l;
    }
  })
  for (u32 k = 0; k < count; ++k)
    if (values[k]) assign(*values[k], found[k], W.active);
}
// Shared memory remembers what is undefined; in global memory it is a fault, unless another element of the
// store is defined, for the same reason.
static void execute(Machine& M, Warp& W, const ops::UndefinedStore& op) {
  const Registers<Undefined> values = op.values();
  const u32 width = op.width(), count = values.count;
  const Address where = op.where();
  const Undefined* worst = nullptr;
  ACTIVE(W.active, {
    const u64 address = where[l];
    u8* flags = written(M, address, width * count, l);
    const bool local = address >= LOCAL_WINDOW && address < LOCAL_WINDOW + WINDOW_BYTES;
    const bool shared = address >= SHARED_WINDOW && address - SHARED_WINDOW + width * count <= M.launch.shared_bytes;
    u32 undefined = 0;
    bool loaded = false;  // ahead, which is no padding
    for (u32 k = 0; k < count; ++k) {
      const bool holds = values[k] && values[k]->lanes >> l & 1;
      undefined += holds;
      if (flags) memset(flags + k * width, !holds, width);
      if (shared && holds)
        GRANULES(M, u32(address - SHARED_WINDOW) + k * width, width, M.cta->shadow[g].undefined = true)
      if (holds) worst = values[k], loaded |= worst->bytes && worst->space != LOCAL;
    }
    if (!local && !shared && undefined && (undefined == count || loaded)) report_use(M, op, *worst, 1u << l);
  })
}
