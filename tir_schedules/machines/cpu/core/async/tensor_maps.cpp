// Boxes of tensor maps: where each piece of a box lies in global memory, and where in shared memory.
#include "async/async.h"
#include "check/check.h"
#include "state/descriptors.h"

enum MapFault { NO_MAP = 1, OTHER_RANK, NOT_ALIGNED, WRITABLE, WITHIN_A_PIECE, BEFORE_THE_TENSOR };
const u32 BOX_ALIGNMENT = 128, PIECE = 16;

static const TensorMap* map_at(const Machine& M, u64 address, bool& writable) {
  const u64 number = (address >> BUFFER_SHIFT) - 1, offset = address & ((1ull << BUFFER_SHIFT) - 1);
  if (number >= M.global.count || offset % 64 || offset + sizeof(TensorMap) > M.global.buffers[number].bytes)
    return nullptr;
  const TensorMap* map = (const TensorMap*)(M.global.buffers[number].data + offset);
  writable = !M.global.buffers[number].constant;
  return map->mark == MAP_MARK ? map : nullptr;
}
static Box refused(Machine& M, const MicroOp& op, int lane, MapFault fault, u64 address, Act act, u32 has = 0,
                   u32 wants = 0) {
  if (Finding* f = report_access(M, BAD_TENSOR_MAP, op.line, lane, act, GENERIC, address, has))
    f->detail = fault, f->extent_bytes = wants;
  return {false, 0, 0, 0, 0, 0, {}};
}
// What part of a row of the box lies inside: elements from `first` up to `end`.
struct Inside {
  s64 first, end;
};
// A row's bytes in pieces of 16, and smaller ones where the tensor begins or ends; a store writes the whole
// piece in which it ends, as an H200 does.
static void add_row(Box& box, const TensorMap& map, u32 at, u64 row, Inside inside, bool stores) {
  const u32 bytes = map.box[0] * map.element;
  const s64 low = inside.first * map.element, end = greatest(inside.end * map.element, low);
  const s64 high = stores ? (end + PIECE - 1) / PIECE * PIECE : end;
  u64 last = 0;
  for (u32 piece = 0; piece < bytes; piece += PIECE) {
    const u32 to = swizzled(at + piece, map.swizzle);
    const s64 ends[] = {piece, greatest<s64>(piece, least<s64>(low, piece + PIECE)),
                        least<s64>(greatest<s64>(high, piece), piece + PIECE), piece + PIECE};
    for (int part = 0; part < 3; ++part) {
      const s64 begin = ends[part], size = ends[part + 1] - begin;
      if (size <= 0) continue;
      const u64 from = part == 1 ? row + begin : 0;
      box.pieces.push_back({to + u32(begin - piece), (u32)size, from});
      if (!from) continue;
      box.inside += size;
      for (u64 sector = from >> 5; sector <= (from + size - 1) >> 5; ++sector)
        if (sector != last) box.sectors++, last = sector;
    }
  }
}
Box box_at(Machine& M, const MicroOp& op, int lane, u64 address, u32 rank, const s32* coordinates, u32 shared,
           Act act, bool stores) {
  bool writable = false;
  const TensorMap* there = map_at(M, address, writable);
  if (!there) return refused(M, op, lane, NO_MAP, address, act);
  const TensorMap& map = *there;
  if (writable) return refused(M, op, lane, WRITABLE, address, act);
  if (rank != map.rank) return refused(M, op, lane, OTHER_RANK, address, act, rank, map.rank);
  if (shared % BOX_ALIGNMENT) return refused(M, op, lane, NOT_ALIGNED, shared, act, BOX_ALIGNMENT);
  // Of these two an H200 makes an illegal instruction.
  if ((s64)coordinates[0] * map.element % PIECE)
    return refused(M, op, lane, WITHIN_A_PIECE, address, act, (u32)coordinates[0], map.element);
  for (u32 d = 0; stores && d < rank; ++d)
    if (coordinates[d] < 0) return refused(M, op, lane, BEFORE_THE_TENSOR, address, act, (u32)coordinates[d]);
  u64 rows = 1;
  for (u32 d = 1; d < rank; ++d) rows *= map.box[d];
  const u32 row_bytes = map.box[0] * map.element, buffer = u32(map.address >> BUFFER_SHIFT);
  if (!stores) {
    u32& swizzle = M.swizzles.emplace(op.line, map.swizzle).first->second;
    if (swizzle != map.swizzle) swizzle = MIXED;
  }
  Box box{true, u32(rows) * row_bytes, 0, 0, row_bytes, buffer, {}};
  box.pieces.reserve(box.bytes / PIECE);
  const s64 x = coordinates[0];
  for (u64 r = 0; r < rows; ++r) {
    u64 rest = r, row = map.address + x * map.element;
    bool outside = false;
    for (u32 d = 1; d < rank; ++d, rest /= map.box[d - 1]) {
      const s64 at = coordinates[d] + s64(rest % map.box[d]);
      outside |= at < 0 || at >= (s64)map.shape[d];
      row += at * map.pitches[d - 1];
    }
    const Inside inside = {greatest<s64>(0, -x), least<s64>(map.box[0], (s64)map.shape[0] - x)};
    add_row(box, map, shared + u32(r * map.box[0]) * map.element, row, outside ? Inside{0, 0} : inside,
            stores);
  }
  return box;
}
