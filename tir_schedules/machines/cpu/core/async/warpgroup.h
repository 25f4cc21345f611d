// What the warps of a warpgroup have to execute alike, and the registers of its products: a wgmma changes its
// sums while its warps go on, until they wait for the group that it was committed with.
#pragma once
#include <vector>
#include "abi.h"

// Operands of a wgmma. LEFT: of A, the place of a descriptor or of four registers; SUMS: as many places as
// SUM_COUNT says. ADDS: of the predicate that says whether what the sums hold counts.
enum ProductOperand {
  COLUMNS, LEFT_KIND, RIGHT_KIND, SUM_KIND, OPTIONS, ADDS, RIGHT, LEFT, SUM_COUNT = 11, SUMS
};
enum ProductOption : u32 { LEFT_ACROSS = 1, RIGHT_ACROSS = 2, NEGATED = 4, SATURATED = 8, IN_REGISTERS = 16 };

// One warp's part of a wgmma. left, right: descriptors; rows: of A where they were in registers; adds:
// whether what the sums hold counts.
struct Product {
  const MicroOp* op;
  u8* registers;
  u64 left, right;
  u32 member;
  bool adds;
  std::vector<f32> rows;
};
// Of a register: number: of the last product of its warp that has it among its sums, or its factors, 0: none;
// fence: how many fences there were when the warp last wrote it itself, and where that was.
struct RegisterUse {
  const MicroOp* op = nullptr;
  u64 number = 0;
  u32 fence = 0;
  s32 written = 0;
  bool factor = false;
};
// Registers of a warp by place, in steps of PLACE bytes. products, fences: how many it has issued;
// fences_before: of these, before the last product.
struct ProductRegisters {
  u64 products = 0;
  u32 fences = 0, fences_before = 0;
  std::vector<RegisterUse> uses;
};
const u32 PLACE = 64, REMEMBERED = 256;
// Instructions of a warpgroup: how many each warp has executed, and the last ones that any has.
struct Warpgroup {
  struct Issued {
    s32 line;
    u64 left, right;
  };
  u32 issued[4] = {}, furthest = 0;
  u32 asked[4] = {};  // registers of a thread that each warp asked for last
  s32 line = 0;       // where that was
  Issued last[REMEMBERED];
};
