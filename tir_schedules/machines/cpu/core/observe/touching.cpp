// Every access of a thread to one array in global memory, in order: of one block, or of all.
#include "observe/observer.h"

// When: the meeting of its block that came last, and how many groups of cp.async its lane has committed.
static u64 tile_of(const Machine& M, u32 lane) {
  return (u64)M.cta->met << 32 | M.cta->warps[M.warp].groups[lane];
}
static void touch(const Machine& M, Watch& watch, u32 lane, u64 address, u32 bytes, s32 line, Act act, u64 tile,
                  bool bulk = false) {
  const u64 offset = address & ((1ull << BUFFER_SHIFT) - 1);
  if (address >> BUFFER_SHIFT != watch.array || !bytes) return;
  if (watch.touched++ >= watch.touch_limit) return;
  const u32 block = (u32)M.cta->number, warp = M.warp;
  watch.touches[watch.touched - 1] = {offset, tile, block, warp, lane, bytes, watch.order, act, line, bulk};
}
static bool wanted(const Machine& M, Watch& watch) { return watch.every_block || is_watched(M, watch); }

void KeepTouches::on(const Machine& M, const GlobalAccess& access) {
  if (!wanted(M, watch)) return;
  ++watch.order;
  ACTIVE(access.lanes,
         touch(M, watch, l, access.address[l], access.width, access.line, access.act, tile_of(M, l)))
}
void KeepTouches::on(const Machine& M, const AsyncCopies& c) {
  if (!wanted(M, watch)) return;
  ++watch.order;
  ACTIVE(c.reads, {
    const u32 bytes = c.available ? least(c.available[l], c.width) : c.width;
    touch(M, watch, l, c.source[l], bytes, c.line, READ, tile_of(M, l));
  })
}
void KeepTouches::on(const Machine& M, const BulkPiece& piece) {
  if (!wanted(M, watch)) return;
  watch.order += piece.first;
  touch(M, watch, piece.lane, piece.address, piece.bytes, piece.line, piece.act, piece.tile, true);
}
