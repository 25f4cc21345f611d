// What is kept of one block, step by step: the basic blocks that its warps execute, and what each access costs.
#include "cost/cost.h"
#include "observe/observer.h"

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
  made.first_piece = watch.pieces_met, made.pieces = count;
  for (u32 k = 0; k < count; ++k, ++watch.pieces_met)
    if (watch.pieces_met < watch.piece_limit) watch.pieces[watch.pieces_met] = pieces[k];
}
void KeepSteps::on(const Machine& M, const SharedAccess& made) {
  ALIGNED u32 addresses[32];
  SharedAccess access = made;
  if (!merge(M, access, addresses)) return;
  const SharedCost cost = shared_cost(access.address, access.lanes, access.width, access.store);
  make(M, watch, {(u32)access.counter, access.lanes, access.width, cost.wavefronts, NONE, 0, 0, 0,
                  access.address[__builtin_ctz(access.lanes)]});
}
void KeepSteps::on(const Machine& M, const MatrixRows& access) {
  const u32 cost = row_wavefronts(access.rows, access.matrices);
  make(M, watch, {(u32)access.counter, access.lanes(), 16, cost, NONE, 0, 0, 0, access.rows[0]});
}
void KeepSteps::on(const Machine& M, const GlobalAccess& access) {
  if (!access.lanes || access.counter < 0) return;
  const GlobalCost cost = global_cost(access.address, access.lanes, access.width);
  Made made = {(u32)access.counter, access.lanes, access.width, cost.sectors, NONE, 0, 0, 0,
               access.address[__builtin_ctz(access.lanes)]};
  touch(M, watch, made, access.address, access.lanes, access.width);
  make(M, watch, made);
}
void KeepSteps::on(const Machine& M, const AsyncCopies& c) {
  if (!c.lanes) return;
  const CopyCost cost = copy_cost(c.target, c.source, c.lanes, c.reads, c.width, c.bypass);
  Made made = {(u32)c.counter, c.lanes, c.width, cost.wavefronts, (u32)c.global_counter, cost.sectors, 0, 0,
               c.source[__builtin_ctz(c.lanes)]};
  touch(M, watch, made, c.source, c.lanes & c.reads, c.width);
  make(M, watch, made);
}
