"""Groups of a threadblock swizzle that are all of one width; blocks beyond the last column leave at once.

A schedule can only split a loop over blocks evenly: else a guard would stand around all of the kernel, and
TVM puts no barrier within a guard. So it binds the columns of blocks to blockIdx.x as they are, and says how
wide a group is. This pass makes groups of them, and blocks that the last group lacks return before they do
anything: article 001's form.
"""

from __future__ import annotations

from typing import Any

from tvm import IRModule, tirx, transform
from tvm.ir import Range
from tvm.tirx.op import thread_return

from tir_schedules.model.launch import ceil_div
from tir_schedules.tir.passes import PARTIAL_GROUP
from tir_schedules.tir.passes.rewriting import map_body, with_value


@tirx.transform.prim_func_pass(opt_level=0, name="tir_schedules.partial_group")
def partial_group(function: tirx.PrimFunc, module: IRModule, context: transform.PassContext) -> tirx.PrimFunc:
    """Split an annotated loop on blockIdx.x into groups on blockIdx.z and as many columns as the annotation
    says on blockIdx.x."""

    def split(loop: Any) -> tirx.Stmt:
        width = int(loop.annotations.get(PARTIAL_GROUP, 0))
        if not width:
            return loop
        group: Any = tirx.Var("group", "int32")
        member: Any = tirx.Var("member", "int32")
        column = group * width + member
        body = with_value(loop.body, loop.loop_var, column)
        if int(loop.extent) % width:
            leave = tirx.IfThenElse(column >= loop.extent, tirx.Evaluate(thread_return()), None)
            body = tirx.SeqStmt([leave, body])
        body = on_grid(member, width, "blockIdx.x", body)
        return on_grid(group, ceil_div(int(loop.extent), width), "blockIdx.z", body)

    return map_body(function, tirx.For, split)


def on_grid(variable: tirx.Var, extent: int, axis: str, body: tirx.Stmt) -> tirx.For:
    """A loop from 0 on, bound to an axis of the grid."""
    zero, count = tirx.IntImm("int32", 0), tirx.IntImm("int32", extent)
    thread = tirx.IterVar(Range(zero, count), tirx.Var(axis, "int32"), tirx.IterVar.ThreadIndex, axis)
    return tirx.For(variable, zero, count, tirx.ForKind.THREAD_BINDING, body, thread)
