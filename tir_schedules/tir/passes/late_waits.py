"""The waits of a pipeline with two levels that drains, as late as they can be.

In the loop over the last tiles InjectSoftwarePipeline leaves three statements: wait, then compute all k steps
of a tile but the last; the first fragments of the next tile; compute the last k step. What is computed first
has arrived a turn before. This pass moves the wait to the fragments, so that the last tile but one is
multiplied while the last is on its way. In the main loop copies_after_compute does the same.
"""

from __future__ import annotations

from tvm import IRModule, tirx, transform

from tir_schedules.tir.passes.copies_after_compute import with_wait_moved
from tir_schedules.tir.passes.rewriting import map_body, with_body


@tirx.transform.prim_func_pass(opt_level=0, name="tir_schedules.late_drain")
def late_drain(function: tirx.PrimFunc, module: IRModule, context: transform.PassContext) -> tirx.PrimFunc:
    """Reorder every loop of the form above: [(wait) compute, fragments, last] to [compute, (wait) fragments,
    last]."""

    def reorder(loop: tirx.For) -> tirx.For:
        statements = list(loop.body.seq) if isinstance(loop.body, tirx.SeqStmt) else []
        if len(statements) != 3:
            return loop
        moved = with_wait_moved(statements[0], statements[1])
        return with_body(loop, tirx.SeqStmt([*moved, statements[2]])) if moved else loop

    return map_body(function, tirx.For, reorder)
