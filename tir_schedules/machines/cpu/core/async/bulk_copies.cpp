// Bulk copies: cp.async.bulk of bytes in a row, and of boxes of a tensor map. Source: PTX ISA 9.0, Data
// Movement and Conversion Instructions: Asynchronous copy.
//
// A copy into shared memory acts in the name of the mbarrier that it tells of its bytes; one out of shared
// memory in that of the thread that groups it, reads apart from writes.
#include "async/async.h"
#include "check/check.h"
#include "observe/observer.h"
#include "operands.h"

const u32 ALIGNMENT = 16;

// The bytes of a copy in a row must be a multiple of 16, and both addresses, too.
static bool check_row(Machine& M, const MicroOp& op, int lane, u32 shared, Act act, u64 other, Space space,
                      u32 bytes) {
  auto fault = [&](Act what, Space where, u64 address) {
    report_access(M, MISALIGNED, op.line, lane, what, where, address, ALIGNMENT);
    return false;
  };
  if (bytes % ALIGNMENT) {
    if (Finding* f = report_access(M, MISALIGNED, op.line, lane, act, SHARED, shared, bytes)) f->detail = OF_SIZE;
    return false;
  }
  if (shared % ALIGNMENT) return fault(act, SHARED, shared);
  return !(other % ALIGNMENT) || fault(act == READ ? WRITE : READ, space, other);
}
static u8* memory_at(const Machine& M, u64 address, u32 bytes) {  // as it was checked; it may have been freed
  const Buffer& buffer = M.global.buffers[(address >> BUFFER_SHIFT) - 1];
  const u64 offset = address & ((1ull << BUFFER_SHIFT) - 1);
  return offset + bytes <= buffer.bytes ? buffer.data + offset : nullptr;
}

// The pieces of global memory that a copy reads or writes.
static void tell_pieces(const Machine& M, const MicroOp& op, int lane, Act act, u64 tile,
                        const std::vector<Piece>& pieces) {
  bool first = true;
  for (const Piece& piece : pieces) {
    if (!piece.address) continue;
    tell(M, BulkPiece{piece.address, piece.bytes, (u32)lane, op.line, act, tile, first});
    first = false;
  }
}

// ---- into shared memory ---
struct Load {
  std::vector<Piece> pieces;  // address: where in `data`
  std::vector<u8> data;
  u32 bytes;  // what the mbarrier is told
  u32 into, row = 0, buffer = 0;  // row: bytes of that of a box; buffer: number of what it is of
};
typedef std::shared_ptr<const Load> Loaded;
// A copy that begins, and the pieces that it brings, each of which is as far into it as into `data`.
static void tell_begun(const Machine& M, const Operation& o, const Cta& to, u32 barrier, const Load& what) {
  if (!M.unit_events) return;
  Event event = event_of(BEGUN, o.line, 1u << o.lane, what.into, to.mbarriers.at(barrier).phase, what.bytes);
  event.warp = o.warp, event.other = barrier, event.row = what.row, event.buffer = what.buffer;
  UnitEvent made{event, to, {}};
  for (const Piece& piece : what.pieces) made.moved.push_back({0, (u32)piece.address, piece.shared, piece.bytes});
  tell(M, made);
}
// A copy to one block of the cluster. o: in the name of the mbarrier there.
static void send_copy(Machine& M, Operation&& o, Cta& to, u32 barrier, const Loaded& what) {
  Mbarrier& b = to.mbarriers[barrier];
  for (const Piece& piece : what->pieces)
    if (!check_unit_shared(M, o, to, piece.shared, piece.bytes, WRITE)) return lose_bytes(M, b);
  b.copy = {o.epoch, o.line, o.warp, o.lane};
  tell_begun(M, o, to, barrier, *what);
  o.perform = [o, &to, barrier, what](Machine& M) {
    for (const Piece& piece : what->pieces)
      memcpy(to.shared + piece.shared, what->data.data() + piece.address, piece.bytes);
    complete_bytes(M, to, barrier, o, what->bytes);
  };
  if (at_once(M)) perform(M, o);
  else M.cta->cluster->pending.push_back(std::move(o));
}
// Where a copy goes in a block, and the mbarrier that is told there; cta: nullptr after a finding.
static Place target_of(Machine& M, const MicroOp& op, int lane, u32 shared, u32 barrier) {
  const Place to = place_of(M, shared), told = place_of(M, barrier);
  if (!to.cta) {
    report_access(M, OUT_OF_BOUNDS, op.line, lane, WRITE, SHARED, shared, ALIGNMENT);
    return to;
  }
  if (to.cta != M.cta) {
    const u32 unit = copy_unit(told.address);
    const Visit visited{(u32)to.cta->number + 1, unit, M.epoch, shared, op.line, lane, M.warp};
    if (!visit(M, *to.cta, visited, WRITE, ALIGNMENT)) return {nullptr, 0};
  }
  if (!mbarrier_at(M, barrier, op.line, lane)) return {nullptr, 0};
  if (to.cta == told.cta) return to;
  report_misuse(M, OF_ANOTHER_BLOCK, op.line, lane, barrier);
  return {nullptr, 0};
}
// The threads that an mbarrier is initialised by have to let the copies see it.
static void check_fenced(Machine& M, const Operation& o, Cta& cta, u32 address) {
  const Mbarrier& b = cta.mbarriers[address];
  const u32 block = cta.number + 1;
  const bool known = o.clock && o.clock->covers(block, b.by, b.epoch);
  if (known && (b.fenced || o.clock->covers(block | FENCED, b.by, b.epoch))) return;
  const u32 shown = shown_address(M, cta, address);
  report_access(M, known ? UNFENCED_PROXY : RACE, o.line, o.lane, ATOMIC, SHARED, shown, 8, b.line, b.by,
                  &cta == M.cta ? 0 : block);
}
// The other side of a copy. rank: of a box, 0 for bytes in a row.
struct Source {
  u64 address;
  u32 rank, bytes;
  s32 at[5];

  template <class Op> Source(const Op& op, int lane) : address(op.far()[lane]), rank(op.coordinates().count) {
    for (u32 d = 0; d < rank; ++d) at[d] = op.coordinates()[d][lane];
    bytes = rank ? 0 : op.bytes()[lane];
  }
};
// Its pieces at an address of shared memory; nullptr after a finding. Its reads are those of `o`. tile: see BulkPiece.
static Loaded loaded(Machine& M, const Operation& o, const ops::BulkLoad& op, int lane, u32 into, const Source& from,
                     u64 tile) {
  auto what = std::make_shared<Load>();
  what->into = into;
  if (from.rank) {
    Box box = box_at(M, op, lane, from.address, from.rank, from.at, into, WRITE);
    if (!box.valid) return nullptr;
    tell(M, BoxCopy{op.counter(), box.sectors, box.inside});
    what->bytes = box.bytes, what->row = box.row, what->buffer = box.buffer;
    what->pieces = std::move(box.pieces);
  } else {
    const bool shared = op.from_shared();
    const Space space = shared ? SHARED : GLOBAL;
    if (!check_row(M, op, lane, into, WRITE, from.address, space, from.bytes)) return nullptr;
    what->bytes = from.bytes;
    what->pieces.push_back({into, from.bytes, from.address});
    if (shared) {
      const Place place = place_of(M, (u32)from.address);
      if (place.cta != M.cta || !check_unit_shared(M, o, *M.cta, place.address, from.bytes, READ)) return nullptr;
      what->data.assign(M.cta->shared + place.address, M.cta->shared + place.address + from.bytes);
      what->pieces[0].address = 0;
      return what;
    }
    what->buffer = u32(from.address >> BUFFER_SHIFT);
  }
  tell_pieces(M, op, lane, READ, tile, what->pieces);
  u64 size = 0;
  for (const Piece& piece : what->pieces) size += piece.bytes;
  what->data.assign(size, 0);
  u64 at = 0;
  for (Piece& piece : what->pieces) {
    const u8* data = piece.address ? check_unit_global(M, o, piece.address, piece.bytes, READ) : nullptr;
    if (piece.address && !data) return nullptr;
    if (data) memcpy(what->data.data() + at, data, piece.bytes);
    piece.address = at, at += piece.bytes;
  }
  return what;
}
static void execute(Machine& M, Warp& W, const ops::BulkLoad& op) {
  ACTIVE(W.active, {
    const u32 into = (u32)op.into()[l], told = (u32)op.told()[l];
    const Source from(op, l);
    const u32 ranks = op.ranks() ? op.ranks()[l] : 0;
    if (op.ranks() && !ranks) continue;
    Loaded what;
    for (u32 k = 0; k < 16; ++k) {
      if (ranks ? !(ranks >> k & 1) : k > 0) continue;
      const u32 block = (k + 1) << RANK_SHIFT;
      const u32 target = ranks ? block | (into & IN_BLOCK) : into;
      const u32 barrier = ranks ? block | (told & IN_BLOCK) : told;
      const Place to = target_of(M, op, l, target, barrier);
      if (!to.cta) continue;
      const u32 place = place_of(M, barrier).address;
      Operation operation = begin_operation(M, copy_unit(place), op, 1u << l);
      operation.block = to.cta->number + 1;
      check_fenced(M, operation, *to.cta, place);
      const u64 tile = to.cta->mbarriers[place].phase << 32 | place;
      if (!what) what = loaded(M, operation, op, l, to.address, from, tile);
      if (!what) lose_bytes(M, to.cta->mbarriers[place]);
      else send_copy(M, std::move(operation), *to.cta, place, what);
    }
  })
}
// A store whose bytes an mbarrier of its block is told of.
static void execute(Machine& M, Warp& W, const ops::StoreAsync& op) {
  const Registers<u8> values = op.values();
  const u32 element = op.element(), bytes = element * values.count;
  ACTIVE(W.active, {
    const u32 into = (u32)op.into()[l], told = (u32)op.told()[l];
    const Place to = target_of(M, op, l, into, told);
    if (!to.cta) continue;
    if (to.address % bytes) {
      report_access(M, MISALIGNED, op.line(), l, WRITE, SHARED, into, bytes);
      continue;
    }
    auto what = std::make_shared<Load>();
    what->bytes = bytes, what->into = to.address, what->pieces.push_back({to.address, bytes, 0});
    for (u32 k = 0; k < values.count; ++k)
      what->data.insert(what->data.end(), values[k] + l * element, values[k] + (l + 1) * element);
    const u32 place = place_of(M, told).address;
    Operation operation = begin_operation(M, copy_unit(place), op, 1u << l);
    operation.block = to.cta->number + 1, operation.proxy = false;
    send_copy(M, std::move(operation), *to.cta, place, what);
  })
}

// ---- out of shared memory ---
static void tell_stored(const Machine& M, const Event& event, const std::vector<Piece>& pieces) {
  UnitEvent made{event, *M.cta, {}};
  u32 at = 0;
  for (const Piece& piece : pieces) made.moved.push_back({0, at, piece.shared, piece.bytes}), at += piece.bytes;
  tell(M, made);
}
static void execute(Machine& M, Warp& W, const ops::BulkStore& op) {
  ACTIVE(W.active, {
    const u32 start = (u32)op.source()[l];
    const Place from = place_of(M, start);
    const Source to(op, l);
    if (from.cta != M.cta) {
      report_access(M, OUT_OF_BOUNDS, op.line(), l, READ, SHARED, start, ALIGNMENT);
      continue;
    }
    auto pieces = std::make_shared<std::vector<Piece>>();
    const u32 thread = M.thread_of(l);
    Event event = event_of(STORED, op.line(), 1u << l, from.address, M.cta->bulk[thread].groups.size(), 0);
    event.warp = M.warp;
    if (to.rank) {
      Box box = box_at(M, op, l, to.address, to.rank, to.at, from.address, READ, true);
      if (!box.valid) continue;
      tell(M, BoxCopy{op.counter(), box.sectors, box.inside});
      *pieces = std::move(box.pieces);
      event.bytes = box.bytes, event.row = box.row, event.buffer = box.buffer;
    } else {
      if (!check_row(M, op, l, from.address, READ, to.address, GLOBAL, to.bytes)) continue;
      pieces->push_back({from.address, to.bytes, to.address});
      event.bytes = to.bytes, event.buffer = u32(to.address >> BUFFER_SHIFT);
    }
    tell_pieces(M, op, l, WRITE, event.phase, *pieces);
    if (M.unit_events) tell_stored(M, event, *pieces);
    Operation reads = begin_operation(M, bulk_reader(thread), op, 1u << l), writes = reads;
    writes.thread = bulk_writer(thread);
    for (Piece& piece : *pieces) {
      if (!piece.address) continue;
      const bool there = check_unit_shared(M, reads, *M.cta, piece.shared, piece.bytes, READ);
      if (!there || !check_unit_global(M, writes, piece.address, piece.bytes, WRITE)) piece.address = 0;
    }
    reads.perform = [pieces](Machine& M) {
      for (const Piece& piece : *pieces)
        if (u8* data = piece.address ? memory_at(M, piece.address, piece.bytes) : nullptr)
          memcpy(data, M.cta->shared + piece.shared, piece.bytes);
    };
    if (at_once(M)) perform(M, reads);
    M.cta->bulk[thread].open.push_back(std::move(reads));
  })
}
static void execute(Machine& M, Warp& W, const ops::BulkCommit& op) {
  ACTIVE(W.active, {
    BulkCopies& own = M.cta->bulk[M.thread_of(l)];
    for (Operation& each : own.open)
      if (each.group == NONE) each.group = own.groups.size();
    tell_group(M, STORES_COMMITTED, op.line(), 1u << l, own.groups.size(), 0);
    own.groups.push_back(M.epoch);
  })
  ++M.epoch;
}
static void execute(Machine& M, Warp& W, const ops::BulkWait& op) {
  ACTIVE(W.active, {
    const u32 thread = M.thread_of(l);
    BulkCopies& own = M.cta->bulk[thread];
    if (own.groups.size() <= op.open()) continue;
    const u32 done = own.groups.size() - op.open();
    tell_group(M, STORES_DRAINED, op.line(), 1u << l, done, op.open());
    for (; !own.open.empty() && own.open.front().group < done; own.open.pop_front())
      perform(M, own.open.front());
    std::vector<ClockEntry> groups;
    for (u32 unit : {bulk_reader(thread), bulk_writer(thread)})
      if (unit == bulk_reader(thread) || !op.read())
        groups.push_back({M.block_number(), unit / 32, 1u << unit % 32, own.groups[done - 1]});
    acquire(M, 1u << l, clock_of(std::move(groups)));
  })
}
static void execute(Machine& M, Warp& W, const ops::BulkPrefetch& op) {
  ACTIVE(W.active, {
    const Source from(op, l);
    if (from.rank) {
      box_at(M, op, l, from.address, from.rank, from.at, 0, READ);
      continue;
    }
    const u64 number = (from.address >> BUFFER_SHIFT) - 1;
    if (from.address % ALIGNMENT || from.bytes % ALIGNMENT)
      report_access(M, MISALIGNED, op.line(), l, READ, GLOBAL, from.address, ALIGNMENT);
    else if (number >= M.global.count || !memory_at(M, from.address, from.bytes))
      report_access(M, OUT_OF_BOUNDS, op.line(), l, READ, GLOBAL, from.address, from.bytes);
  })
}
