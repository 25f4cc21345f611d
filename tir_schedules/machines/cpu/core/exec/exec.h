// What the files of this folder share: running blocks and clusters, and calls.
#pragma once
#include "check/check.h"
#include "observe/observer.h"
#include "operands.h"

// ---- cluster.cpp ---
// Blocks of a cluster run together until all have left, or none can go on.
enum Progress { FINISHED, STUCK, STOPPED };
Progress run_cluster(Machine&, Cluster&);

// ---- block.cpp ---
// Runs the warps of M.cta until all have left, or none of them can go on.
Progress run_block(Machine& M);

// ---- tensor.cpp ---
// Whether a matrix of wmma, and its rows, are aligned. address: generic; pitch: bytes from a row to the next.
bool check_matrix(Machine&, const MicroOp&, u64 address, u32 pitch, Act);

// ---- calls.cpp ---
CallState& calls_of(Machine&, Warp&);
// The lanes of a block that ends in a call, a return or a switch go on. taken: those that do so.
void leave_block(Machine&, Warp&, const BasicBlock&, u32 lanes, u32 taken);
void stop_launch(Machine&);  // at the end of the current block
// What a call hands over, at an offset of local memory.
u64 argument(Machine&, int lane, u32 offset, u32 bytes);
void give_back(Machine&, int lane, u32 offset, u64 value, u32 bytes);
