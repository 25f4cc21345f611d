// Values that nothing has written: of variables that have none yet, of local memory, and what a shuffle takes
// from lanes that its mask does not name. Each register that may hold one has a place that says for which
// lanes it does. Moving such a value about is no fault; a fault is to compute an address with it, to decide a
// branch by it, or to store it where other threads see it.
#include "check/check.h"
#include "state/operands.h"

#define UNDEFINED(k) (*(Undefined*)OPERAND(k))

static void report_use(Machine& M, const MicroOp& op, const Undefined& u, u32 lanes) {
  if (!lanes) return;
  const Space space = u.bytes ? LOCAL : GENERIC;
  Finding* f = report_access(M, UNINITIALIZED, u.line ? u.line : op.line, __builtin_ctz(lanes), READ, space,
                               u.address, u.bytes, op.line);
  if (f) f->extent = u.extent, f->extent_bytes = u.extent_bytes, f->detail = space == GENERIC && u.line;
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
enum Flow { ANY_OF, ALL_OF, CHOSEN, EACH };
// operands: flow, results, sources, then the places of the results and of the sources; CHOSEN: of either
// source and of the predicate, each NONE if always defined, and the predicate
static void flow(Machine&, Warp& W, u8* R, const MicroOp& op) {
  const u32 results = op.operands[1], sources = op.operands[2], first = 3 + results;
  Undefined found{};
  switch (op.operands[0]) {
    case EACH:
      for (u32 k = 0; k < results; ++k)
        if (op.operands[3 + k] != NONE)
          assign(UNDEFINED(3 + k), op.operands[first + k] == NONE ? found : UNDEFINED(first + k), W.active);
      return;
    case CHOSEN: {
      const u32 holds = ballot(WORDS(first + 3)), lanes[3] = {holds, ~holds, NONE};
      for (u32 k = 0; k < 3; ++k) {
        if (op.operands[first + k] == NONE) continue;
        add(found, UNDEFINED(first + k), UNDEFINED(first + k).lanes & W.active & lanes[k]);
      }
      break;
    }
    case ALL_OF: {
      u32 lanes = W.active;
      for (u32 k = 0; k < sources; ++k) lanes &= UNDEFINED(first + k).lanes;
      if (lanes) add(found, UNDEFINED(first), lanes);
      break;
    }
    default:
      for (u32 k = 0; k < sources; ++k)
        add(found, UNDEFINED(first + k), UNDEFINED(first + k).lanes & W.active);
  }
  for (u32 k = 0; k < results; ++k) assign(UNDEFINED(3 + k), found, W.active);
}
// operands: count, then the places of what is used
static void use(Machine& M, Warp& W, u8* R, const MicroOp& op) {
  for (u32 k = 1; k <= op.operands[0]; ++k) report_use(M, op, UNDEFINED(k), UNDEFINED(k).lanes & W.active);
}

// Of a product. operands: predicate that says whether what the sums held counts, how many there are, their places
static void start_sums(Machine&, Warp& W, u8* R, const MicroOp& op) {
  const u32 anew = W.active & ~ballot(WORDS(0));
  for (u32 k = 0; k < op.operands[1]; ++k) UNDEFINED(2 + k).lanes &= ~anew;
}

// Before a shuffle. operands: those of the shuffle, then the place of its result
static void shuffled(Machine&, Warp& W, u8* R, const MicroOp& op) {
  Undefined found{0, op.line};
  ACTIVE(W.active, {
    bool valid;
    const int from = shuffle_source(op.operands[0], l, WORDS(2)[l], WORDS(3)[l], valid);
    found.lanes |= (u32)!(WORDS(6)[l] >> from & 1) << l;
  })
  assign(UNDEFINED(7), found, W.active);
}

static u64 address_of(u8* R, const MicroOp& op, int l) {
  return (op.operands[1] ? ((u64*)OPERAND(0))[l] : WORDS(0)[l]) + op.offset;
}
// Flags of bytes of local memory; nullptr for another space.
static u8* written(Machine& M, u64 address, u32 bytes, int lane) {
  const u64 offset = address - LOCAL_WINDOW;
  if (address < LOCAL_WINDOW || offset + bytes > M.launch.local_bytes) return nullptr;
  return M.local_written_of(lane) + offset;
}
// Beside a load. operands: address, whether it has 64 bits, bytes per element, elements, then the places of
// the registers. An element is undefined when none of its bytes was written: padding is copied along with
// what it pads.
static void load(Machine& M, Warp& W, u8* R, const MicroOp& op) {
  const u32 width = op.operands[2], count = op.operands[3];
  Undefined found[4] = {};
  ACTIVE(W.active, {
    const u64 address = address_of(R, op, l);
    const u8* flags = written(M, address, width * count, l);
    const u64 offset = address - LOCAL_WINDOW;
    const bool outside = op.extent->space == LOCAL &&
                         (offset < op.extent->low || offset + width * count > op.extent->high);
    if (outside) continue;  // which is a fault of its own
    for (u32 k = 0; flags && k < count; ++k) {
      bool any = false;
      for (u32 byte = 0; byte < width; ++byte) any |= flags[k * width + byte];
      if (any) continue;
      if (!found[k].lanes) {
        found[k] = {0, op.line, address - LOCAL_WINDOW + k * width, width, 0, 0};
        const Extent& e = *op.extent;
        if (e.space == LOCAL)
          found[k].extent = e.number, found[k].extent_bytes = least(e.high, M.launch.local_bytes) - e.low;
      }
      found[k].lanes |= 1u << l;
    }
  })
  for (u32 k = 0; k < count; ++k)
    if (op.operands[4 + k] != NONE) assign(UNDEFINED(4 + k), found[k], W.active);
}
// Beside a store. operands: as of a load; a place is NONE for a value that is always defined. Shared memory
// remembers what is undefined; in global memory it is a fault, unless another element of the store is
// defined, for the same reason.
static void store(Machine& M, Warp& W, u8* R, const MicroOp& op) {
  const u32 width = op.operands[2], count = op.operands[3];
  const Undefined* worst = nullptr;
  ACTIVE(W.active, {
    const u64 address = address_of(R, op, l);
    u8* flags = written(M, address, width * count, l);
    const bool local = address >= LOCAL_WINDOW && address < LOCAL_WINDOW + WINDOW_BYTES;
    const bool shared = address >= SHARED_WINDOW && address - SHARED_WINDOW + width * count <= M.launch.shared_bytes;
    u32 undefined = 0;
    for (u32 k = 0; k < count; ++k) {
      const bool holds = op.operands[4 + k] != NONE && UNDEFINED(4 + k).lanes >> l & 1;
      undefined += holds;
      if (flags) memset(flags + k * width, !holds, width);
      if (shared && holds)
        GRANULES(M, u32(address - SHARED_WINDOW) + k * width, width, M.cta->shadow[g].undefined = true)
      if (holds) worst = &UNDEFINED(4 + k);
    }
    if (!local && !shared && undefined == count) report_use(M, op, *worst, 1u << l);
  })
}

static const Family undefined{
    {"undefined.flow", flow}, {"undefined.use", use}, {"undefined.shuffled", shuffled}, {"undefined.sums", start_sums},
    {"undefined.load", load}, {"undefined.store", store}};
