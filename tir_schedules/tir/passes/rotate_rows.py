"""Aligned stores of rows that begin anywhere: each row of a tile is rotated, so that stores begin with lines.

If the rows of a matrix are not multiples of a line of memory (128 bytes), 32 neighbours that a warp stores
lie in two lines. Both take a request, and L2 gets parts of sectors from two stores. Here the columns of
each row are rotated within the tile, by a number that depends on where the row begins:

    lines of 8 elements           |       |       |       |
    columns of a tile of 16          0123456789ABCDEF
    stores 1 and 2, not rotated      1111111122222222
    stores 1 and 2, rotated          1111122222222111

So all stores of a row but one lie in one line each, and that one has both ends of the row. No lane is idle,
because a rotation only changes the order of the columns. No schedule primitive expresses this: a place that
is taken modulo the length of a row is not an affine map of loops.
"""

# TVM's nodes have their fields at run time alone.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from functools import reduce
from typing import Any

import tvm_ffi
from tvm import IRModule, s_tir, tirx, transform

from tir_schedules.model.annotations import ROTATE_ROWS
from tir_schedules.tir.passes.rewriting import at_values, map_body, replace_block_body, substitute
from tir_schedules.tir.passes.shift_edge_tiles import shift_index, tiles_of


@tirx.transform.prim_func_pass(opt_level=0, name="tir_schedules.rotate_rows")
def rotate_rows(function: tirx.PrimFunc, module: IRModule, context: transform.PassContext) -> tirx.PrimFunc:
    """Rotate the rows of the tiles that every block annotated with ROTATE_ROWS writes to a matrix. The
    annotation has the columns of a tile and the elements of a line. The block has one store, whose last
    index is a variable of the block. The pass comes before `shift_edge_tiles`, and knows which tiles of the
    block that one will shift."""

    def rotate(realize: Any) -> Any:
        given = realize.block.annotations.get(ROTATE_ROWS)
        if given is None:
            return realize
        width, line = map(int, given)
        stores: list[Any] = []
        tvm_ffi.structural_walk(realize.block.body, [(tirx.BufferStore, stores.append)])
        (store,) = stores
        column = store.indices[-1]
        assert width % line == 0 and any(column.same_as(each.var) for each in realize.block.iter_vars)

        first = [*store.indices[:-1], column // width * width]
        for axis, tile in tiles_of(realize.block).items():
            first[axis] = shift_index(first[axis], *tile)
        begin = reduce(lambda place, each: place * each[1] + each[0], zip(first, store.buffer.shape), 0)
        rotated = column // width * width + (column % width + width - begin % line) % width
        block = replace_block_body(realize, substitute(realize.block.body, column, rotated)).block
        return s_tir.SBlockRealize(realize.iter_values, guard(realize, store, rotated), block)

    return map_body(function, s_tir.SBlockRealize, rotate)


def guard(realize: Any, store: Any, column: Any) -> Any:
    """What a guarded block has to ask: whether the matrix has the element, in the column that is now
    stored. The column comes first. It is computed anyway, so nvcc makes no branch of what follows."""
    if isinstance(realize.predicate, tirx.IntImm):
        return realize.predicate
    indices = [*store.indices[:-1], column]
    inside = [index < end for index, end in zip(indices, store.buffer.shape)]
    return at_values(realize, tirx.all(*reversed(inside)))
