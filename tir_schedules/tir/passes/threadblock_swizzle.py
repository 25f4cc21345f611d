"""Threadblock swizzle with a partial last group: blocks beyond the last column exit at once.

A schedule can split a loop over blocks only evenly: otherwise a guard would enclose the whole kernel, and TVM
puts no barrier within a guard. So the schedule binds columns of blocks to blockIdx.x as they are, and
annotates the width of a group. This pass splits them into groups of that width. Blocks that the last group
lacks return before they do anything, as in article 001.
"""

from __future__ import annotations

from typing import Any

from tvm import IRModule, tirx, transform
from tvm.ir import Range
from tvm.tirx.op import thread_return

from tir_schedules.model.annotations import THREADBLOCK_SWIZZLE
from tir_schedules.model.launch import ceil_div
from tir_schedules.tir.passes.rewriting import map_body, substitute, thread_tag


@tirx.transform.prim_func_pass(opt_level=0, name="tir_schedules.threadblock_swizzle")
def threadblock_swizzle(
    function: tirx.PrimFunc, module: IRModule, context: transform.PassContext
) -> tirx.PrimFunc:
    """Split an annotated loop on blockIdx.x into groups on blockIdx.z and as many columns as the annotation
    says on blockIdx.x."""

    def split(loop: Any) -> tirx.Stmt:
        width = int(loop.annotations.get(THREADBLOCK_SWIZZLE, 0))
        if not width or thread_tag(loop) != "blockIdx.x":
            return loop
        group: Any = tirx.Var("group", "int32")
        member: Any = tirx.Var("member", "int32")
        column = group * width + member
        body = substitute(loop.body, loop.loop_var, column)
        if int(loop.extent) % width:
            leave = tirx.IfThenElse(column >= loop.extent, tirx.Evaluate(thread_return()), None)
            body = tirx.SeqStmt([leave, body])
        body = thread_loop(member, width, "blockIdx.x", body)
        return thread_loop(group, ceil_div(int(loop.extent), width), "blockIdx.z", body)

    return map_body(function, tirx.For, split)


def thread_loop(variable: tirx.Var, extent: int, axis: str, body: tirx.Stmt) -> tirx.For:
    """A loop from 0 on, bound to a thread axis."""
    zero, count = tirx.IntImm("int32", 0), tirx.IntImm("int32", extent)
    thread = tirx.IterVar(Range(zero, count), tirx.Var(axis, "int32"), tirx.IterVar.ThreadIndex, axis)
    return tirx.For(variable, zero, count, tirx.ForKind.THREAD_BINDING, body, thread)
