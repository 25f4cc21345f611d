"""Unrolls a loop over a multistage buffer by the number of its stages.

InjectSoftwarePipeline gives every version of a buffer a stage, and indexes it by the iteration modulo the
number of stages, anew for each access. Unrolled by the number of stages, the stage of each access is a
constant, which the instruction itself can add. Loads, copies and arithmetic remain in the loop, in a better
order.
"""

from __future__ import annotations

from typing import Any

from tvm import IRModule, tirx, transform

from tir_schedules.model.annotations import UNROLL_STAGES
from tir_schedules.tir.passes.rewriting import map_body, substitute


@tirx.transform.prim_func_pass(opt_level=0, name="tir_schedules.unroll_stages")
def unroll_stages(function: tirx.PrimFunc, module: IRModule, context: transform.PassContext) -> tirx.PrimFunc:
    """Split every annotated serial loop into rounds of iterations to be unrolled, and the iterations left
    over."""

    def split(loop: Any) -> tirx.Stmt:
        stages = int(loop.annotations.get(UNROLL_STAGES, 0)) if loop.kind == tirx.ForKind.SERIAL else 0
        if not stages or int(loop.extent) <= stages:
            return loop
        rounds, left = divmod(int(loop.extent), stages)
        round_: Any = tirx.Var(f"{loop.loop_var.name}_round", "int32")
        iterations = unroll(loop, stages, loop.min + round_ * stages)
        parts: list[tirx.Stmt] = [counting_loop(round_, rounds, tirx.ForKind.SERIAL, iterations)]
        if left:
            parts.append(unroll(loop, left, loop.min + rounds * stages))
        return tirx.SeqStmt(parts) if left else parts[0]

    return map_body(function, tirx.For, split)


def unroll(loop: Any, iterations: int, first: Any) -> tirx.For:
    """An unrolled loop over some iterations of a loop, from iteration `first` on, an expression."""
    # The name is in the CUDA whose hash shipped tuning records hold.
    iteration: Any = tirx.Var(f"{loop.loop_var.name}_turn", "int32")
    body = substitute(loop.body, loop.loop_var, first + iteration)
    return counting_loop(iteration, iterations, tirx.ForKind.UNROLLED, body)


def counting_loop(variable: tirx.Var, extent: int, kind: tirx.ForKind, body: tirx.Stmt) -> tirx.For:
    """A loop from 0 on."""
    return tirx.For(variable, tirx.IntImm("int32", 0), tirx.IntImm("int32", extent), kind, body)
