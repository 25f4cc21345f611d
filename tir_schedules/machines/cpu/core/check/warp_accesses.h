// Bounds of a whole warp's access, which is how most accesses are checked: one test serves all lanes where they are all
// right. Races are checked in global memory alone.
#pragma once
#include "check/check.h"

#define INLINED __attribute__((always_inline)) inline
// The lanes that stay in bounds, with the memory behind their addresses.
INLINED u32 in_shared(Machine& M, const u32* address, u32 bytes, const MicroOp& op, u32 lanes, Act act, u8** memory) {
  const u32 low = op.extent->low, size = least(op.extent->high, M.launch.shared_bytes) - low, limit = size - bytes;
  u8* const shared = M.cta->shared;
  u32 mask = lanes, bad = bytes > size;
  LANES(bad |= ((u32)(address[l] - low > limit) | (u32)((address[l] & (bytes - 1)) != 0)) & (lanes >> l & 1))
  LANES(memory[l] = shared + address[l])
  if (__builtin_expect(bad, 0))
    ACTIVE(lanes, if (!at_shared(M, address[l], bytes, op, l, act)) mask &= ~(1u << l))
  return mask;
}
INLINED u32 in_global(Machine& M, const u64* address, u32 bytes, const MicroOp& op, u32 lanes, Act act, u32 how,
                     u8** memory) {
  const u64 number = (address[__builtin_ctz(lanes)] >> BUFFER_SHIFT) - 1, low = (number + 1) << BUFFER_SHIFT;
  u64 bad = 1;
  if (number < M.global.count) {
    const Buffer& buffer = M.global.buffers[number];
    bad = buffer.bytes < bytes || (act != READ && buffer.constant) || buffer.cells;
    const u64 limit = buffer.bytes - bytes;
    LANES(bad |= ((u64)(address[l] - low > limit) | (u64)((address[l] & (bytes - 1)) != 0)) & (lanes >> l & 1))
    LANES(memory[l] = buffer.data + (address[l] - low))
  }
  if (!bad) return lanes;
  u32 mask = lanes;
  ACTIVE(lanes, if (!(memory[l] = at_global(M, address[l], bytes, op, l, act, how))) mask &= ~(1u << l))
  return mask;
}
