// Accesses of asynchronous units: checked as those of threads are, in the name of an operation.
//
// What threads have written must be fenced for a unit, and what they have read before a unit writes there. A barrier
// alone orders neither: "Accessing the same memory location across multiple proxies needs a cross-proxy fence" (PTX ISA
// 9.0, Async Proxy), and base causality order between two proxies counts only with a proxy fence on its path
// (Causality Order). What a unit has done needs none, because its completion is followed by an implicit one.
#include "check/check.h"

bool check_unit_shared(Machine& M, const Operation& o, Cta& cta, u32 address, u32 bytes, Act act) {
  if (!bytes) return true;
  const u32 shown = shown_address(M, cta, address);
  auto fault = [&](Kind kind, s32 line = 0, int thread = -1) {
    report_access(M, kind, o.line, o.lane, act, SHARED, shown, bytes, line, thread);
  };
  if (bytes > M.launch.shared_bytes || address > M.launch.shared_bytes - bytes) {
    fault(OUT_OF_BOUNDS);
    return false;
  }
  const u32 how = act == READ ? 0 : (u32)STORES;
  const LaneAccess access{SHARED_WINDOW + shown, nullptr, bytes, how, SHARED, o.line, o.lane};
  GRANULES(M, address, bytes, {
    SharedShadow& s = cta.shadow[g];
    if (s.in_flight) fault(IN_FLIGHT, s.write_line);
    if (act != READ) s.write_epoch = M.epoch, s.write_line = o.line, s.undefined = false;
    else if (s.write_epoch < cta.began) fault(UNINITIALIZED);
    else if (s.undefined) fault(UNINITIALIZED, s.write_line, s.write_thread);
    check_cell(M, cta.cells[g], access, o);
  })
  return true;
}
u8* check_unit_global(Machine& M, const Operation& o, u64 address, u32 bytes, Act act) {
  const u64 number = (address >> BUFFER_SHIFT) - 1, offset = address & ((1ull << BUFFER_SHIFT) - 1);
  const Buffer* const buffers = M.global.buffers;
  const bool outside =
      number >= M.global.count || bytes > buffers[number].bytes || offset > buffers[number].bytes - bytes;
  if (outside || (act != READ && buffers[number].constant)) {
    const Kind kind = outside ? OUT_OF_BOUNDS : WRITE_TO_INPUT;
    Finding* f = report_access(M, kind, o.line, o.lane, act, GLOBAL, address, bytes);
    if (f && outside) describe_heap(M, address, *f);
    return nullptr;
  }
  const Buffer& buffer = buffers[number];
  const LaneAccess access{address, nullptr, bytes, act == READ ? 0 : (u32)STORES, GLOBAL, o.line, o.lane};
  for (u64 e = offset >> buffer.element; buffer.cells && e <= (offset + bytes - 1) >> buffer.element; ++e) {
    if (act == READ && !buffer.cells[e].line && !buffer.initialized)
      report_access(M, UNINITIALIZED, o.line, o.lane, act, GLOBAL, address, bytes);
    check_cell(M, buffer.cells[e], access, o);
  }
  return buffer.data + offset;
}
