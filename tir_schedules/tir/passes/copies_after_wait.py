"""Reorders a software pipeline: the wait for a tile, the copies of a later one, compute.

InjectSoftwarePipeline leaves two statements in the loop over K tiles: copy and commit a later tile; wait,
then compute. The copy refills the stage that was read in the iteration before, which takes a barrier of its
own in front of it. This pass moves the wait to the head of the iteration. It leaves one group less in flight,
since that of the iteration is not committed yet. Now the barrier after the wait also lies between the last
read of a stage and its refill, and the copy is under way during the compute.
"""

from __future__ import annotations

from tvm import IRModule, s_tir, tirx, transform

from tir_schedules.tir.passes.copies_after_compute import has_commit, parts_of_wait
from tir_schedules.tir.passes.rewriting import map_body, replace_block_body, replace_body


@tirx.transform.prim_func_pass(opt_level=0, name="tir_schedules.copies_after_wait")
def copies_after_wait(
    function: tirx.PrimFunc, module: IRModule, context: transform.PassContext
) -> tirx.PrimFunc:
    """Reorder every loop of the form above: [copy, (wait) compute] to [(wait) copy, compute]."""

    def reorder(loop: tirx.For) -> tirx.For:
        statements = list(loop.body.seq) if isinstance(loop.body, tirx.SeqStmt) else []
        if len(statements) != 2 or not has_commit(statements[0]):
            return loop
        copy, compute = statements
        if not isinstance(compute, s_tir.SBlockRealize):
            return loop
        parts = parts_of_wait(compute.block.body)
        if parts is None:
            return loop
        wait, depth = parts
        body = tirx.SeqStmt([copy, replace_block_body(compute, depth.body)])
        body = tirx.AttrStmt(depth.node, depth.attr_key, depth.value - 1, body)
        return replace_body(loop, tirx.AttrStmt(wait.node, wait.attr_key, wait.value, body))

    return map_body(function, tirx.For, reorder)
