// TMA of an SM: it moves boxes row by row, line by line, loads and stores each in the order of their coming. A store of
// a part of a sector takes twice as long as that of a whole one.
#pragma once
#include "memory.h"

struct Copies {
  const Gpu& gpu;
  Memory& memory;
  double loads_free = 0, stores_free = 0;
  Copies(const Gpu& gpu, Memory& memory) : gpu(gpu), memory(memory) {}

  // When the last byte is there that is asked for in cycle t. latency: of a box without rows.
  u64 load(const Access& box, const Piece* pieces, u64 block, double latency, u64 t) {
    // Its rate to two blocks was measured, while all SMs asked for the same box. L2 limits what is read, not what
    // arrives. So a box to four blocks takes as long.
    const double begin = std::max(loads_free, (double)t), all = (double)box.bytes * std::min(box.blocks, 2u);
    const double byte = box.blocks > 1 ? gpu.multicast_byte_cycles : gpu.box_byte_cycles;
    loads_free = begin + std::max(box.reads * gpu.box_row_cycles, all * byte);
    const double far = memory.beyond_l2(pieces + box.first, box.pieces, block, (u64)begin, gpu.box_dram_more);
    const u32 bytes = 32 * sectors_of(pieces + box.first, box.pieces);
    return (u64)(std::max(loads_free, memory.stream(bytes, box.reads, begin)) + latency + far);
  }
  // When its source has been read.
  u64 store(const Access& box, const Piece* pieces, u64 block, double latency, u64 t) {
    const double waits = memory.writes_free - gpu.write_backlog;  // as other stores do
    const double begin = std::max({stores_free, (double)t, waits});
    const u32 bytes = 32 * sectors_of(pieces + box.first, box.pieces);
    stores_free = begin + (bytes + 32 * box.parts) * gpu.store_byte_cycles + gpu.store_each;
    memory.store(pieces + box.first, box.pieces, bytes, box.parts, block, (u64)begin);
    return (u64)(stores_free - gpu.store_each + latency);
  }
};
