"""The last turn of a loop over tiles apart from the others, where it is the one that copies a ragged tile.

The guard along K of a copy fails in the last tile alone. In a loop over all tiles each copy asks; with the
last turn written out behind the loop TVM sees that in the others the answer is always yes.
"""

from __future__ import annotations

from typing import Any

from tvm import IRModule, tirx, transform

from tir_schedules.tir.passes import LAST_TURN
from tir_schedules.tir.passes.rewriting import map_body, with_value


@tirx.transform.prim_func_pass(opt_level=0, name="tir_schedules.last_turn")
def last_turn(function: tirx.PrimFunc, module: IRModule, context: transform.PassContext) -> tirx.PrimFunc:
    """Split the last turn from every serial loop that is annotated with LAST_TURN and has several."""

    def split(loop: Any) -> tirx.Stmt:
        if LAST_TURN not in loop.annotations or loop.kind != tirx.ForKind.SERIAL or int(loop.extent) < 2:
            return loop
        others = int(loop.extent) - 1
        extent = tirx.IntImm("int32", others)
        shorter = tirx.For(loop.loop_var, loop.min, extent, loop.kind, loop.body, None, loop.annotations)
        return tirx.SeqStmt([shorter, with_value(loop.body, loop.loop_var, loop.min + others)])

    return map_body(function, tirx.For, split)
