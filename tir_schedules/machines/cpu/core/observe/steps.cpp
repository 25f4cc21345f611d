// What is kept of one block, step by step: the basic blocks that its warps execute, and what each access costs.
#include "cost/cost.h"
#include "observe/observer.h"
#include <algorithm>

void note_step(const Machine& M, u32 block, u32 lanes) {
  Watch& watch = *M.traced;
  if (!is_watched(M, watch)) return;
  if (watch.steps_met < watch.step_limit) watch.steps[watch.steps_met] = {(u32)M.warp, block, lanes, watch.made_met};
  watch.steps_met++;
}
void forget_step(const Machine& M) {
  if (is_watched(M, *M.traced)) M.traced->steps_met--;
}

static void make(const Machine& M, Watch& watch, const Made& made) {
  if (!is_watched(M, watch)) return;
  if (watch.made_met < watch.made_limit) watch.made[watch.made_met] = made;
  watch.made_met++;
}
static void keep(Watch& watch, Made& made, const LinePiece* pieces, u32 count) {
  made.first_piece = watch.pieces_met, made.pieces = count;
  for (u32 k = 0; k < count; ++k, ++watch.pieces_met)
    if (watch.pieces_met < watch.piece_limit) watch.pieces[watch.pieces_met] = pieces[k];
}
void note_barrier(const Machine& M, s32 line, u32 lanes, u32 number) {
  make(M, *M.traced, {NONE, lanes, 1, number, NONE, 0, 0, 0, 0, line, MET});
}
// The lines that lanes touch, as a row for each.
static void touch(const Machine& M, Watch& watch, Made& made, const u64* address, u32 lanes, u32 width) {
  if (!is_watched(M, watch)) return;
  LinePiece pieces[64];
  u32 count = 0;
  ACTIVE(lanes, for (u64 sector = address[l] >> 5; sector <= (address[l] + width - 1) >> 5; ++sector) {
    u32 at = count;
    while (at && pieces[at - 1].line != sector >> 2) --at;
    if (!at) pieces[count] = {sector >> 2, 0, 0}, at = ++count;
    pieces[at - 1].sectors |= 1u << (sector & 3);
  })
  keep(watch, made, pieces, count);
}
// Sectors of which lanes touch some bytes and not all.
static u32 in_part(const u64* address, u32 lanes, u32 width) {
  u64 sectors[64];
  u32 bytes[64], count = 0;  // bit b of bytes: whether byte b of the sector is touched
  ACTIVE(lanes, for (u64 byte = address[l]; byte < address[l] + width; ++byte) {
    u32 at = count;
    while (at && sectors[at - 1] != byte >> 5) --at;
    if (!at) sectors[count] = byte >> 5, bytes[count] = 0, at = ++count;
    bytes[at - 1] |= 1u << (byte & 31);
  })
  return std::count_if(bytes, bytes + count, [](u32 each) { return each != ~0u; });
}
// Of an atomic, the sectors that lanes touch, each as often as most lanes meet at a word of it.
static u32 meetings(const u64* address, u32 lanes) {
  u32 found = 0;
  for (u32 left = lanes; left;) {
    const u64 sector = address[__builtin_ctz(left)] >> 5;
    u32 here = 0, most = 0;
    ACTIVE(left, here |= (u32)(address[l] >> 5 == sector) << l;)
    for (u32 rest = here; rest;) {
      u32 same = 0;
      ACTIVE(rest, same |= (u32)(address[l] == address[__builtin_ctz(rest)]) << l;)
      most = std::max<u32>(most, __builtin_popcount(same)), rest &= ~same;
    }
    found += most, left &= ~here;
  }
  return found;
}
void KeepSteps::on(const Machine& M, const SharedAccess& made) {
  ALIGNED u32 addresses[32];
  SharedAccess access = made;
  if (!merge(M, access, addresses)) return;
  const SharedCost cost = shared_cost(access.address, access.lanes, access.width, access.store);
  make(M, watch, {(u32)access.counter, access.lanes, access.width, cost.wavefronts, NONE, 0, 0, 0,
                  access.address[__builtin_ctz(access.lanes)], 0, NONE});
}
void KeepSteps::on(const Machine& M, const MatrixRows& access) {
  const u32 cost = row_wavefronts(access.rows, access.matrices);
  make(M, watch, {(u32)access.counter, access.lanes(), 16, cost, NONE, 0, 0, 0, access.rows[0],
                  0, NONE});
}
void KeepSteps::on(const Machine& M, const GlobalAccess& access) {
  if (!access.lanes || access.counter < 0) return;
  const GlobalCost cost = global_cost(access.address, access.lanes, access.width);
  u32 parts = 0;
  if (is_watched(M, watch))
    parts = access.act == ATOMIC ? meetings(access.address, access.lanes)
                                 : in_part(access.address, access.lanes, access.width);
  Made made = {(u32)access.counter, access.lanes, access.width, cost.sectors, NONE, parts, 0, 0,
               access.address[__builtin_ctz(access.lanes)], 0, NONE};
  touch(M, watch, made, access.address, access.lanes, access.width);
  make(M, watch, made);
}
void KeepSteps::on(const Machine& M, const AsyncCopies& c) {
  if (!c.lanes) return;
  const CopyCost cost = copy_cost(c.target, c.source, c.lanes, c.reads, c.width, c.bypass);
  Made made = {(u32)c.counter, c.lanes, c.width, cost.wavefronts, (u32)c.global_counter, cost.sectors, 0, 0,
               c.source[__builtin_ctz(c.lanes)], 0, NONE};
  touch(M, watch, made, c.source, c.lanes & c.reads, c.width);
  make(M, watch, made);
}

// ---- units ---
// Cycles in which a unit reads a row: one for each line, two if the row begins or ends in the middle of a sector of it
// and has more of it than that half. Of a row that is written, sectors of which it has a part.
static u32 extra_of(u64 from, u64 to, bool stores) {
  if (stores) return (from % 32 != 0) + (to % 32 != 0);
  u32 cycles = 0;
  for (u64 line = from / 128; from < to; from = ++line * 128) {
    const u64 end = std::min(to, line * 128 + 128);
    cycles += (from % 32 || end % 32) && end - from > 16 ? 2 : 1;
  }
  return cycles;
}
void KeepSteps::end_row(bool stores) {
  if (row_end) extra += extra_of(row, row_end, stores);
  row_end = 0;
}
void KeepSteps::on(const Machine& M, const BulkPiece& piece) {
  if (!is_watched(M, watch)) return;
  if (piece.address != row_end) end_row(piece.act == WRITE), row = piece.address;
  row_end = piece.address + piece.bytes;
  for (u64 sector = piece.address >> 5; sector <= (piece.address + piece.bytes - 1) >> 5; ++sector) {
    if (pieces.empty() || pieces.back().line != sector >> 2) pieces.push_back({sector >> 2, 0, 0});
    pieces.back().sectors |= 1u << (sector & 3);
  }
}
// What lanes do with one instruction is one row, and so is a copy to several blocks.
void KeepSteps::on(const Machine& M, const UnitEvent& unit) {
  const Event& e = unit.event;
  const bool copies = e.what == BEGUN || e.what == STORED, arrives = e.what == ARRIVED;
  if (!is_watched(M, watch)) return;
  if (!copies && !arrives && e.what != INITIALISED && e.what != EXPECTED && e.what != PASSED) return;
  const u32 rows = e.what == BEGUN ? (e.row ? e.bytes / e.row : 1) : 0;  // those outside of a tensor take a cycle, too
  if (copies) end_row(e.what == STORED);
  const u32 taken = copies ? std::max(rows, extra) : e.phase;
  if (copies) extra = 0;
  const u32 found = watch.made_met - 1;
  Made* last = watch.made_met && found < watch.made_limit ? watch.made + found : nullptr;
  if ((copies || arrives) && last && step == watch.steps_met && last->what == e.what && last->line == e.line) {
    if (last->lanes & e.lanes) {
      last->width++;
    } else {
      last->lanes |= e.lanes, last->cost += e.bytes, last->source_cost += copies ? taken : 0;
      last->width += arrives;
      const u32 first = last->first_piece, before = last->pieces;
      keep(watch, *last, pieces.data(), pieces.size()), pieces.clear();
      last->first_piece = first, last->pieces += before;
    }
    return;
  }
  Made made = {NONE, e.lanes, 1, e.bytes, NONE, taken, 0, 0,
               e.what == BEGUN ? e.other : e.address, e.line, e.what};
  if (copies) keep(watch, made, pieces.data(), pieces.size()), pieces.clear();
  make(M, watch, made);
  step = watch.steps_met;
}
