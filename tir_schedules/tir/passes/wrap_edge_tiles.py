"""Branch-free loads of edge tiles: rows beyond the last wrap around to the first.

pad_einsum fills a tile with zeros beyond the matrix. A row of A beyond the last, or a column of B, adds only
to elements of C that are not written. So it may have any values, and here it has those of other rows. Their
addresses are computed before the loop over K tiles. A guard would cost instructions in the loop: a predicate,
and a store of zero where it fails. Along K zeros are needed, and the guard stays; LoopPartition leaves it to
the last K tile.

Rows wrap around, and are not clamped to the last one, so that lanes access memory as they do elsewhere:
neighbouring elements, not one element at a time.
"""

# TVM's nodes have their fields at run time alone.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from typing import Any

from tvm import IRModule, s_tir, tirx, transform

from tir_schedules.model.annotations import WRAP_EDGE_TILES
from tir_schedules.tir.passes.rewriting import conjuncts, is_guarded, map_body, replace_block_body


@tirx.transform.prim_func_pass(opt_level=0, name="tir_schedules.wrap_edge_tiles")
def wrap_edge_tiles(
    function: tirx.PrimFunc, module: IRModule, context: transform.PassContext
) -> tirx.PrimFunc:
    """Wrap the index of every padded copy whose block is annotated with WRAP_EDGE_TILES: the dimension of
    what it reads, and how many neighbours along it are copied at a time. Their number divides the extent, and
    the padded extent is at most twice as large."""

    def wrap(realize: Any) -> Any:
        dimension, width = map(int, realize.block.annotations.get(WRAP_EDGE_TILES, (0, 0)))
        store = realize.block.body
        if not width or not is_guarded(store.value):
            return realize
        guard, load, zero = store.value.args
        index, extent = load.indices[dimension], load.source.shape[dimension]
        kept = [each for each in conjuncts(guard) if not each.a.same_as(index)]
        if len(kept) == len(conjuncts(guard)):
            return realize
        inside = [*load.indices]
        first = index // width * width
        inside[dimension] = tirx.Select(first < extent, first, first - extent) + index % width
        value: Any = tirx.BufferLoad(load.source, inside)
        if kept:
            value = tirx.if_then_else(tirx.all(*kept), value, zero)
        return replace_block_body(realize, tirx.BufferStore(store.buffer, value, store.indices))

    return map_body(function, s_tir.SBlockRealize, wrap)
