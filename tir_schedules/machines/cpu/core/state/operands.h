// Operands of micro-ops, and the functions that execute them.
#pragma once
#include <initializer_list>
#include "state/machine.h"

// In an instruction's function: its kth operand, as bytes and as 32-bit registers.
#define OPERAND(k) (R + op.operands[k])
#define WORDS(k) ((u32*)OPERAND(k))
// Each lane's address: a register, of 64 bits or of 32, and an offset.
template <class T> static inline void addresses(const u8* base, bool wide, s64 offset, T* result) {
  if (wide) LANES(result[l] = (T)(((const u64*)base)[l] + offset))
  else LANES(result[l] = (T)(((const u32*)base)[l] + (T)offset))
}

// The functions of one family of instructions by name. Each family's file defines one at its end, which adds itself
// to the list.
struct NamedFunction {
  const char* name;
  Function function;
};
struct Family {
  std::vector<NamedFunction> functions;
  const Family* next;
  static const Family* all;
  Family(std::initializer_list<NamedFunction> named) : functions(named), next(all) { all = this; }
};
