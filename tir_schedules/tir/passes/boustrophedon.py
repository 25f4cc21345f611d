"""Walk the grid to and fro, as an ox ploughs: every second slice of blocks on blockIdx.z takes its rows in
reverse order.

The blocks of one slice that run last and those of the next that run first then share rows of A, which are
still in the L2 cache. No schedule primitive says this: a row number that depends on the slice is not an
affine map of loops, and written into the algorithm it keeps blocks from being split into tiles.
"""

from __future__ import annotations

import tvm_ffi
from tvm import tirx

from tir_schedules.tir.passes.rewriting import with_body, with_value


@tirx.transform.prim_func_pass(opt_level=0, name="tir_schedules.boustrophedon")
def boustrophedon(function, module, context):
    """blockIdx.y becomes gridDim.y - 1 - blockIdx.y where blockIdx.z is odd, in a function with loops bound
    to both."""
    slices = []

    def find(loop):
        if thread_tag(loop) == "blockIdx.z":
            slices.append(loop.loop_var)

    def reverse(loop):
        if thread_tag(loop) != "blockIdx.y":
            return loop
        row = loop.loop_var
        turned = tirx.Select(slices[0] % 2 == 1, loop.extent - 1 - row, row)
        return with_body(loop, with_value(loop.body, row, turned))

    tvm_ffi.structural_walk(function.body, (tirx.For, find))
    if not slices:  # a grid of one slice
        return function
    return function.with_body(tvm_ffi.structural_map(function.body, (tirx.For, reverse), order="post"))


def thread_tag(loop) -> str:
    """The thread axis a loop is bound to, "" when to none."""
    return loop.thread_binding.thread_tag if loop.thread_binding is not None else ""
