// Loads, stores and atomics.
#include "check/warp_accesses.h"
#include "exec/exec.h"

template <class T, int N, bool STORE> static void move(u8* const* memory, u32 mask, void* const* values) {
  for (int k = 0; k < N; ++k) {
    T* v = (T*)values[k];
    auto move_one = [&](int l) {
      T* p = (T*)memory[l] + k;
      if (STORE) *p = v[l];
      else v[l] = *p;
    };
    if (mask == NONE) LANES(move_one(l))
    else ACTIVE(mask, move_one(l))
  }
}
template <bool STORE>
static void move(u8* const* memory, u32 mask, u32 width, u32 count, void* const* values) {
  switch (width * 8 + count) {
    case 9: return move<u8, 1, STORE>(memory, mask, values);
    case 10: return move<u8, 2, STORE>(memory, mask, values);
    case 12: return move<u8, 4, STORE>(memory, mask, values);
    case 17: return move<u16, 1, STORE>(memory, mask, values);
    case 18: return move<u16, 2, STORE>(memory, mask, values);
    case 20: return move<u16, 4, STORE>(memory, mask, values);
    case 33: return move<u32, 1, STORE>(memory, mask, values);
    case 34: return move<u32, 2, STORE>(memory, mask, values);
    case 36: return move<u32, 4, STORE>(memory, mask, values);
    case 65: return move<u64, 1, STORE>(memory, mask, values);
    case 66: return move<u64, 2, STORE>(memory, mask, values);
    case 129: return move<u128, 1, STORE>(memory, mask, values);
  }
}
// A load that was dropped leaves all bits set: NaN in every float type.
static void poison(u32 mask, u32 width, u32 count, void* const* values) {
  for (u32 k = 0; k < count; ++k) ACTIVE(mask, memset((u8*)values[k] + l * width, 0xff, width))
}
// Of accesses that may order others: what a strong one brings about; a plain store takes a flag away.
template <class T>
static void order(Machine& M, u32 mask, const T* address, u64 window, u32 bytes, u32 how, bool store) {
  if (!(M.program.traits & CLOCKS)) return;
  const u32 acts = store ? how | STORES : how;
  if (M.waits && window == 0)
    ACTIVE(mask, if (store) M.waits->leave(M, address[l], bytes, false);
           else if (how & STRONG) M.waits->look(M, address[l], bytes))
  if (how & STRONG) ACTIVE(mask, synchronize(M, window + address[l], bytes, l, acts, !store))
  else if (store) ACTIVE(mask, forget_sync_words(M, window + address[l], bytes))
  if (store && M.program.traits & OBSERVES) ++M.epoch;  // what comes next, it has not told of
}
// Of floats of a buffer that keeps them, once they are stored: the largest magnitudes.
static void note_size(const Machine& M, u64 address, u32 bytes) {
  const u64 number = (address >> BUFFER_SHIFT) - 1, offset = address & ((1ull << BUFFER_SHIFT) - 1);
  if (number >= M.global.count || !M.global.buffers[number].largest) return;
  const Buffer& buffer = M.global.buffers[number];
  const u32 each = buffer.real >> 8, of_half = (buffer.real & 255) == 5;
  for (u64 k = offset / each; k <= (offset + bytes - 1) / each; ++k) {
    const u8* p = buffer.data + k * each;
    const f64 value = each == 8   ? *(const f64*)p
                      : each == 4 ? *(const f32*)p
                      : of_half   ? half_to_float(*(const u16*)p)
                                  : bfloat_to_float(*(const u16*)p);
    if (std::fabs(value) > buffer.largest[k] && std::isfinite(value)) buffer.largest[k] = std::fabs(value);
  }
}
template <bool STORE>
static void finish(u8* const* memory, u32 mask, u32 asked, u32 width, u32 count, void* const* values) {
  move<STORE>(memory, mask, width, count, values);
  if (!STORE && mask != asked) poison(asked & ~mask, width, count, values);
}

template <bool STORE> static void shared_access(Machine& M, Warp& W, const ops::Access& op, const u32* address,
                                                u32 width, u32 count, void* const* values, u32 how) {
  const u32 bytes = width * count, asked = W.active;
  u8* memory[32];
  const u32 mask = in_shared(M, address, bytes, op, asked, STORE ? WRITE : READ, memory);
  tell(M, SharedAccess{op.counter(), address, mask, bytes, STORE});
  if (STORE) {
    M.incoming = {values, address, width, false};
    check_shared_writes(M, address, mask, bytes, op.line(), how);
    M.incoming.values = nullptr, ++M.stores;
  } else if (how) {
    ACTIVE(mask, check_shared(M, address[l], bytes, READ, l, op.line(), how))
  } else {
    check_shared_reads(M, address, mask, bytes, op.line());
  }
  if (STORE || how) order(M, mask, address, SHARED_WINDOW, bytes, how, STORE);
  finish<STORE>(memory, mask, asked, width, count, values);
  tell_performed(M);
}
template <bool STORE> static void global_access(Machine& M, Warp& W, const ops::Access& op, const u64* address,
                                                u32 width, u32 count, void* const* values, u32 how) {
  const u32 bytes = width * count, asked = W.active;
  if (!asked) return;
  u8* memory[32];
  if (STORE) M.incoming = {values, address, width, true};
  const u32 mask = in_global(M, address, bytes, op, asked, STORE ? WRITE : READ, how, memory);
  if (STORE || how) order(M, mask, address, 0, bytes, how, STORE);
  if (STORE) M.incoming.values = nullptr, ++M.stores;
  tell(M, GlobalAccess{op.counter(), address, mask, bytes, op.line(), STORE ? WRITE : READ});
  finish<STORE>(memory, mask, asked, width, count, values);
  if (STORE && M.launch.flags & SIZES) ACTIVE(mask, note_size(M, address[l], bytes))
}
// An access whose address has no space: the lanes that come to the block's own shared memory count for the second of
// its counters, those that come to global memory for the first. Those of another block of the cluster are not counted.
static void tell_generic(Machine& M, s32 counter, s32 line, const u64* address, u32 lanes, u32 bytes, Act act) {
  ALIGNED u32 narrow[32];
  u32 shared = 0, global = 0;
  ACTIVE(lanes, {
    const u64 offset = address[l] - SHARED_WINDOW;
    const bool in_cluster = offset < WINDOW_BYTES, local = address[l] - LOCAL_WINDOW < WINDOW_BYTES;
    const Place place = in_cluster ? place_of(M, (u32)offset) : Place{nullptr, 0};
    narrow[l] = place.address;
    shared |= (u32)(place.cta == M.cta && place.address < M.launch.shared_bytes) << l;
    global |= (u32)(!in_cluster && !local) << l;
  })
  if (shared && counter >= 0) tell(M, SharedAccess{counter + 1, narrow, shared, bytes, act != READ});
  tell(M, GlobalAccess{counter, address, global, bytes, line, act});
}
template <bool STORE> static void generic_access(Machine& M, Warp& W, const ops::Access& op, const u64* address,
                                                 u32 width, u32 count, void* const* values, u32 how) {
  u8* memory[32];
  u32 mask = W.active, local = 0;
  if (STORE) M.incoming = {values, address, width, true};
  ACTIVE(W.active, {
    memory[l] = at_generic(M, address[l], width * count, op, l, STORE ? WRITE : READ, how);
    if (!memory[l]) mask &= ~(1u << l);
    local |= (u32)(address[l] >= LOCAL_WINDOW && address[l] < LOCAL_WINDOW + WINDOW_BYTES) << l;
  })
  M.incoming.values = nullptr;
  order(M, mask & ~local, address, 0, width * count, how, STORE);
  if (STORE && mask & ~local) ++M.stores;
  tell_generic(M, op.counter(), op.line(), address, mask, width * count, STORE ? WRITE : READ);
  finish<STORE>(memory, mask, W.active, width, count, values);
  if (STORE && M.launch.flags & SIZES) ACTIVE(mask, note_size(M, address[l], width * count))
  tell_performed(M);
}
template <Space SPACE, bool STORE> static void access(Machine& M, Warp& W, const ops::Access& op) {
  void* values[4];
  const Registers<u8> registers = op.values();
  const u32 width = op.width(), count = registers.count, how = op.how();
  for (u32 k = 0; k < count; ++k) values[k] = registers[k];
  if (SPACE == SHARED) {
    ALIGNED u32 address[32];
    op.where().fill(address);
    shared_access<STORE>(M, W, op, address, width, count, values, how);
  } else {
    ALIGNED u64 address[32];
    op.where().fill(address);
    if (SPACE == GLOBAL) global_access<STORE>(M, W, op, address, width, count, values, how);
    else generic_access<STORE>(M, W, op, address, width, count, values, how);
  }
}
static void execute(Machine& M, Warp& W, const ops::LdShared& op) { access<SHARED, false>(M, W, op); }
static void execute(Machine& M, Warp& W, const ops::StShared& op) { access<SHARED, true>(M, W, op); }
static void execute(Machine& M, Warp& W, const ops::LdGlobal& op) { access<GLOBAL, false>(M, W, op); }
static void execute(Machine& M, Warp& W, const ops::StGlobal& op) { access<GLOBAL, true>(M, W, op); }
static void execute(Machine& M, Warp& W, const ops::LdGeneric& op) { access<GENERIC, false>(M, W, op); }
static void execute(Machine& M, Warp& W, const ops::StGeneric& op) { access<GENERIC, true>(M, W, op); }
template <class T> static void load_parameter(Machine& M, Warp& W, const ops::LoadParameter& op) {
  T value = 0, *result = (T*)op.result();
  memcpy(&value, M.launch.params + op.offset(), op.bytes());
  ACTIVE(W.active, result[l] = value)
}
static void execute(Machine& M, Warp& W, const ops::LoadParameter& op) {
  switch (op.bytes()) {
    case 1: case 2: return load_parameter<u16>(M, W, op);
    case 4: return load_parameter<u32>(M, W, op);
    case 8: return load_parameter<u64>(M, W, op);
  }
}

// Zeros, eight bytes at a time. PTX asks that address and size are multiples of 8.
static void execute(Machine& M, Warp& W, const ops::FillShared& op) {
  ACTIVE(W.active, {
    const u64 bytes = op.wide() ? ((const u64*)op.size())[l] : ((const u32*)op.size())[l], start = op.where()[l];
    if (bytes % 8) report_access(M, MISALIGNED, op.line(), l, WRITE, SHARED, start - SHARED_WINDOW, 8);
    for (u64 at = 0; at + 8 <= bytes; at += 8) {
      u8* data = at_generic(M, start + at, 8, op, l, WRITE);
      if (!data) break;
      memset(data, 0, 8);
    }
  })
  ++M.stores;
}

// ---- atomics: lanes one after another ---
typedef ops::AtomicOperation Atom;
template <class T> static T updated(T old, T value, T other, Atom operation) {
  switch (operation) {
    case Atom::ADD: return old + value;
    case Atom::MIN: return value < old ? value : old;
    case Atom::MAX: return value > old ? value : old;
    case Atom::EXCHANGE: return value;
    case Atom::COMPARE_AND_SWAP: return old == value ? other : old;
    case Atom::INCREMENT: return old >= value ? T(0) : T(old + 1);
    case Atom::DECREMENT: return old == T(0) || old > value ? value : T(old - 1);
  }
  if constexpr (std::is_integral_v<T>)
    return operation == Atom::AND ? old & value : operation == Atom::OR ? old | value : old ^ value;
  return old;
}
// A half or bfloat16, computed in float32, from which it is rounded once.
template <f32 WIDEN(u16), u16 NARROW(f32)> static u16 updated_half(u16 old, u16 value, Atom operation) {
  const f32 a = WIDEN(old), b = WIDEN(value);
  return NARROW(operation == Atom::ADD ? a + b : operation == Atom::MIN ? float_min(a, b) : float_max(a, b));
}
struct AtomicOperands {
  u8* result;                // nullptr: not wanted
  const u8 *value, *other;   // other: nullptr where there is none
};
template <class T> static void update(u8* place, const AtomicOperands& at, Atom operation, int l) {
  const T old = *(T*)place, value = ((const T*)at.value)[l];
  *(T*)place = updated<T>(old, value, at.other ? ((const T*)at.other)[l] : old, operation);
  if (at.result) ((T*)at.result)[l] = old;
}
// COUNT halves in one register.
template <f32 WIDEN(u16), u16 NARROW(f32), int COUNT>
static void update_halves(u8* place, const AtomicOperands& at, Atom operation, int l) {
  for (int k = 0; k < COUNT; ++k) {
    u16& now = ((u16*)place)[k];
    const u16 old = now;
    now = updated_half<WIDEN, NARROW>(old, ((const u16*)at.value)[COUNT * l + k], operation);
    if (at.result) ((u16*)at.result)[COUNT * l + k] = old;
  }
}
// Addition of float32 in global memory takes denormal numbers for zeros, that in shared memory does not.
static void flushing_add(u8* place, const AtomicOperands& at, int l) {
  const f32 old = *(f32*)place;
  *(f32*)place = flush(flush(old) + flush(((const f32*)at.value)[l]));
  if (at.result) ((f32*)at.result)[l] = old;
}
// type: 'f' float, 's' or 'u' integer, 'h' half, 'b' bfloat16. bytes: of the register.
static void update_as(u32 type, u32 bytes, bool in_shared, u8* place, const AtomicOperands& at, Atom operation,
                      int l) {
  switch (type << 8 | bytes) {
    case 'f' << 8 | 4:
      if (operation == Atom::ADD && !in_shared) return flushing_add(place, at, l);
      return update<f32>(place, at, operation, l);
    case 'f' << 8 | 8: return update<f64>(place, at, operation, l);
    case 's' << 8 | 4: return update<s32>(place, at, operation, l);
    case 's' << 8 | 8: return update<s64>(place, at, operation, l);
    case 'u' << 8 | 2: return update<u16>(place, at, operation, l);
    case 'u' << 8 | 4: return update<u32>(place, at, operation, l);
    case 'u' << 8 | 8: return update<u64>(place, at, operation, l);
    case 'u' << 8 | 16: return update<u128>(place, at, operation, l);
    case 'h' << 8 | 2: return update_halves<half_to_float, float_to_half, 1>(place, at, operation, l);
    case 'h' << 8 | 4: return update_halves<half_to_float, float_to_half, 2>(place, at, operation, l);
    case 'b' << 8 | 2: return update_halves<bfloat_to_float, float_to_bfloat, 1>(place, at, operation, l);
    case 'b' << 8 | 4: return update_halves<bfloat_to_float, float_to_bfloat, 2>(place, at, operation, l);
  }
}
static void execute(Machine& M, Warp& W, const ops::Atomic& op) {
  const Registers<u8> values = op.values(), results = op.results();
  const u32 space = op.space(), element = op.element(), count = values.count, bytes = element * count;
  ALIGNED u64 address[32];
  ALIGNED u32 narrow[32];
  op.where().fill(address);
  LANES(narrow[l] = (u32)address[l])
  if (space == SHARED) tell(M, SharedAccess{op.counter(), narrow, W.active, bytes, true});
  else if (space == GLOBAL) tell(M, GlobalAccess{op.counter(), address, W.active, bytes, op.line(), ATOMIC});
  else tell_generic(M, op.counter(), op.line(), address, W.active, bytes, ATOMIC);
  const u32 how = op.how();
  bool wanted = false;
  for (u32 k = 0; k < count; ++k) wanted |= results[k] != nullptr;
  ACTIVE(W.active, {
    const u64 generic = address[l] + (space == SHARED ? SHARED_WINDOW : 0);
    u8* place = at_generic(M, generic, bytes, op, l, ATOMIC, how);
    if (!place) continue;
    u64 before[2] = {};
    memcpy(before, place, bytes);
    for (u32 k = 0; k < count; ++k) {
      const AtomicOperands at = {results[k], values[k], op.other()};
      const bool in_shared = generic - SHARED_WINDOW < WINDOW_BYTES;
      update_as(op.type(), element, in_shared, place + element * k, at, op.operation(), l);
    }
    const bool changed = memcmp(before, place, bytes);
    if (changed) ++M.stores;
    if (M.launch.flags & SIZES) note_size(M, generic, bytes);
    if (M.program.traits & CLOCKS) synchronize(M, generic, bytes, l, how | UPDATES, wanted);
    if (M.waits && space != SHARED) {
      M.waits->look(M, generic, bytes);
      if (changed || !wanted) M.waits->leave(M, generic, bytes, true);
    }
  })
  if (M.program.traits & OBSERVES) ++M.epoch;
  tell_performed(M);
}

static void execute(Machine& M, Warp& W, const ops::Fence& op) { fence(M, W.active, op.scope()); }
