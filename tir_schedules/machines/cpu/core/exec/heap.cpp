// malloc and free. What malloc gives is a buffer of its own behind those of the launch, so that no stray
// offset reaches another; one that was freed has no bytes left.
#include "exec/exec.h"

static void execute(Machine& M, Warp& W, const ops::CallMalloc& op) {
  GlobalMemory& heap = M.global;
  M.interacts = true;
  if (!M.alone) {
    ACTIVE(W.active, give_back(M, l, op.result(), 0, 8))
    return;
  }
  if (heap.owned.empty()) {
    heap.owned.assign(M.global.buffers, M.global.buffers + M.global.count);
    heap.first = M.global.count;
  }
  ACTIVE(W.active, {
    const u64 bytes = argument(M, l, op.arguments(), 8), limit = 1u << 22;
    u64 address = 0;
    const bool fits =
        bytes <= M.launch.heap_bytes && heap.used + bytes <= M.launch.heap_bytes && heap.owned.size() < limit;
    if (u8* data = fits ? (u8*)malloc(bytes + 16) : nullptr) {
      memset(data, 0xff, bytes + 16);  // what no thread wrote reads as NaN
      heap.owned.push_back({data, bytes, nullptr, nullptr, 0, 0, 1, 0}), heap.made.push_back({bytes, false});
      heap.used += bytes;
      address = (u64)heap.owned.size() << BUFFER_SHIFT;
    }
    give_back(M, l, op.result(), address, 8);
  })
  M.global.buffers = heap.owned.data(), M.global.count = heap.owned.size();
}
static void execute(Machine& M, Warp& W, const ops::CallFree& op) {
  ACTIVE(W.active, {
    const u64 address = argument(M, l, op.arguments(), 8), number = (address >> BUFFER_SHIFT) - 1;
    if (!address) continue;
    const bool start = is_of_heap(M, number) && !(address & ((1ull << BUFFER_SHIFT) - 1));
    if (!start || M.global.made[number - M.global.first].freed) {
      if (Finding* f = report(M, BAD_FREE, op.line(), l, 0, address))
        f->space = GLOBAL, describe_heap(M, address, *f);
      continue;
    }
    Buffer& buffer = M.global.owned[number];
    Allocation& made = M.global.made[number - M.global.first];
    M.global.used -= made.bytes, made.freed = true;
    free(buffer.data);
    buffer.data = nullptr, buffer.bytes = 0;
  })
}
