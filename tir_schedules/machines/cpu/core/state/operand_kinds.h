// Operands of a micro-op as its fields are read: see micro_ops.py, and operands.h, which is written from it.
#pragma once
#include "lanes/lanes.h"

// What each struct of operands.h extends.
struct Operands {
  u8* R;  // the registers of the warp
  const MicroOp* op;
  operator const MicroOp&() const { return *op; }
  s32 line() const { return op->line; }
  const Extent& extent() const { return *op->extent; }
};
// Each lane's address: a register, of 64 bits or of 32, and an offset.
struct Address {
  const u8* base;
  bool wide;
  s64 offset;

  Address(const u8* R, const u32* operands) : base(R + operands[0]), wide(operands[1]) {
    memcpy(&offset, operands + 2, sizeof offset);
  }
  u64 operator[](int lane) const {
    return (wide ? ((const u64*)base)[lane] : ((const u32*)base)[lane]) + offset;
  }
  template <class T> void fill(T* result) const {
    if (wide) LANES(result[l] = (T)(((const u64*)base)[l] + offset))
    else LANES(result[l] = (T)(((const u32*)base)[l] + (T)offset))
  }
};
// A list of registers; nullptr for one there is not.
template <class T> struct Registers {
  u8* R;
  const u32* places;
  u32 count;
  T* operator[](u32 k) const { return places[k] == NONE ? nullptr : (T*)(R + places[k]); }
};
struct Numbers {
  const u32* numbers;
  u32 count;
  u32 operator[](u32 k) const { return numbers[k]; }
};

// What the engine calls for a micro-op.
template <class Op, void (*EXECUTE)(Machine&, Warp&, const Op&)>
static void run(Machine& M, Warp& W, u8* R, const MicroOp& op) {
  EXECUTE(M, W, Op{{R, &op}});
}
static void nothing(Machine&, Warp&, u8*, const MicroOp&) {}  // of one whose operands the engine reads
struct NamedFunction {
  const char* name;
  Function function;
};
