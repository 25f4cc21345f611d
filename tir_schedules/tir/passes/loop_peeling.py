"""Loop peeling: the last iteration of a loop over K tiles is peeled, because only it copies a ragged tile.

The guard along K of a copy fails in the last K tile alone. In a loop over all K tiles every copy has that
guard. With the last iteration peeled, TVM proves it true in all the count and drops it.
"""

from __future__ import annotations

from typing import Any

from tvm import IRModule, tirx, transform

from tir_schedules.model.annotations import LOOP_PEELING
from tir_schedules.tir.passes.rewriting import map_body, substitute


@tirx.transform.prim_func_pass(opt_level=0, name="tir_schedules.loop_peeling")
def loop_peeling(function: tirx.PrimFunc, module: IRModule, context: transform.PassContext) -> tirx.PrimFunc:
    """Peel the last iteration off every serial loop of several that is annotated with LOOP_PEELING."""

    def peel(loop: Any) -> tirx.Stmt:
        if LOOP_PEELING not in loop.annotations or loop.kind != tirx.ForKind.SERIAL or int(loop.extent) < 2:
            return loop
        count = int(loop.extent) - 1
        extent = tirx.IntImm("int32", count)
        main_loop = tirx.For(loop.loop_var, loop.min, extent, loop.kind, loop.body, None, loop.annotations)
        return tirx.SeqStmt([main_loop, substitute(loop.body, loop.loop_var, loop.min + count)])

    return map_body(function, tirx.For, peel)
