// Where the pieces of a wgmma's matrices lie in shared memory. All is made of pieces of 16 bytes. Source: PTX ISA 9.0,
// asynchronous warpgroup level matrix, shared memory layout (canonical layouts). The swizzles of 128 bytes have run on
// an H200.
#pragma once
#include "abi.h"

// A matrix in shared memory. leading, stride: bytes between its parts; span: bytes of a row over which pieces
// of 16 bytes change places, 0: none; base: in rows of 128 bytes, where the pattern of that begins.
struct Descriptor {
  u32 start, leading, stride, base, span;
  bool reserved;  // whether bits are set that have no meaning

  explicit Descriptor(u64 bits);
  // Bytes after which the swizzle repeats.
  u32 pattern() const { return 8 * span; }
  u32 along_k(u32 row, u32 piece) const;
  u32 across(u32 piece, u32 k) const;
  // Address of each piece of some rows: as many as two for each row.
  template <class F> void pieces(bool lies_across, u32 first, u32 rows, F f) const {
    if (lies_across) {
      for (u32 k = 0; k < 16; ++k)
        for (u32 piece = first / 8; piece < (first + rows) / 8; ++piece) f(across(piece, k));
    } else {
      for (u32 row = first; row < first + rows; ++row)
        for (u32 piece = 0; piece < 2; ++piece) f(along_k(row, piece));
    }
  }
};
// Where a byte of shared memory is in place of its address: pieces of 16 bytes change places by the number of
// their line of 128 bytes.
u32 swizzled(u32 address, u32 span, u32 base = 0);
