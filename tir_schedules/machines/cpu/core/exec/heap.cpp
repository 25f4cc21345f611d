// malloc and free. What malloc gives is a buffer of its own behind those of the launch, so that no stray
// offset reaches another; one that was freed has no bytes left.
#include "exec/machine.h"

static bool is_of_heap(const Machine& M, u64 number) {
  return !M.heap.buffers.empty() && number >= M.heap.first && number < M.heap.buffers.size();
}
// An address before the start of a buffer is one past the end of the buffer before it.
static u64 buffer_at(u64 address) {
  return (address >> BUFFER_SHIFT) - 1 + (address >> (BUFFER_SHIFT - 1) & 1);
}
void describe_heap(const Machine& M, u64 address, Finding& f) {
  const u64 number = buffer_at(address);
  if (!is_of_heap(M, number) || f.kind == MISALIGNED) return;
  const Allocation& made = M.heap.made[number - M.heap.first];
  f.detail = made.freed ? 2 : 1, f.extent_bytes = made.bytes;
}
// operands: where arguments are, where the result goes
static void allocate_on_heap(Machine& M, Warp& W, u8*, const MicroOp& op) {
  Heap& heap = M.heap;
  M.interacts = true;
  if (!M.alone) {
    ACTIVE(W.active, give_back(M, l, op.operands[1], 0, 8))
    return;
  }
  if (heap.buffers.empty()) {
    heap.buffers.assign(M.buffers, M.buffers + M.buffer_count);
    heap.first = M.buffer_count;
  }
  ACTIVE(W.active, {
    const u64 bytes = argument(M, l, op.operands[0], 8), limit = 1u << 22;
    u64 address = 0;
    if (bytes <= M.heap_bytes && heap.used + bytes <= M.heap_bytes && heap.buffers.size() < limit) {
      u8* data = (u8*)malloc(bytes + 16);
      memset(data, 0xff, bytes + 16);  // what nobody wrote reads as NaN
      heap.buffers.push_back({data, bytes, nullptr, 0, 0, 1, 0}), heap.made.push_back({bytes, false});
      heap.used += bytes;
      address = (u64)heap.buffers.size() << BUFFER_SHIFT;
    }
    give_back(M, l, op.operands[1], address, 8);
  })
  M.buffers = heap.buffers.data(), M.buffer_count = heap.buffers.size();
}
// operands: where arguments are
static void release(Machine& M, Warp& W, u8*, const MicroOp& op) {
  ACTIVE(W.active, {
    const u64 address = argument(M, l, op.operands[0], 8), number = (address >> BUFFER_SHIFT) - 1;
    if (!address) continue;
    const bool start = is_of_heap(M, number) && !(address & ((1ull << BUFFER_SHIFT) - 1));
    if (!start || M.heap.made[number - M.heap.first].freed) {
      if (Finding* f = M.report(BAD_FREE, op.line, l, 0, address))
        f->space = GLOBAL, describe_heap(M, address, *f);
      continue;
    }
    Buffer& buffer = M.heap.buffers[number];
    Allocation& made = M.heap.made[number - M.heap.first];
    M.heap.used -= made.bytes, made.freed = true;
    free(buffer.data);
    buffer.data = nullptr, buffer.bytes = 0;
  })
}
Heap::~Heap() {
  for (u64 k = first; k < buffers.size(); ++k) free(buffers[k].data);
}

static const Family heap{{"call.malloc", allocate_on_heap}, {"call.free", release}};
