// What abi.h says as text: "Finding 88" is a structure's size, "Finding.kind 0 4" a field's offset and size,
// "Act.READ 0" a value.
#include <cstddef>
#include <string>
#include "abi.h"

static std::string text;

static void line(const char* name, u64 value) {
  text += std::string(name) + " " + std::to_string(value) + "\n";
}
static void line(const char* type, const char* field, u64 offset, u64 bytes) {
  text += std::string(type) + "." + field + " " + std::to_string(offset) + " " + std::to_string(bytes) + "\n";
}

#define STRUCT(type) line(#type, sizeof(type));
#define FIELD(type, field) line(#type, #field, offsetof(type, field), sizeof(((type*)0)->field));
#define VALUE(name) line(#name, (u64)(name));
#define ONE_OF(type, name) line(#type "." #name, (u64)(name));

static void describe() {
  VALUE(BUFFER_SHIFT) VALUE(SHARED_WINDOW) VALUE(LOCAL_WINDOW) VALUE(FUNCTION_WINDOW)
  VALUE(FUNCTION_BYTES) VALUE(RANK_SHIFT) VALUE(NONE) VALUE(MAP_MARK)
  ONE_OF(Kind, RACE) ONE_OF(Kind, IN_FLIGHT) ONE_OF(Kind, LOCKSTEP) ONE_OF(Kind, DIVERGENT_BARRIER)
  ONE_OF(Kind, OUT_OF_BOUNDS) ONE_OF(Kind, MISALIGNED) ONE_OF(Kind, WRITE_TO_INPUT)
  ONE_OF(Kind, BAD_FREE) ONE_OF(Kind, STACK_OVERFLOW) ONE_OF(Kind, ASSERTION) ONE_OF(Kind, TRAP)
  ONE_OF(Kind, OVERLAPPING_WRITES) ONE_OF(Kind, UNINITIALIZED) ONE_OF(Kind, DIVERGENT_ALIGNED)
  ONE_OF(Kind, BAD_TENSOR_MAP) ONE_OF(Kind, BAD_DESCRIPTOR) ONE_OF(Kind, BARRIER_MISUSE)
  ONE_OF(Kind, SLOT_IN_USE) ONE_OF(Kind, UNFENCED_PROXY) ONE_OF(Kind, UNFENCED_WGMMA)
  ONE_OF(Kind, WGMMA_REGISTERS) ONE_OF(Kind, CLUSTER_EXIT) ONE_OF(Kind, LEFT_IN_FLIGHT)
  ONE_OF(Kind, TOO_MANY_REGISTERS)
  ONE_OF(Kind, DEADLOCK) ONE_OF(Kind, ENDLESS_LOOP) ONE_OF(Kind, SAME_VALUE) VALUE(KINDS)
  ONE_OF(Space, SHARED) ONE_OF(Space, GLOBAL) ONE_OF(Space, LOCAL) ONE_OF(Space, GENERIC)
  ONE_OF(Counting, LOAD_COUNT) ONE_OF(Counting, STORE_COUNT) ONE_OF(Counting, ROWS_COUNT)
  ONE_OF(Counting, GLOBAL_COUNT) ONE_OF(Counting, COPY_COUNT) ONE_OF(Counting, BYPASS_COUNT)
  ONE_OF(Act, READ) ONE_OF(Act, WRITE) ONE_OF(Act, ATOMIC)
  ONE_OF(Flag, COUNT) ONE_OF(Flag, REVERSE) ONE_OF(Flag, SHUFFLE) ONE_OF(Flag, EARLY)
  ONE_OF(How, STORES) ONE_OF(How, STRONG) ONE_OF(How, UPDATES) ONE_OF(How, OF_BLOCK)
  ONE_OF(How, VOLATILE) ONE_OF(How, ACQUIRES) ONE_OF(How, RELEASES)
  ONE_OF(Happening, INITIALISED) ONE_OF(Happening, TESTED) ONE_OF(Happening, PASSED)
  ONE_OF(Happening, ARRIVED) ONE_OF(Happening, EXPECTED) ONE_OF(Happening, BEGUN) ONE_OF(Happening, LANDED)
  ONE_OF(Happening, MULTIPLIED) ONE_OF(Happening, COMMITTED) ONE_OF(Happening, DRAINED)
  ONE_OF(Happening, STORED) ONE_OF(Happening, STORES_COMMITTED) ONE_OF(Happening, STORES_DRAINED)
  ONE_OF(Happening, MET) VALUE(RIGHT_FACTOR)
  ONE_OF(Scope, THREADS_OF_BLOCK) ONE_OF(Scope, DEVICE)
  ONE_OF(Trait, CLOCKS) ONE_OF(Trait, POLLS) ONE_OF(Trait, NAMED) ONE_OF(Trait, UNITS)
  ONE_OF(Polls, NOTHING) ONE_OF(Polls, OF_MEMORY) ONE_OF(Polls, OF_BARRIERS)
  ONE_OF(Exit, BRANCH) ONE_OF(Exit, BARRIER) ONE_OF(Exit, LEAVE)
  ONE_OF(Exit, CALL) ONE_OF(Exit, RETURN) ONE_OF(Exit, SWITCH)
  ONE_OF(Exit, WAIT)
  ONE_OF(Special, TID_X) ONE_OF(Special, TID_Y) ONE_OF(Special, TID_Z) ONE_OF(Special, LANEID)
  ONE_OF(Special, WARPID) ONE_OF(Special, CTAID_X) ONE_OF(Special, CTAID_Y) ONE_OF(Special, CTAID_Z)
  ONE_OF(Special, NTID_X) ONE_OF(Special, NTID_Y) ONE_OF(Special, NTID_Z)
  ONE_OF(Special, NCTAID_X) ONE_OF(Special, NCTAID_Y) ONE_OF(Special, NCTAID_Z) VALUE(SPECIALS)

  STRUCT(Extent)
  FIELD(Extent, space) FIELD(Extent, low) FIELD(Extent, high) FIELD(Extent, number)
  STRUCT(MicroOp)
  FIELD(MicroOp, run) FIELD(MicroOp, operands) FIELD(MicroOp, extent) FIELD(MicroOp, offset)
  FIELD(MicroOp, guard) FIELD(MicroOp, guard_negated) FIELD(MicroOp, line) FIELD(MicroOp, counter)
  STRUCT(BasicBlock)
  FIELD(BasicBlock, first) FIELD(BasicBlock, count) FIELD(BasicBlock, cost) FIELD(BasicBlock, exit)
  FIELD(BasicBlock, guard) FIELD(BasicBlock, guard_negated) FIELD(BasicBlock, taken)
  FIELD(BasicBlock, otherwise) FIELD(BasicBlock, line) FIELD(BasicBlock, end)
  FIELD(BasicBlock, members) FIELD(BasicBlock, gathers) FIELD(BasicBlock, polls)
  STRUCT(Program)
  FIELD(Program, micro_ops) FIELD(Program, blocks) FIELD(Program, initial_registers)
  FIELD(Program, register_bytes) FIELD(Program, special) FIELD(Program, traits)
  FIELD(Program, block_count) FIELD(Program, counter_count)

  STRUCT(Finding)
  FIELD(Finding, kind) FIELD(Finding, act) FIELD(Finding, space) FIELD(Finding, bytes)
  FIELD(Finding, line) FIELD(Finding, other_line) FIELD(Finding, warp) FIELD(Finding, lane)
  FIELD(Finding, other_warp) FIELD(Finding, other_lane) FIELD(Finding, block) FIELD(Finding, detail)
  FIELD(Finding, extent) FIELD(Finding, extent_bytes) FIELD(Finding, address) FIELD(Finding, count)
  FIELD(Finding, other_block) FIELD(Finding, role)
  STRUCT(Counter)
  FIELD(Counter, requests) FIELD(Counter, cost) FIELD(Counter, ideal)
  STRUCT(BlockCount)
  FIELD(BlockCount, warps) FIELD(BlockCount, threads)
  STRUCT(Merge)
  FIELD(Merge, offset) FIELD(Merge, width)
  STRUCT(Request)
  FIELD(Request, counter) FIELD(Request, mask) FIELD(Request, width) FIELD(Request, cost)
  FIELD(Request, ideal) FIELD(Request, address) FIELD(Request, value)
  STRUCT(Record)
  FIELD(Record, counter) FIELD(Record, source_counter) FIELD(Record, counting) FIELD(Record, warp)
  FIELD(Record, mask) FIELD(Record, reads) FIELD(Record, width) FIELD(Record, times) FIELD(Record, cost)
  FIELD(Record, ideal) FIELD(Record, source_cost) FIELD(Record, pad) FIELD(Record, address) FIELD(Record, source)
  STRUCT(Watch)
  FIELD(Watch, records) FIELD(Watch, slots) FIELD(Watch, record_limit) FIELD(Watch, recorded)
  FIELD(Watch, lost) FIELD(Watch, ended) FIELD(Watch, requests) FIELD(Watch, block) FIELD(Watch, warp) FIELD(Watch, limit)
  FIELD(Watch, met) FIELD(Watch, held) FIELD(Watch, valued)
  FIELD(Watch, events) FIELD(Watch, moved) FIELD(Watch, event_limit) FIELD(Watch, events_met)
  FIELD(Watch, moved_limit) FIELD(Watch, moved_held) FIELD(Watch, rank) FIELD(Watch, pad)
  STRUCT(Event)
  FIELD(Event, what) FIELD(Event, actor) FIELD(Event, place) FIELD(Event, warp) FIELD(Event, lanes)
  FIELD(Event, address) FIELD(Event, other) FIELD(Event, phase) FIELD(Event, bytes) FIELD(Event, row)
  FIELD(Event, buffer) FIELD(Event, line)
  STRUCT(Moved)
  FIELD(Moved, event) FIELD(Moved, at) FIELD(Moved, address) FIELD(Moved, bytes)

  STRUCT(Said)
  FIELD(Said, text) FIELD(Said, message) FIELD(Said, limit) FIELD(Said, message_limit)
  FIELD(Said, bytes) FIELD(Said, cut)

  STRUCT(Cell)
  FIELD(Cell, line) FIELD(Cell, time) FIELD(Cell, block) FIELD(Cell, others) FIELD(Cell, thread)
  FIELD(Cell, how) FIELD(Cell, plain_line)
  STRUCT(Buffer)
  FIELD(Buffer, data) FIELD(Buffer, bytes) FIELD(Buffer, cells) FIELD(Buffer, element)
  FIELD(Buffer, constant) FIELD(Buffer, initialized) FIELD(Buffer, pad)
  STRUCT(Undefined)
  FIELD(Undefined, lanes) FIELD(Undefined, line) FIELD(Undefined, address) FIELD(Undefined, bytes)
  FIELD(Undefined, extent) FIELD(Undefined, extent_bytes)

  STRUCT(TensorMap)
  FIELD(TensorMap, mark) FIELD(TensorMap, address) FIELD(TensorMap, shape) FIELD(TensorMap, pitches)
  FIELD(TensorMap, box) FIELD(TensorMap, rank) FIELD(TensorMap, element) FIELD(TensorMap, swizzle)
  FIELD(TensorMap, pad)
  STRUCT(LaunchArguments)
  FIELD(LaunchArguments, program) FIELD(LaunchArguments, params) FIELD(LaunchArguments, buffers)
  FIELD(LaunchArguments, counters) FIELD(LaunchArguments, merges) FIELD(LaunchArguments, block_counts)
  FIELD(LaunchArguments, said) FIELD(LaunchArguments, heap_bytes)
  FIELD(LaunchArguments, stack_start) FIELD(LaunchArguments, stack_limit)
  FIELD(LaunchArguments, findings) FIELD(LaunchArguments, watch) FIELD(LaunchArguments, origins)
  FIELD(LaunchArguments, stop) FIELD(LaunchArguments, budget) FIELD(LaunchArguments, grid)
  FIELD(LaunchArguments, block) FIELD(LaunchArguments, buffer_count) FIELD(LaunchArguments, shared_bytes)
  FIELD(LaunchArguments, local_bytes) FIELD(LaunchArguments, flags) FIELD(LaunchArguments, granule_shift)
  FIELD(LaunchArguments, finding_limit) FIELD(LaunchArguments, seed) FIELD(LaunchArguments, resident)
  FIELD(LaunchArguments, cluster) FIELD(LaunchArguments, cores)
  FIELD(LaunchArguments, registers)
}

extern "C" const char* layout() {
  text.clear();
  describe();
  return text.c_str();
}
