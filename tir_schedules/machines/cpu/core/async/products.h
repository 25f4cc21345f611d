// The numbers of a wgmma.
#pragma once
#include <vector>
#include "operands.h"
#include "state/descriptors.h"
#include "state/machine.h"

// One warp's part of a wgmma. left, right: descriptors; rows: of A where they were in registers; adds: whether what
// the sums hold counts.
struct Product {
  ops::Wgmma op;
  u64 left, right;
  u32 member;
  bool adds;
  std::vector<f32> rows;
};
// Rows of A of one warp, k by k, of what its registers hold.
std::vector<f32> rows_in_registers(const Registers<u32>&, ops::Factor);
void execute(const Machine&, const Product&);
