// What is wrong with an access: bounds, alignment, races, reads of what nobody wrote. A fault is recorded,
// the lane's access is dropped, and the launch goes on.
#include "exec/machine.h"

// One record per kind, source line, other source line and buffer, and one more where the other access is of
// another block; no kind takes the records of another.
Finding* Machine::report(Kind kind, s32 line, int lane, s32 other, u64 address, u32 other_block) {
  u32 of_kind = 0;
  for (u32 k = 0; k < finding_count; ++k) {
    if (findings[k].kind != kind) continue;
    if (origins[findings[k].line] == origins[line] && origins[findings[k].other_line] == origins[other] &&
        buffer_of(findings[k].address) == buffer_of(address) && !findings[k].other_block == !other_block) {
      findings[k].count++;
      return nullptr;
    }
    ++of_kind;
  }
  if (of_kind == finding_limit) return nullptr;
  Finding& f = findings[finding_count++];
  f = Finding{};
  f.kind = kind, f.line = line, f.other_line = other, f.address = address, f.warp = warp, f.lane = lane,
  f.count = 1, f.other_block = other_block;
  memcpy(f.block, block_index, sizeof f.block);
  return &f;
}

Finding* Machine::report_access(Kind kind, s32 line, int lane, Act act, Space space, u64 address, u32 bytes,
                                s32 other, int other_thread, u32 other_block) {
  Finding* f = report(kind, line, lane, other, address, other_block);
  if (f) {
    f->act = act, f->space = space, f->bytes = bytes;
    if (other_thread >= (int)FIRST_UNIT) other_thread = thread_of_unit(other_thread);
    f->other_warp = other_thread < 0 ? -1 : other_thread / 32,
    f->other_lane = other_thread < 0 ? -1 : other_thread % 32;
  }
  return f;
}

bool whole_warp(Machine& M, const Warp& W, s32 line) {
  if (W.active == NONE) return true;
  if (Finding* f = M.report(DIVERGENT_ALIGNED, line, __builtin_ctz(~W.active))) f->detail = W.active;
  return false;
}

// In shared memory or a lane's local memory; inside the variable that the address comes from, where it comes
// from one.
u8* Machine::at_own(Space space, u8* memory, u32 memory_bytes, u64 address, u32 bytes, const MicroOp& op,
                    int lane, Act act) {
  const Range range = reach(space, memory_bytes, op);
  const bool outside = address < range.low || address + bytes > range.high;
  if (!outside && !(address & (bytes - 1))) return memory + address;
  if (Finding* f =
          report_access(outside ? OUT_OF_BOUNDS : MISALIGNED, op.line, lane, act, space, address, bytes))
    if (op.extent->space == space) f->extent = op.extent->number, f->extent_bytes = range.high - range.low;
  return nullptr;
}

static u32 acts_as(Act act) { return act == WRITE ? STORES : act == ATOMIC ? UPDATES | STRONG : 0; }

u8* Machine::at_global(u64 address, u32 bytes, const MicroOp& op, int lane, Act act, u32 how) {
  const u64 number = (address >> BUFFER_SHIFT) - 1, offset = address & ((1ull << BUFFER_SHIFT) - 1);
  const bool outside =
      number >= buffer_count || bytes > buffers[number].bytes || offset > buffers[number].bytes - bytes;
  if (outside || address & (bytes - 1)) {
    if (Finding* f =
            report_access(outside ? OUT_OF_BOUNDS : MISALIGNED, op.line, lane, act, GLOBAL, address, bytes))
      describe_heap(*this, address, *f);
    return nullptr;
  }
  const Buffer& buffer = buffers[number];
  if (act != READ && buffer.constant) {
    report_access(WRITE_TO_INPUT, op.line, lane, act, GLOBAL, address, bytes);
    return nullptr;
  }
  u8* data = buffer.data + offset;
  if (!buffer.cells) return data;
  if (act != WRITE || how & STRONG) interacts = true;
  const Touch touch{address, data, bytes, how | acts_as(act), GLOBAL, op.line, lane};
  for (u64 e = offset >> buffer.element; e <= (offset + bytes - 1) >> buffer.element; ++e) {
    Cell& cell = buffer.cells[e];
    if (act != WRITE && !cell.line && !buffer.initialized)
      report_access(UNINITIALIZED, op.line, lane, act, GLOBAL, address, bytes);
    if (alone && act == WRITE && !(cell.block | cell.others)) {
      cell = {op.line, now, (u32)block_number + 1, 0, (u16)(warp * 32 + lane), (u16)(how | STORES), op.line};
      continue;
    }
    if (!alone) {
      if (!claim(cell)) interacts = true;
      cell.line = cell.plain_line = op.line;
      continue;
    }
    touch_cell(cell, touch);
  }
  return data;
}
// Whether an element is this block's alone, while other threads run other blocks.
bool Machine::claim(Cell& cell) {
  const u32 block = block_number + 1;
  u32 owner = __atomic_load_n(&cell.block, __ATOMIC_RELAXED);
  if (!owner)
    __atomic_compare_exchange_n(&cell.block, &owner, block, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return !owner || owner == block;
}

bool Machine::same_value(u32 bytes, const u8* data, int lane, bool together, int other_lane) const {
  if (!incoming) return false;
  const u32 width = incoming_width;
  if (together) {
    auto at = [&](int l) {
      return incoming_wide ? ((const u64*)incoming_address)[l] : ((const u32*)incoming_address)[l];
    };
    if (at(lane) != at(other_lane)) return false;
  }
  for (u32 at = 0; at < bytes; at += width) {
    const u8* values = (const u8*)incoming[at / width];
    const u8* there = together ? values + other_lane * width : data + at;
    if (memcmp(values + lane * width, there, width)) return false;
  }
  return true;
}

u8* Machine::at_generic(u64 address, u32 bytes, const MicroOp& op, int lane, Act act, u32 how) {
  if (address >= SHARED_WINDOW && address < SHARED_WINDOW + WINDOW_BYTES) {
    if (traits & UNITS && (address - SHARED_WINDOW) >> RANK_SHIFT)
      return at_cluster(u32(address - SHARED_WINDOW), bytes, op, lane, act, how);
    u8* data = at_shared(u32(address - SHARED_WINDOW), bytes, op, lane, act);
    if (data) touch(u32(address - SHARED_WINDOW), bytes, act, lane, op.line, how);
    return data;
  }
  if (address >= LOCAL_WINDOW && address < LOCAL_WINDOW + WINDOW_BYTES)
    return at_local(address - LOCAL_WINDOW, bytes, op, lane, act);
  return at_global(address, bytes, op, lane, act, how);
}

// Of a warp's reads: what is the same for all of them.
struct Reading {
  const u32 met, time;
  const s32 line;
  const int warp;

  void note(SharedShadow& s, int lane) const {
    const bool again = (s.read_warp == warp) & (s.read_time == time);
    s.read_lanes = (again ? s.read_lanes : 0) | 1u << lane;
    s.read_warps = (s.read_time >= met ? s.read_warps : 0) | 1u << warp;
    s.read_time = time, s.read_line = line, s.read_warp = warp;
  }
};

// As `touch` of each lane. Where a whole value was written before the last __syncthreads, nothing can be
// wrong, and the reader is noted at once.
void Machine::touch_reads(const u32* addresses, u32 lanes, u32 bytes, s32 line) {
  if (traits & CLOCKS) {
    ACTIVE(lanes, touch(addresses[l], bytes, READ, l, line))
    return;
  }
  const Reading reading{met, now, line, warp};
  const u32 shift = granule_shift, met = this->met, first = began;
  SharedShadow* const shadows = shadow;
  u32 previous = NONE;
  ACTIVE(lanes, {
    const u32 address = addresses[l];
    if (address == previous) {  // as the lane before, unless there is a writer to compare with
      SharedShadow& s = shadows[previous >> shift];
      if (s.write_time < met && bytes <= 1u << shift) {
        s.read_lanes |= 1u << l;
        continue;
      }
    }
    previous = address;
    for (u32 g = address >> shift, last = (address + bytes - 1) >> shift; g <= last; ++g) {
      SharedShadow& s = shadows[g];
      if (s.in_flight || s.undefined || s.write_time - first >= met - first) {
        touch(address, bytes, READ, l, line);
        break;
      }
      reading.note(s, l);
    }
  })
}

// As `touch` of each lane that stores. Where no other lane has touched a granule since the last
// __syncthreads, nothing can be wrong, and the writer is noted at once.
void Machine::touch_writes(const u32* addresses, u32 lanes, u32 bytes, s32 line, u32 how) {
  if (traits & CLOCKS) {
    ACTIVE(lanes, touch(addresses[l], bytes, WRITE, l, line, how))
    return;
  }
  const u32 shift = granule_shift, met = this->met, time = now, own_warp = 1u << warp;
  const u16 first = warp * 32;
  SharedShadow* const shadows = shadow;
  ACTIVE(lanes, {
    const u32 address = addresses[l];
    const u16 self = first + l;
    for (u32 g = address >> shift, last = (address + bytes - 1) >> shift; g <= last; ++g) {
      SharedShadow& s = shadows[g];
      const bool written = s.write_time >= met && s.write_thread != self;
      const bool read = s.read_time >= met && (s.read_warps != own_warp || s.read_lanes != 1u << l);
      if (s.in_flight || s.undefined || written || read) {
        touch(address, bytes, WRITE, l, line, how);
        break;
      }
      s.write_time = time, s.write_line = line, s.write_thread = self, s.write_atomic = false;
    }
  })
}

// Two threads touch a granule, one of them writes, and no __syncthreads lies between: a race when they are in
// different warps, reliance on lockstep when they are lanes of one warp with no __syncwarp between. Where a
// kernel orders accesses in other ways, too, cells tell.
void Machine::touch(u32 address, u32 bytes, Act act, int lane, s32 line, u32 how) {
  const u16 self = warp * 32 + lane;
  const Warp& W = warps[warp];
  const Reading reading{met, now, line, warp};
  const u32 clocks = traits & CLOCKS;
  bool reported = false;
  // Of an earlier access by a lane of this warp. Who has left needs no __syncwarp.
  auto unordered = [&](u32 time, u16 other) { return time > W.knows(lane, other % 32); };
  auto clash = [&](Kind kind, s32 other, int other_thread, bool stores = false, bool together = false) {
    if (reported) return;
    if (stores && same_value(bytes, shared + address, lane, together, other_thread % 32)) kind = SAME_VALUE;
    report_access(kind, line, lane, act, SHARED, address, bytes, other, other_thread);
    reported = kind != SAME_VALUE;
  };
  for (u32 g = address >> granule_shift, last = (address + bytes - 1) >> granule_shift; g <= last; ++g) {
    SharedShadow& s = shadow[g];
    if (__builtin_expect(s.in_flight, 0)) clash(IN_FLIGHT, s.write_line, -1);
    if (__builtin_expect(s.undefined, 0) && s.write_time >= began) {
      if (act != WRITE) clash(UNINITIALIZED, s.write_line, s.write_thread);
      else s.undefined = false;
    }
    if (clocks) {
      if (act != WRITE && s.write_time < began) clash(UNINITIALIZED, 0, -1);
      if (act != READ) s.write_time = now, s.write_line = line, s.write_thread = self;
      const u64 generic = SHARED_WINDOW + address;
      touch_cell(cta->cells[g], {generic, shared + address, bytes, how | acts_as(act), SHARED, line, lane});
      continue;
    }
    if (s.write_time >= met) {
      if (s.write_thread != self && !(act == ATOMIC && s.write_atomic)) {
        const bool stores = act == WRITE && !s.write_atomic, lanes = s.write_thread / 32 == warp;
        if (!lanes) clash(RACE, s.write_line, s.write_thread, stores);
        else if (unordered(s.write_time, s.write_thread))
          clash(LOCKSTEP, s.write_line, s.write_thread, stores, s.write_line == line && s.write_time == now);
      }
    } else if (act != WRITE && s.write_time < began) {
      clash(UNINITIALIZED, 0, -1);
    }
    if (act == READ) {
      reading.note(s, lane);
      continue;
    }
    if (s.read_time >= met) {
      if (s.read_warps & ~(1u << warp)) {
        clash(RACE, s.read_line, s.read_warp != warp ? s.read_warp * 32 + __builtin_ctz(s.read_lanes) : -1);
      } else {
        const u32 readers = s.read_lanes & ~(1u << lane);
        u32 late = 0;
        if (readers && s.read_time > W.known) ACTIVE(readers, late |= (u32)unordered(s.read_time, l) << l)
        if (late) clash(LOCKSTEP, s.read_line, warp * 32 + __builtin_ctz(late));
      }
    }
    if (act == ATOMIC) {
      if (cta->replaced.empty()) cta->replaced.resize(cta->shadow.size());
      Store& plain = cta->replaced[g];
      if (!s.write_atomic) plain = {s.write_time, s.write_line, s.write_thread};
      if (plain.time >= met && plain.thread / 32 != warp) clash(RACE, plain.line, plain.thread);
      else if (s.write_time == now && !s.write_atomic && s.write_thread == self) continue;  // others clash
    }
    s.write_time = now, s.write_line = line, s.write_thread = self, s.write_atomic = act == ATOMIC;
  }
}
