// Races in shared memory, and reads of what no thread has written. Two threads touch a granule, one of them writes,
// and no __syncthreads lies between: a race when they are in different warps, reliance on lockstep when they are lanes
// of one warp with no __syncwarp between. Where a kernel orders accesses in other ways, too, cells tell (races.cpp).
#include "check/check.h"

// Of a warp's reads: what is the same for all of them. together: of an ldmatrix, which no lane leaves before all have
// read, so that no lane of the warp can overwrite too early what another reads.
struct Reading {
  const u32 met, epoch;
  const s32 line;
  const int warp;
  const bool together;

  void note(SharedShadow& s, int lane) const {
    const bool again = (s.read_warp == warp) & (s.read_epoch == epoch);
    s.read_lanes = (again ? s.read_lanes : 0) | (u32)!together << lane;
    s.read_warps = (s.read_epoch >= met ? s.read_warps : 0) | 1u << warp;
    s.read_epoch = epoch, s.read_line = line, s.read_warp = warp;
  }
};

// Where a whole value was written before the last __syncthreads, nothing can be wrong, and the reader is noted at
// once.
void check_shared_reads(Machine& M, const u32* addresses, u32 lanes, u32 bytes, s32 line, u32 how) {
  if (M.traced) return;
  if (M.program.traits & CLOCKS) {
    ACTIVE(lanes, check_shared(M, addresses[l], bytes, READ, l, line, how))
    return;
  }
  const Cta& cta = *M.cta;
  const u32 shift = M.launch.granule_shift, met = cta.met, first = cta.began;
  const bool together = how & TOGETHER;
  const Reading reading{met, M.epoch, line, M.warp, together};
  SharedShadow* const shadows = M.cta->shadow.data();
  u32 previous = NONE;
  ACTIVE(lanes, {
    const u32 address = addresses[l];
    if (address == previous) {  // as the lane before, unless there is a writer to compare with
      SharedShadow& s = shadows[previous >> shift];
      if (s.write_epoch < met && bytes <= 1u << shift) {
        s.read_lanes |= (u32)!together << l;
        continue;
      }
    }
    previous = address;
    for (u32 g = address >> shift, last = (address + bytes - 1) >> shift; g <= last; ++g) {
      SharedShadow& s = shadows[g];
      if (s.in_flight || s.undefined || s.write_epoch - first >= met - first) {
        check_shared(M, address, bytes, READ, l, line, how);
        break;
      }
      reading.note(s, l);
    }
  })
}

// Where no other lane has touched a granule since the last __syncthreads, nothing can be wrong, and the writer is
// noted at once.
void check_shared_writes(Machine& M, const u32* addresses, u32 lanes, u32 bytes, s32 line, u32 how) {
  if (M.traced) return;
  if (M.program.traits & CLOCKS) {
    ACTIVE(lanes, check_shared(M, addresses[l], bytes, WRITE, l, line, how))
    return;
  }
  const u32 shift = M.launch.granule_shift, met = M.cta->met, epoch = M.epoch, own_warp = 1u << M.warp;
  const u16 first = M.warp * 32;
  SharedShadow* const shadows = M.cta->shadow.data();
  ACTIVE(lanes, {
    const u32 address = addresses[l];
    const u16 self = first + l;
    for (u32 g = address >> shift, last = (address + bytes - 1) >> shift; g <= last; ++g) {
      SharedShadow& s = shadows[g];
      const bool written = s.write_epoch >= met && s.write_thread != self;
      const bool read = s.read_epoch >= met && (s.read_warps != own_warp || s.read_lanes != 1u << l);
      if (s.in_flight || s.undefined || written || read) {
        check_shared(M, address, bytes, WRITE, l, line, how);
        break;
      }
      s.write_epoch = epoch, s.write_line = line, s.write_thread = self, s.write_atomic = false;
    }
  })
}

void check_shared(Machine& M, u32 address, u32 bytes, Act act, int lane, s32 line, u32 how) {
  if (M.traced) return;
  Cta& cta = *M.cta;
  const Warp& W = cta.warps[M.warp];
  const u32 shift = M.launch.granule_shift, met = cta.met, epoch = M.epoch, clocks = M.program.traits & CLOCKS;
  const int warp = M.warp;
  const u16 self = M.thread_of(lane);
  const Reading reading{met, epoch, line, warp, (how & TOGETHER) != 0};
  bool reported = false;
  // Of an earlier access by a lane of this warp. A lane that has left needs no __syncwarp.
  auto unordered = [&](u32 when, u16 other) { return when > W.synced_with(lane, other % 32); };
  auto clash = [&](Kind kind, s32 other, int other_thread, bool stores = false, bool at_once = false) {
    if (reported) return;
    const Likeness like =
        stores ? compare_values(M, bytes, cta.shared + address, lane, at_once, other_thread % 32) : DIFFERENT;
    if (like != DIFFERENT) kind = SAME_VALUE;
    Finding* f = report_access(M, kind, line, lane, act, SHARED, address, bytes, other, other_thread);
    if (f) f->detail = like == ROUNDED;
    reported = kind != SAME_VALUE;
  };
  auto unwritten = [&](u32 g, s32 other = 0, int other_thread = -1) {
    if (!reported || M.followed.width)
      report_unwritten(M, line, lane, act, SHARED, address, bytes, g << shift, other, other_thread);
    reported |= !M.followed.width;
  };
  for (u32 g = address >> shift, last = (address + bytes - 1) >> shift; g <= last; ++g) {
    SharedShadow& s = cta.shadow[g];
    if (__builtin_expect(s.in_flight, 0)) clash(IN_FLIGHT, s.write_line, -1);
    if (__builtin_expect(s.undefined, 0) && s.write_epoch >= cta.began) {
      if (act != WRITE) unwritten(g, s.write_line, s.write_thread);
      else s.undefined = false;
    }
    if (clocks) {
      if (act != WRITE && s.write_epoch < cta.began) unwritten(g);
      if (act != READ) s.write_epoch = epoch, s.write_line = line, s.write_thread = self;
      const u64 generic = SHARED_WINDOW + address;
      check_cell(M, cta.cells[g], {generic, cta.shared + address, bytes, how | how_of(act), SHARED, line, lane});
      continue;
    }
    if (s.write_epoch >= met) {
      if (s.write_thread != self && !(act == ATOMIC && s.write_atomic)) {
        const bool stores = act == WRITE && !s.write_atomic, lanes = s.write_thread / 32 == warp;
        if (!lanes) clash(RACE, s.write_line, s.write_thread, stores);
        else if (unordered(s.write_epoch, s.write_thread))
          clash(LOCKSTEP, s.write_line, s.write_thread, stores, s.write_line == line && s.write_epoch == epoch);
      }
    } else if (act != WRITE && s.write_epoch < cta.began) {
      unwritten(g);
    }
    if (act == READ) {
      reading.note(s, lane);
      continue;
    }
    if (s.read_epoch >= met) {
      if (s.read_warps & ~(1u << warp)) {
        const int reader = s.read_lanes ? __builtin_ctz(s.read_lanes) : 0;
        clash(RACE, s.read_line, s.read_warp != warp ? s.read_warp * 32 + reader : -1);
      } else {
        const u32 readers = s.read_lanes & ~(1u << lane);
        u32 late = 0;
        if (readers && s.read_epoch > W.synced) ACTIVE(readers, late |= (u32)unordered(s.read_epoch, l) << l)
        if (late) clash(LOCKSTEP, s.read_line, warp * 32 + __builtin_ctz(late));
      }
    }
    if (act == ATOMIC) {
      if (cta.replaced.empty()) cta.replaced.resize(cta.shadow.size());
      ReplacedStore& plain = cta.replaced[g];
      if (!s.write_atomic) plain = {s.write_epoch, s.write_line, s.write_thread};
      if (plain.epoch >= met && plain.thread / 32 != warp) clash(RACE, plain.line, plain.thread);
      else if (s.write_epoch == epoch && !s.write_atomic && s.write_thread == self) continue;  // others clash
    }
    s.write_epoch = epoch, s.write_line = line, s.write_thread = self, s.write_atomic = act == ATOMIC;
  }
}
