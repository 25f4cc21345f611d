"""The order of a pipeline with two levels: products first, then the copies of a later tile, then the wait for
the next one.

When both the loop over tiles and the loop over k steps within a tile are pipelined, InjectSoftwarePipeline
leaves four statements in the loop over tiles: copy and commit a later tile; wait, then the products of all k
steps but the last; the first fragments of the next tile; the products of the last k step. Other orders it
gets wrong: it attaches the wait to the first statement that reads a tile at all, and the fragments that come
after are read from a tile still in flight.

In its safe order the copy refills a slot right after the last reads of the turn before, which takes a barrier
of its own, and the wait stands before products that could have hidden it. This pass moves the copy behind the
products and the wait to the statement that needs it, the first fragments of the next tile; a wait of the same
depth is right there, for it was needed earlier before. Now one barrier per tile, after the wait, stands
between the last read of a slot and its refill.
"""

from __future__ import annotations

import tvm_ffi
from tvm import s_tir, tirx

from tir_schedules.tir.passes.rewriting import with_block_body, with_body

COMMIT, WAIT = "async_commit_queue_scope", "async_wait_queue_scope"


@tirx.transform.prim_func_pass(opt_level=0, name="tir_schedules.copies_after_products")
def copies_after_products(function, module, context):
    """Reorder every loop of the form above: [copy, (wait) products, fragments, last] to [products, copy,
    (wait) fragments, last]."""

    def reorder(loop):
        statements = list(loop.body.seq) if isinstance(loop.body, tirx.SeqStmt) else []
        if len(statements) != 4 or not commits(statements[0]):
            return loop
        copy, products, fragments, last = statements
        wait = products.block.body if isinstance(products, s_tir.SBlockRealize) else None
        if not (isinstance(wait, tirx.AttrStmt) and wait.attr_key == WAIT):
            return loop
        depth = wait.body
        late = tirx.AttrStmt(depth.node, depth.attr_key, depth.value, fragments.block.body)
        late = tirx.AttrStmt(wait.node, wait.attr_key, wait.value, late)
        body = tirx.SeqStmt(
            [with_block_body(products, depth.body), copy, with_block_body(fragments, late), last]
        )
        return with_body(loop, body)

    return function.with_body(tvm_ffi.structural_map(function.body, (tirx.For, reorder), order="post"))


def commits(statement) -> bool:
    """Whether asynchronous copies are committed in it."""
    found = []
    tvm_ffi.structural_walk(
        statement, (tirx.AttrStmt, lambda node: found.append(node) if node.attr_key == COMMIT else None)
    )
    return bool(found)
