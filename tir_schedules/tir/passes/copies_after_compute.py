"""Reorders a two-level software pipeline: compute, the copies of a later tile, the wait for the next one.

When both the loop over K tiles and the loop over k steps within a tile are pipelined, InjectSoftwarePipeline
leaves four statements in the loop over tiles: copy and commit a later tile; wait, then compute all k steps
but the last; the first fragments of the next tile; compute the last k step. It gets other orders wrong: it
attaches the wait to the first statement that reads a tile at all, and the fragments that come after are read
from a tile still in flight.

In its safe order the copy refills a stage right after the last reads of the iteration before, which takes a
barrier of its own, and the wait precedes compute that could have hidden it. This pass moves the copy behind
the compute, and the wait to the statement that needs it, the first fragments of the next tile. A wait of the
same depth is right there, for it was needed earlier before. Now one barrier per tile, after the wait, lies
between the last read of a stage and its refill.
"""

from __future__ import annotations

from typing import Any

import tvm_ffi
from tvm import IRModule, s_tir, tirx, transform

from tir_schedules.model.annotations import COPIES_FIRST
from tir_schedules.tir.passes.rewriting import map_body, replace_block_body, replace_body

COMMIT, WAIT = "async_commit_queue_scope", "async_wait_queue_scope"


@tirx.transform.prim_func_pass(opt_level=0, name="tir_schedules.copies_after_compute")
def copies_after_compute(
    function: tirx.PrimFunc, module: IRModule, context: transform.PassContext
) -> tirx.PrimFunc:
    """Reorder every loop of the form above: [copy, (wait) compute, fragments, last] to [compute, copy, (wait)
    fragments, last], except for those that a schedule annotates with COPIES_FIRST."""

    def reorder(loop: tirx.For) -> tirx.For:
        statements = list(loop.body.seq) if isinstance(loop.body, tirx.SeqStmt) else []
        if len(statements) != 4 or not has_commit(statements[0]) or loop.annotations.get(COPIES_FIRST):
            return loop
        copy, compute, fragments, last = statements
        moved = sink_wait(compute, fragments)
        return replace_body(loop, tirx.SeqStmt([moved[0], copy, moved[1], last])) if moved else loop

    return map_body(function, tirx.For, reorder)


def sink_wait(
    compute: tirx.Stmt, fragments: tirx.Stmt
) -> tuple[s_tir.SBlockRealize, s_tir.SBlockRealize] | None:
    """Two blocks with the wait at the head of the first at the head of the second; None where there is
    none."""
    if not (isinstance(compute, s_tir.SBlockRealize) and isinstance(fragments, s_tir.SBlockRealize)):
        return None
    parts = parts_of_wait(compute.block.body)
    if parts is None:
        return None
    wait, depth = parts
    late = tirx.AttrStmt(depth.node, depth.attr_key, depth.value, fragments.block.body)
    late = tirx.AttrStmt(wait.node, wait.attr_key, wait.value, late)
    return replace_block_body(compute, depth.body), replace_block_body(fragments, late)


def parts_of_wait(statement: tirx.Stmt) -> tuple[tirx.AttrStmt, Any] | None:
    """The two attributes of a wait at the head of a statement, or None. The outer attribute says for which
    queue it waits. The inner one says how many groups may stay in flight."""
    if not (isinstance(statement, tirx.AttrStmt) and statement.attr_key == WAIT):
        return None
    depth = statement.body
    assert isinstance(depth, tirx.AttrStmt)
    return statement, depth


def has_commit(statement: tirx.Stmt) -> bool:
    """Whether asynchronous copies are committed in it."""
    found: list[tirx.AttrStmt] = []

    def look(node: tirx.AttrStmt) -> None:
        if node.attr_key == COMMIT:
            found.append(node)

    tvm_ffi.structural_walk(statement, (tirx.AttrStmt, look))
    return bool(found)
