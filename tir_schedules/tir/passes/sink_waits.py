"""Sinks the waits of a two-level software pipeline to the statement that needs them.

In the epilogue loop over the last K tiles InjectSoftwarePipeline leaves three statements: wait, then compute
all k steps of a tile but the last; the first fragments of the next tile; compute the last k step. What is
computed first has arrived an iteration before. This pass moves the wait to the fragments, so that the last
tile but one is multiplied while the last is in flight.

In the main loop copies_after_compute does the same, and moves the copy of a later tile behind the compute.
If a rung does not ask for that pass, this one also moves the wait there, and leaves the copy at the head of
the iteration. The barrier of the iteration before is between the copy and the last read of the stage that it
refills, and a copy has the time of one tile more.
"""

from __future__ import annotations

from tvm import IRModule, tirx, transform

from tir_schedules.tir.passes.copies_after_compute import has_commit, sink_wait
from tir_schedules.tir.passes.rewriting import map_body, replace_body


@tirx.transform.prim_func_pass(opt_level=0, name="tir_schedules.sink_waits")
def sink_waits(function: tirx.PrimFunc, module: IRModule, context: transform.PassContext) -> tirx.PrimFunc:
    """Reorder every loop of these forms: [copy, (wait) compute, fragments, last] to [copy, compute, (wait)
    fragments, last], and the same without a copy."""

    def reorder(loop: tirx.For) -> tirx.For:
        statements = list(loop.body.seq) if isinstance(loop.body, tirx.SeqStmt) else []
        copies = [statement for statement in statements[:-3] if has_commit(statement)]
        if len(statements) != len(copies) + 3:
            return loop
        compute, fragments, last = statements[-3:]
        moved = sink_wait(compute, fragments)
        return replace_body(loop, tirx.SeqStmt([*copies, *moved, last])) if moved else loop

    return map_body(function, tirx.For, reorder)
