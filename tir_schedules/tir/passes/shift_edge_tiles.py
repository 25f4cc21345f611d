"""Branch-free edge tiles: the last tile shifts inwards until it ends with the matrix (Halide's ShiftInwards).

pad_einsum lets the last tile reach beyond the matrix. `wrap_edge_tiles` computes an address for each row that
a thread copies, and keeps each in registers. Where rows are read float by float these are many:
sgemm/pipelined had 644 bytes of spills. Here the whole tile starts earlier, so that all rows of a thread are
at constant offsets from the first, as in a full tile. Elements where two tiles overlap are computed twice,
and written by the first of the tiles.
"""

# TVM's nodes have their fields at run time alone.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from math import gcd
from typing import Any

from tvm import IRModule, s_tir, tirx, transform

from tir_schedules.model.annotations import ROTATE_ROWS, SHIFT_EDGE_TILES
from tir_schedules.tir.passes.rewriting import (
    at_values,
    conjuncts,
    guard_load,
    is_guarded,
    map_body,
    replace_block_body,
)

STORED = 4
"""Elements that are stored at a time, at most. The guard of a shifted tile asks once for so many, because TVM
vectorizes no store whose guard has to be asked for each."""

Tiles = dict[int, tuple[int, int]]
"""An axis -> the extents of a tile and of the matrix along it."""


@tirx.transform.prim_func_pass(opt_level=0, name="tir_schedules.shift_edge_tiles")
def shift_edge_tiles(
    function: tirx.PrimFunc, module: IRModule, context: transform.PassContext
) -> tirx.PrimFunc:
    """Shift what every block annotated with SHIFT_EDGE_TILES copies from a padded matrix, or to one. The
    annotation is a list of triples: an axis of the matrix, counted from the last, -1; the extent of a tile
    along it; and the extent of the matrix, which is at least as large. Rows of a buffer may be longer than
    those of the matrix."""

    def shift(realize: Any) -> Any:
        tiles, store = tiles_of(realize.block), realize.block.body
        if not tiles:
            return realize
        change = shift_read if is_guarded(store.value) else shift_write
        return change(realize, store, tiles)

    return map_body(function, s_tir.SBlockRealize, shift)


def tiles_of(block: Any) -> Tiles:
    """The tiles of a block that are shifted."""
    given = [int(each) for each in block.annotations.get(SHIFT_EDGE_TILES, ())]
    return dict(zip(given[::3], zip(given[1::3], given[2::3])))


def shift_read(realize: Any, store: Any, tiles: Tiles) -> Any:
    guard, load, zero = store.value.args
    inside, kept = [*load.indices], conjuncts(guard)
    for axis, (tile, extent) in tiles.items():
        index = load.indices[axis]
        kept = [each for each in kept if not each.a.same_as(index)]
        inside[axis] = shift_index(index, tile, extent)
    value = guard_load(kept, tirx.BufferLoad(load.source, inside), zero)
    return replace_block_body(realize, tirx.BufferStore(store.buffer, value, store.indices))


def shift_write(realize: Any, store: Any, tiles: Tiles) -> Any:
    indices, guards = [*store.indices], []
    for axis in range(-len(indices), 0):
        index = indices[axis]
        if axis not in tiles:
            guards.append(index < store.buffer.shape[axis])
        else:
            tile, extent = tiles[axis]
            shared: Any = tirx.max(index // tile * tile - (extent - tile), 0)
            together = gcd(tile, extent, STORED)
            indices[axis] = shift_index(index, tile, extent)
            guards.append(index % tile // together >= shared // together)
    # The column of a rotated row is computed anyway: asked first, it lets nvcc make no branch of the rest.
    asked = guards[::-1] if ROTATE_ROWS in realize.block.annotations else guards
    block = replace_block_body(realize, tirx.BufferStore(store.buffer, store.value, indices)).block
    return s_tir.SBlockRealize(realize.iter_values, at_values(realize, tirx.all(*asked)), block)


def shift_index(index: Any, tile: int, extent: int) -> Any:
    """The index in a tile that starts earlier, where it would reach beyond the extent."""
    return tirx.min(index // tile * tile, extent - tile) + index % tile
