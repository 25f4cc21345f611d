// cp.async: data is read at issue and reaches shared memory at the wait that covers its group.
#include "async/async.h"
#include "check/check.h"
#include "observe/observer.h"
#include "operands.h"

const u32 UNCOMMITTED = NONE;
static void execute(Machine& M, Warp& W, const ops::CopyAsync& op) {
  ALIGNED u32 target[32];
  ALIGNED u64 source[32];
  const u32 bytes = op.bytes(), *available = op.available();
  const s32 counter = op.counter();
  op.target().fill(target), op.source().fill(source);
  u32 reads = 0;
  const u64 first = W.copies.size();
  ACTIVE(W.active, {
    const u32 valid = available ? least(available[l], bytes) : bytes;
    if (!at_shared(M, target[l], bytes, op, l, WRITE)) continue;
    AsyncCopy copy = {target[l], bytes, UNCOMMITTED, (u32)l, op.line(), {0}};
    if (valid) {
      reads |= 1u << l;
      const bool aligned = valid == bytes || !(source[l] & (bytes - 1));  // of a part, too
      if (!aligned) report_access(M, MISALIGNED, op.line(), l, READ, GLOBAL, source[l], bytes);
      const u8* data = aligned ? at_global(M, source[l], valid == bytes ? bytes : 1, op, l, READ, 0) : nullptr;
      if (data && valid < bytes && !at_global(M, source[l] + valid - 1, 1, op, l, READ, 0)) data = nullptr;
      if (data) memcpy(copy.data, data, valid);
      else memset(copy.data, 0xff, bytes);
    }
    check_shared(M, target[l], bytes, WRITE, l, op.line());
    GRANULES(M, target[l], bytes, M.cta->shadow[g].in_flight++)
    W.copies.push_back(copy);
  })
  tell(M, AsyncCopies{counter, op.source_counter(), op.line(), target, available, source, W.active, reads, bytes,
                      op.bypasses(), W.copies.data() + first, W.copies.size() - first});
}
static void execute(Machine& M, Warp& W, const ops::CommitCopies&) {
  for (AsyncCopy& copy : W.copies)
    if (copy.group == UNCOMMITTED && W.active >> copy.lane & 1) copy.group = W.groups[copy.lane];
  ACTIVE(W.active, W.groups[l]++)
}
// Of those that `arrives` says so of, the copies under way reach shared memory.
template <class F> static void land(Machine& M, Warp& W, F arrives) {
  u64 kept = 0;
  for (AsyncCopy& copy : W.copies) {
    if (!arrives(copy)) {
      W.copies[kept++] = copy;
      continue;
    }
    memcpy(M.cta->shared + copy.target, copy.data, copy.bytes);
    bool others = false;
    GRANULES(M, copy.target, copy.bytes, others |= --M.cta->shadow[g].in_flight > 0)
    if (!others) check_shared(M, copy.target, copy.bytes, WRITE, copy.lane, copy.line);
  }
  W.copies.resize(kept);
}
void land_copies(Machine& M, Warp& W, u32 lanes) {
  land(M, W, [&](const AsyncCopy& copy) { return lanes >> copy.lane & 1; });
}
static void execute(Machine& M, Warp& W, const ops::WaitForCopies& op) {
  const bool all = op.open() == NONE;
  const u32 pending = all ? 0 : op.open();
  land(M, W, [&](const AsyncCopy& copy) {
    const bool covered = all || (copy.group != UNCOMMITTED && copy.group + pending < W.groups[copy.lane]);
    return W.active >> copy.lane & 1 && covered;
  });
}
