"""Serpentine rasterization of the grid: every second group of blocks on blockIdx.z takes its rows in reverse.

The last blocks of one group and the first of the next then share rows of A, which are still in the L2 cache.
No schedule primitive expresses this: a row number that depends on the group is not an affine map of loops,
and written into the algorithm it keeps blocks from being split into tiles.
"""

from __future__ import annotations

from typing import Any

import tvm_ffi
from tvm import IRModule, tirx, transform

from tir_schedules.tir.passes.rewriting import body_of, map_body, replace_body, substitute, thread_tag


@tirx.transform.prim_func_pass(opt_level=0, name="tir_schedules.serpentine_grid")
def serpentine_grid(
    function: tirx.PrimFunc, module: IRModule, context: transform.PassContext
) -> tirx.PrimFunc:
    """blockIdx.y becomes gridDim.y - 1 - blockIdx.y where blockIdx.z is odd, in a function with loops bound
    to both."""
    groups: list[Any] = []

    def find(loop: tirx.For) -> None:
        if thread_tag(loop) == "blockIdx.z":
            groups.append(loop.loop_var)

    def reverse(loop: Any) -> tirx.For:
        if thread_tag(loop) != "blockIdx.y":
            return loop
        row, rows = loop.loop_var, loop.extent
        serpentine_row = tirx.Select(groups[0] % 2 == 1, rows - 1 - row, row)
        return replace_body(loop, substitute(loop.body, row, serpentine_row))

    tvm_ffi.structural_walk(body_of(function), (tirx.For, find))
    if not groups:  # no threadblock swizzle
        return function
    return map_body(function, tirx.For, reverse)
