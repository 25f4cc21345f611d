// The memory behind an address: bounds, alignment, constants, and the checks for races of what lies there.
#include "check/check.h"

// In shared memory or a lane's local memory; inside the variable that the address comes from, where it comes from
// one.
static u8* at_own(Machine& M, Space space, u8* memory, u32 memory_bytes, u64 address, u32 bytes, const MicroOp& op,
                  int lane, Act act) {
  const Range range = reach(space, memory_bytes, op);
  const bool outside = address < range.low || address + bytes > range.high;
  if (!outside && !(address & (bytes - 1))) return memory + address;
  const Kind kind = outside ? OUT_OF_BOUNDS : MISALIGNED;
  Finding* f = report_access(M, kind, op.line, lane, act, space, address, bytes);
  if (f && op.extent->space == space) f->extent = op.extent->number, f->extent_bytes = range.high - range.low;
  return nullptr;
}
u8* at_shared(Machine& M, u32 address, u32 bytes, const MicroOp& op, int lane, Act act) {
  return at_own(M, SHARED, M.cta->shared, M.launch.shared_bytes, address, bytes, op, lane, act);
}
u8* at_local(Machine& M, u64 address, u32 bytes, const MicroOp& op, int lane, Act act) {
  return at_own(M, LOCAL, M.local_of(lane), M.launch.local_bytes, address, bytes, op, lane, act);
}

// ---- global memory ---
// Whether an element is this block's alone, while other threads run other blocks.
static bool claim(const Machine& M, Cell& cell) {
  const u32 block = M.block_number();
  u32 owner = __atomic_load_n(&cell.block, __ATOMIC_RELAXED);
  if (!owner)
    __atomic_compare_exchange_n(&cell.block, &owner, block, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return !owner || owner == block;
}
u8* at_global(Machine& M, u64 address, u32 bytes, const MicroOp& op, int lane, Act act, u32 how) {
  const u64 number = (address >> BUFFER_SHIFT) - 1, offset = address & ((1ull << BUFFER_SHIFT) - 1);
  const GlobalMemory& memory = M.global;
  const bool outside = number >= memory.count || bytes > memory.buffers[number].bytes ||
                       offset > memory.buffers[number].bytes - bytes;
  if (outside || address & (bytes - 1)) {
    const Kind kind = outside ? OUT_OF_BOUNDS : MISALIGNED;
    if (Finding* f = report_access(M, kind, op.line, lane, act, GLOBAL, address, bytes)) describe_heap(M, address, *f);
    return nullptr;
  }
  const Buffer& buffer = memory.buffers[number];
  if (act != READ && buffer.constant) {
    report_access(M, WRITE_TO_INPUT, op.line, lane, act, GLOBAL, address, bytes);
    return nullptr;
  }
  u8* data = buffer.data + offset;
  if (!buffer.cells) return data;
  if (act != WRITE || how & STRONG) M.interacts = true;
  const LaneAccess access{address, data, bytes, how | how_of(act), GLOBAL, op.line, lane};
  for (u64 e = offset >> buffer.element; e <= (offset + bytes - 1) >> buffer.element; ++e) {
    Cell& cell = buffer.cells[e];
    if (act != WRITE && !cell.line && !buffer.initialized)
      report_unwritten(M, op.line, lane, act, GLOBAL, address, bytes, address - offset + (e << buffer.element));
    if (M.alone && act == WRITE && !(cell.block | cell.prior)) {
      cell = {op.line, M.epoch, M.block_number(), 0, (u16)M.thread_of(lane), (u16)(how | STORES), op.line};
      continue;
    }
    if (!M.alone) {
      if (!claim(M, cell) || how & NON_COHERENT) M.interacts = true;
      cell.line = cell.plain_line = op.line;
      continue;
    }
    check_cell(M, cell, access);
  }
  return data;
}

// ---- generic addresses ---
// In shared memory of any block of the cluster.
static u8* at_cluster(Machine& M, u32 address, u32 bytes, const MicroOp& op, int lane, Act act, u32 how) {
  const Place place = place_of(M, address);
  if (place.cta == M.cta) {
    u8* data = at_shared(M, place.address, bytes, op, lane, act);
    if (data) check_shared(M, place.address, bytes, act, lane, op.line, how);
    return data;
  }
  const bool outside = !place.cta || place.address + bytes > M.launch.shared_bytes;
  if (outside || place.address & (bytes - 1)) {
    report_access(M, outside ? OUT_OF_BOUNDS : MISALIGNED, op.line, lane, act, SHARED, address, bytes);
    return nullptr;
  }
  const Visit made{M.block_number(), M.thread_of(lane), M.epoch, address, op.line, lane, M.warp};
  if (!visit(M, *place.cta, made, act, bytes)) return nullptr;
  u8* data = place.cta->shared + place.address;
  const LaneAccess access{SHARED_WINDOW + address, data, bytes, how | how_of(act), SHARED, op.line, lane};
  GRANULES(M, place.address, bytes, {
    SharedShadow& s = place.cta->shadow[g];
    if (act != WRITE && s.write_epoch < place.cta->began)
      report_unwritten(M, op.line, lane, act, SHARED, address, bytes,
                       address - place.address + (g << M.launch.granule_shift));
    if (act != READ) s.write_epoch = M.epoch, s.write_line = op.line, s.undefined = false;
    check_cell(M, place.cta->cells[g], access);
  })
  return data;
}
u8* at_generic(Machine& M, u64 address, u32 bytes, const MicroOp& op, int lane, Act act, u32 how) {
  if (address >= SHARED_WINDOW && address < SHARED_WINDOW + WINDOW_BYTES) {
    const u32 own = u32(address - SHARED_WINDOW);
    if (M.program.traits & UNITS && own >> RANK_SHIFT) return at_cluster(M, own, bytes, op, lane, act, how);
    u8* data = at_shared(M, own, bytes, op, lane, act);
    if (data) check_shared(M, own, bytes, act, lane, op.line, how);
    return data;
  }
  if (address >= LOCAL_WINDOW && address < LOCAL_WINDOW + WINDOW_BYTES)
    return at_local(M, address - LOCAL_WINDOW, bytes, op, lane, act);
  return at_global(M, address, bytes, op, lane, act, how);
}
