"""Unroll a loop over a multistage buffer by the number of its stages.

InjectSoftwarePipeline gives every version of a buffer a stage and finds it by the number of the turn modulo
the number of stages, anew for each access. With as many turns written out as there are stages, the stage of
each access is a constant, which the instruction itself can add: what remains in the loop is loads, copies and
arithmetic, and their order is better for it.
"""

from __future__ import annotations

from typing import Any

from tvm import IRModule, tirx, transform

from tir_schedules.tir.passes import UNROLL_STAGES
from tir_schedules.tir.passes.rewriting import map_body, with_value


@tirx.transform.prim_func_pass(opt_level=0, name="tir_schedules.unroll_stages")
def unroll_stages(function: tirx.PrimFunc, module: IRModule, context: transform.PassContext) -> tirx.PrimFunc:
    """Split every annotated serial loop into rounds of turns to be unrolled, and the turns left over."""

    def split(loop: Any) -> tirx.Stmt:
        stages = int(loop.annotations.get(UNROLL_STAGES, 0)) if loop.kind == tirx.ForKind.SERIAL else 0
        if not stages or int(loop.extent) <= stages:
            return loop
        rounds, left = divmod(int(loop.extent), stages)
        round_: Any = tirx.Var(f"{loop.loop_var.name}_round", "int32")
        turns = unrolled(loop, stages, loop.min + round_ * stages)
        parts: list[tirx.Stmt] = [counting_loop(round_, rounds, tirx.ForKind.SERIAL, turns)]
        if left:
            parts.append(unrolled(loop, left, loop.min + rounds * stages))
        return tirx.SeqStmt(parts) if left else parts[0]

    return map_body(function, tirx.For, split)


def unrolled(loop: Any, turns: int, first: Any) -> tirx.For:
    """An unrolled loop over some turns of a loop, from turn `first` on, an expression."""
    turn: Any = tirx.Var(f"{loop.loop_var.name}_turn", "int32")
    body = with_value(loop.body, loop.loop_var, first + turn)
    return counting_loop(turn, turns, tirx.ForKind.UNROLLED, body)


def counting_loop(variable: tirx.Var, extent: int, kind: tirx.ForKind, body: tirx.Stmt) -> tirx.For:
    """A loop from 0 on."""
    return tirx.For(variable, tirx.IntImm("int32", 0), tirx.IntImm("int32", extent), kind, body)
