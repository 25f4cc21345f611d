"""The waits of a pipeline with two levels, as late as they can be.

In the loop over the last tiles InjectSoftwarePipeline leaves three statements: wait, then compute all k steps
of a tile but the last; the first fragments of the next tile; compute the last k step. What is computed first
has arrived a turn before. This pass moves the wait to the fragments, so that the last tile but one is
multiplied while the last is on its way.

In the main loop copies_after_compute does the same, and moves the copy of a later tile behind the work. Where
that pass is not asked for, this one moves the wait there, too, and leaves the copy at the head of the turn:
the barrier of the turn before stands between it and the last read of the stage it refills, and a copy has the
time of one tile more.
"""

from __future__ import annotations

from tvm import IRModule, tirx, transform

from tir_schedules.tir.passes.copies_after_compute import commits, with_wait_moved
from tir_schedules.tir.passes.rewriting import map_body, with_body


@tirx.transform.prim_func_pass(opt_level=0, name="tir_schedules.late_waits")
def late_waits(function: tirx.PrimFunc, module: IRModule, context: transform.PassContext) -> tirx.PrimFunc:
    """Reorder every loop of these forms: [copy, (wait) compute, fragments, last] to [copy, compute, (wait)
    fragments, last], and the same without a copy."""

    def reorder(loop: tirx.For) -> tirx.For:
        statements = list(loop.body.seq) if isinstance(loop.body, tirx.SeqStmt) else []
        copies = [statement for statement in statements[:-3] if commits(statement)]
        if len(statements) != len(copies) + 3:
            return loop
        compute, fragments, last = statements[-3:]
        moved = with_wait_moved(compute, fragments)
        return with_body(loop, tirx.SeqStmt([*copies, *moved, last])) if moved else loop

    return map_body(function, tirx.For, reorder)
