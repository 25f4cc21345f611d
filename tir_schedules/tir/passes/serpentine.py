"""Serpentine order of the grid: every second group of blocks on blockIdx.z takes its rows in reverse.

The blocks of one group that run last and those of the next that run first then share rows of A, which are
still in the L2 cache. No schedule primitive says this: a row number that depends on the group is not an
affine map of loops, and written into the algorithm it keeps blocks from being split into tiles.
"""

from __future__ import annotations

from typing import Any

import tvm_ffi
from tvm import IRModule, tirx, transform

from tir_schedules.tir.passes.rewriting import body_of, map_body, with_body, with_value


@tirx.transform.prim_func_pass(opt_level=0, name="tir_schedules.serpentine")
def serpentine(function: tirx.PrimFunc, module: IRModule, context: transform.PassContext) -> tirx.PrimFunc:
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
        turned = tirx.Select(groups[0] % 2 == 1, rows - 1 - row, row)
        return with_body(loop, with_value(loop.body, row, turned))

    tvm_ffi.structural_walk(body_of(function), (tirx.For, find))
    if not groups:  # no threadblock swizzle
        return function
    return map_body(function, tirx.For, reverse)


def thread_tag(loop: tirx.For) -> str:
    """The thread axis a loop is bound to, "" when to none."""
    return loop.thread_binding.thread_tag if loop.thread_binding is not None else ""
