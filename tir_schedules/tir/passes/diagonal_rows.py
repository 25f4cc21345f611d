"""Diagonal storage of a tile in shared memory: each row begins a few elements after the row above it.

What would reach beyond the end of a row goes to its beginning. Neighbours of a row stay neighbours, in groups
as wide as the shift, and elements of a column lie in different banks, as in padded rows, without an element
lost. No schedule primitive expresses this: a place that is taken modulo the length of a row is not an affine
map of loops.
"""

# TVM's nodes have their fields at run time alone.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from typing import Any

import tvm_ffi
from tvm import IRModule, ir, s_tir, tirx, transform

from tir_schedules.model.annotations import DIAGONAL_ROWS
from tir_schedules.tir.passes.rewriting import body_of


@tirx.transform.prim_func_pass(opt_level=0, name="tir_schedules.diagonal_rows")
def diagonal_rows(function: tirx.PrimFunc, module: IRModule, context: transform.PassContext) -> tirx.PrimFunc:
    """Shift the rows of the buffer that each block annotated with DIAGONAL_ROWS writes, wherever it is
    accessed. The annotation says by how many elements; it divides the length of a row."""
    shifts: list[tuple[Any, int]] = []

    def look(block: Any) -> None:
        if DIAGONAL_ROWS in block.annotations:
            shifts.append((block.writes[0].source, int(block.annotations[DIAGONAL_ROWS])))

    def shifted(buffer: Any, indices: Any) -> Any:
        shift = next((shift for tile, shift in shifts if tile.same_as(buffer)), 0)
        if not shift:
            return indices
        *others, row, column = indices
        length = int(buffer.shape[-1])
        assert length % shift == 0, f"rows of {length} elements cannot be shifted by {shift}"
        group = (column // shift + row) % (length // shift)
        return [*others, row, group * shift + column % shift]

    def load(node: Any) -> Any:
        return tirx.BufferLoad(node.source, shifted(node.source, node.indices))

    def store(node: Any) -> Any:
        return tirx.BufferStore(node.buffer, node.value, shifted(node.buffer, node.indices))

    body = body_of(function)
    tvm_ffi.structural_walk(body, [(s_tir.SBlock, look)])
    callbacks = [(ir.TensorLoad, load), (tirx.BufferStore, store)]
    return function.with_body(tvm_ffi.structural_map(body, callbacks, order="post"))
