// Loads, stores, atomics and asynchronous copies.
#include "machine.h"

template <class T, int N, bool STORE> static void move(u8* const* memory, u32 mask, void* const* values) {
  for (int k = 0; k < N; ++k) {
    T* v = (T*)values[k];
    if (mask == NONE) {
      LANES(T* p = (T*)memory[l] + k; if (STORE) *p = v[l]; else v[l] = *p)
    } else {
      ACTIVE(mask, T* p = (T*)memory[l] + k; if (STORE) *p = v[l]; else v[l] = *p)
    }
  }
}
template <bool STORE> static void move(u8* const* memory, u32 mask, u32 width, u32 count, void* const* values) {
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
  }
}
// A load that was dropped leaves all bits set: NaN in every float type.
static void poison(u32 mask, u32 width, u32 count, void* const* values) {
  for (u32 k = 0; k < count; ++k) ACTIVE(mask, memset((u8*)values[k] + l * width, 0xff, width))
}
template <bool STORE>
static void finish(u8* const* memory, u32 mask, u32 asked, u32 width, u32 count, void* const* values) {
  move<STORE>(memory, mask, width, count, values);
  if (!STORE && mask != asked) poison(asked & ~mask, width, count, values);
}

template <bool STORE>
static void shared_access(Machine& M, Warp& W, const Instruction& I, const u32* address, u32 width, u32 count, void* const* values) {
  const u32 bytes = width * count, asked = W.active;
  const Act act = STORE ? WRITE : READ;
  u8* memory[32];
  const u32 low = I.extent->low, size = least(I.extent->high, M.shared_bytes) - low, limit = size - bytes;
  u32 mask = asked, bad = bytes > size;
  LANES(bad |= ((u32)(address[l] - low > limit) | (u32)((address[l] & (bytes - 1)) != 0)) & (asked >> l & 1))
  LANES(memory[l] = M.shared + address[l])
  if (__builtin_expect(bad, 0)) ACTIVE(asked, if (!M.at_shared(address[l], bytes, I, l, act)) mask &= ~(1u << l))
  if (M.flags & COUNT) count_shared(M, I.counter, address, mask, bytes, STORE);
  u32 previous = NONE;
  ACTIVE(mask, {
    if (!STORE && address[l] == previous) {   // a broadcast: as the lane before, unless there is a writer to compare with
      SharedShadow& s = M.shadow[previous >> M.granule_shift];
      if (s.write_epoch != M.epoch && bytes <= 1u << M.granule_shift) { s.read_by_many = 1; continue; }
    }
    previous = address[l];
    M.touch(address[l], bytes, act, l, I.line);
  })
  finish<STORE>(memory, mask, asked, width, count, values);
  if (M.watch) watch_values(M);
}
template <bool STORE>
static void global_access(Machine& M, Warp& W, const Instruction& I, const u64* address, u32 width, u32 count, void* const* values) {
  const u32 bytes = width * count, asked = W.active;
  if (!asked) return;
  const Act act = STORE ? WRITE : READ;
  u8* memory[32];
  u32 mask = asked;
  const u64 number = (address[__builtin_ctz(asked)] >> BUFFER_SHIFT) - 1, low = (number + 1) << BUFFER_SHIFT;
  u64 bad = 1;
  if (number < M.buffer_count) {
    const Buffer& buffer = M.buffers[number];
    bad = buffer.bytes < bytes || (STORE && buffer.constant) || buffer.shadow;
    const u64 limit = buffer.bytes - bytes;
    LANES(bad |= ((u64)(address[l] - low > limit) | (u64)((address[l] & (bytes - 1)) != 0)) & (asked >> l & 1))
    LANES(memory[l] = buffer.data + (address[l] - low))
  }
  if (bad) ACTIVE(asked, if (!(memory[l] = M.at_global(address[l], bytes, I, l, act))) mask &= ~(1u << l))
  if (M.flags & COUNT) count_global(M, I.counter, address, mask, bytes);
  finish<STORE>(memory, mask, asked, width, count, values);
}
template <bool STORE>
static void generic_access(Machine& M, Warp& W, const Instruction& I, const u64* address, u32 width, u32 count, void* const* values) {
  u8* memory[32];
  u32 mask = W.active;
  ACTIVE(W.active, {
    memory[l] = M.at_generic(address[l], width * count, I, l, STORE ? WRITE : READ);
    if (!memory[l]) mask &= ~(1u << l);
  })
  finish<STORE>(memory, mask, W.active, width, count, values);
}
// operands: address, whether it has 64 bits, bytes per element, elements, then the registers
template <class T> static void addresses(u8* R, const Instruction& I, u32 operand, u32 wide, s64 offset, T* result) {
  if (wide) { const u64* base = (const u64*)OPERAND(operand); LANES(result[l] = (T)(base[l] + offset)) }
  else { const u32* base = (const u32*)OPERAND(operand); LANES(result[l] = (T)(base[l] + (T)offset)) }
}
template <Space SPACE, bool STORE> static void access(Machine& M, Warp& W, u8* R, const Instruction& I) {
  void* values[4];
  const u32 width = I.operands[2], count = I.operands[3];
  for (u32 k = 0; k < count; ++k) values[k] = OPERAND(4 + k);
  if (SPACE == SHARED) {
    ALIGNED u32 address[32];
    addresses(R, I, 0, I.operands[1], I.offset, address);
    shared_access<STORE>(M, W, I, address, width, count, values);
  } else {
    ALIGNED u64 address[32];
    addresses(R, I, 0, I.operands[1], I.offset, address);
    if (SPACE == GLOBAL) global_access<STORE>(M, W, I, address, width, count, values);
    else generic_access<STORE>(M, W, I, address, width, count, values);
  }
}
static void load_parameter(Machine& M, Warp& W, u8* R, const Instruction& I) {   // operands: register, bytes
  const u8* from = M.params + I.offset;
  switch (I.operands[1]) {
    case 1: case 2: { u16 v = 0; memcpy(&v, from, I.operands[1]); ACTIVE(W.active, ((u16*)OPERAND(0))[l] = v) break; }
    case 4: { u32 v; memcpy(&v, from, 4); ACTIVE(W.active, ((u32*)OPERAND(0))[l] = v) break; }
    case 8: { u64 v; memcpy(&v, from, 8); ACTIVE(W.active, ((u64*)OPERAND(0))[l] = v) break; }
  }
}

// ---- atomics: lanes one after another ------------------------------------------------------------------------------
enum Operation { ADD, MIN, MAX, EXCHANGE, COMPARE_AND_SWAP, AND, OR, XOR };
template <class T> static T updated(T old, T value, T other, int operation) {
  switch (operation) {
    case ADD: return old + value;
    case MIN: return value < old ? value : old;
    case MAX: return value > old ? value : old;
    case EXCHANGE: return value;
    case COMPARE_AND_SWAP: return old == value ? other : old;
  }
  if constexpr (std::is_integral_v<T>) return operation == AND ? old & value : operation == OR ? old | value : old ^ value;
  return old;
}
template <class T> static void update(u8* place, u8* result, const u8* value, const u8* other, int operation, int l) {
  T old = *(T*)place;
  *(T*)place = updated<T>(old, ((const T*)value)[l], other ? ((const T*)other)[l] : old, operation);
  if (result) ((T*)result)[l] = old;
}
// operands: address, wide, space, operation, type ('f', 's', 'u'), bytes, result or NONE, value, second value or NONE
static void atomic(Machine& M, Warp& W, u8* R, const Instruction& I) {
  const u32 space = I.operands[2], bytes = I.operands[5];
  ALIGNED u64 address[32];
  ALIGNED u32 narrow[32];
  addresses(R, I, 0, I.operands[1], I.offset, address);
  LANES(narrow[l] = (u32)address[l])
  if (M.flags & COUNT && space == SHARED) count_shared(M, I.counter, narrow, W.active, bytes, true);
  if (M.flags & COUNT && space == GLOBAL) count_global(M, I.counter, address, W.active, bytes);
  u8* result = I.operands[6] == NONE ? nullptr : OPERAND(6);
  const u8 *value = OPERAND(7), *other = I.operands[8] == NONE ? nullptr : OPERAND(8);
  const int operation = I.operands[3];
  ACTIVE(W.active, {
    u8* place = M.at_generic(address[l] + (space == SHARED ? SHARED_WINDOW : 0), bytes, I, l, ATOMIC);
    if (!place) continue;
    switch (I.operands[4] << 8 | bytes) {
      case 'f' << 8 | 4: update<f32>(place, result, value, other, operation, l); break;
      case 'f' << 8 | 8: update<f64>(place, result, value, other, operation, l); break;
      case 's' << 8 | 4: update<s32>(place, result, value, other, operation, l); break;
      case 's' << 8 | 8: update<s64>(place, result, value, other, operation, l); break;
      case 'u' << 8 | 4: update<u32>(place, result, value, other, operation, l); break;
      case 'u' << 8 | 8: update<u64>(place, result, value, other, operation, l); break;
    }
  })
  if (M.watch) watch_values(M);
}

// ---- cp.async: data is read at issue and reaches shared memory at the wait that covers its group -------------------
const u32 UNCOMMITTED = NONE;
// operands: target, whether it has 64 bits, source, bytes, source bytes or NONE, counter of the global side, low and high
// half of the source's offset, whether it bypasses the L1 cache; I.offset is the target's
static void copy_async(Machine& M, Warp& W, u8* R, const Instruction& I) {
  ALIGNED u32 target[32];
  ALIGNED u64 source[32];
  const u32 bytes = I.operands[3];
  addresses(R, I, 0, I.operands[1], I.offset, target);
  addresses(R, I, 2, 1, (s64)((u64)I.operands[7] << 32 | I.operands[6]), source);
  const u32* available = I.operands[4] == NONE ? nullptr : (const u32*)OPERAND(4);
  u32 reads = 0;
  const u64 first = W.copies.size();
  ACTIVE(W.active, {
    const u32 valid = available ? least(available[l], bytes) : bytes;
    if (!M.at_shared(target[l], bytes, I, l, WRITE)) continue;
    AsyncCopy copy = {target[l], bytes, UNCOMMITTED, (u32)l, I.line, {0}};
    if (valid) {
      reads |= 1u << l;
      const bool aligned = valid == bytes || !(source[l] & (bytes - 1));   // of a part, too
      if (!aligned) M.report_access(MISALIGNED, I.line, l, READ, GLOBAL, source[l], bytes);
      const u8* data = aligned ? M.at_global(source[l], valid == bytes ? bytes : 1, I, l, READ) : nullptr;
      if (data && valid < bytes && !M.at_global(source[l] + valid - 1, 1, I, l, READ)) data = nullptr;
      if (data) memcpy(copy.data, data, valid); else memset(copy.data, 0xff, bytes);
    }
    M.touch(target[l], bytes, WRITE, l, I.line);
    GRANULES(M, target[l], bytes, M.shadow[g].in_flight++)
    W.copies.push_back(copy);
  })
  const Counter before = M.counters[I.counter];
  if (M.flags & COUNT) count_copy(M, I.counter, I.operands[5], target, source, W.active, reads, bytes, I.operands[8]);
  if (M.watch) watch_copies(M, I.counter, before, W.copies, first);
}
static void commit_group(Machine& M, Warp& W, u8*, const Instruction&) {
  for (AsyncCopy& copy : W.copies)
    if (copy.group == UNCOMMITTED && W.active >> copy.lane & 1) copy.group = W.groups[copy.lane];
  ACTIVE(W.active, W.groups[l]++)
}
// operands: groups that may stay in flight, or NONE for cp.async.wait_all
static void wait_group(Machine& M, Warp& W, u8* R, const Instruction& I) {
  const bool all = I.operands[0] == NONE;
  const u32 pending = all ? 0 : I.operands[0];
  u64 kept = 0;
  for (AsyncCopy& copy : W.copies) {
    const bool covered = all || (copy.group != UNCOMMITTED && copy.group + pending < W.groups[copy.lane]);
    if (!(W.active >> copy.lane & 1) || !covered) { W.copies[kept++] = copy; continue; }
    memcpy(M.shared + copy.target, copy.data, copy.bytes);
    bool others = false;
    GRANULES(M, copy.target, copy.bytes, others |= --M.shadow[g].in_flight > 0)
    if (!others) M.touch(copy.target, copy.bytes, WRITE, copy.lane, copy.line);
  }
  W.copies.resize(kept);
}

Function memory_function(const char* name) {
  NAMED("ld.shared", (access<SHARED, false>)) NAMED("st.shared", (access<SHARED, true>))
  NAMED("ld.global", (access<GLOBAL, false>)) NAMED("st.global", (access<GLOBAL, true>))
  NAMED("ld.generic", (access<GENERIC, false>)) NAMED("st.generic", (access<GENERIC, true>))
  NAMED("ld.param", load_parameter) NAMED("atomic", atomic)
  NAMED("cp.async", copy_async) NAMED("cp.async.commit_group", commit_group) NAMED("cp.async.wait_group", wait_group)
  return nullptr;
}
