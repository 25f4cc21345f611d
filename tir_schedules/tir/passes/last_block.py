"""Fuses two kernels into one: the last block to finish executes what all blocks have left.

The second of two loop nests may begin when all blocks have finished the first. No primitive says that: `bind`
and `compute_at` say which iterations a block executes, not after which other blocks. So TVM makes a kernel of
each nest. A schedule annotates the first nest's loop over blocks; this pass puts the second nest at the end
of the first, behind a return for all blocks but the last. A buffer within a kernel would be each thread's
own, so device functions pass on the partial sums, and wait for them.
"""

from __future__ import annotations

from typing import Any

import tvm_ffi
from tvm import IRModule, ir, s_tir, tirx, transform
from tvm.tirx.op import thread_return

from tir_schedules.model.annotations import LAST_BLOCK
from tir_schedules.tir.intrinsics.device import call
from tir_schedules.tir.passes.rewriting import map_body, replace_body, substitute

C_TYPES = {"int32": "int", "float32": "float"}


@tirx.transform.prim_func_pass(opt_level=0, name="tir_schedules.last_block")
def last_block(function: tirx.PrimFunc, module: IRModule, context: transform.PassContext) -> tirx.PrimFunc:
    """Join two nests where the first is annotated with LAST_BLOCK: 1 for fences between them, else 0."""

    def join(root: Any) -> Any:
        nests = getattr(root.body, "seq", [None])
        if LAST_BLOCK not in getattr(nests[0], "annotations", {}):
            return root
        first, second = nests
        fenced = "true" if int(first.annotations[LAST_BLOCK]) else "false"
        (between,) = (buffer for buffer in root.alloc_buffers if buffer.scope() == "global")
        leave = tirx.IfThenElse(
            tirx.Not(call(f"is_last_block<{fenced}>", first.extent, returns="bool")),
            tirx.Evaluate(thread_return()),
            None,
        )
        rest = substitute(second.body, second.loop_var, tirx.IntImm("int32", 0))
        rest = tvm_ffi.structural_map(rest, (tirx.AttrStmt, synchronize), order="post")
        body = replace_body(first, tirx.SeqStmt([first.body, leave, rest]))
        kept = [buffer for buffer in root.alloc_buffers if not buffer.same_as(between)]
        return s_tir.SBlock(
            root.iter_vars, root.reads, root.writes, root.name_hint, exchange_partials(body, between, fenced),
            root.init, kept, root.match_buffers, root.annotations,
        )  # fmt: skip

    return map_body(function, s_tir.SBlock, join)


def synchronize(statement: Any) -> tirx.Stmt:
    """A sum over threads, behind a barrier: lanes have waited each for its own value, and TVM's shuffles need
    them converged."""
    if statement.attr_key != "reduce_scope":
        return statement
    return tirx.SeqStmt([tirx.Evaluate(call("__syncthreads")), statement])


def exchange_partials(body: tirx.Stmt, buffer: Any, fenced: str) -> tirx.Stmt:
    """A statement with device functions in place of stores to a buffer and loads from it."""
    kind = f"<{C_TYPES[str(buffer.dtype)]}, {int(buffer.shape[0])}, {fenced}>"

    def others(regions: Any) -> list[Any]:
        return [region for region in regions if not region.source.same_as(buffer)]

    def stored(store: Any) -> tirx.Stmt:
        if not store.buffer.same_as(buffer):
            return store
        return tirx.Evaluate(call(f"leave_sum{kind}", *store.indices, store.value))

    def loaded(load: Any) -> Any:
        if not load.source.same_as(buffer):
            return load
        return call(f"left_sum{kind}", *load.indices, returns=str(buffer.dtype))

    def untouched(block: Any) -> Any:
        return s_tir.SBlock(
            block.iter_vars, others(block.reads), others(block.writes), block.name_hint, block.body,
            block.init, block.alloc_buffers, block.match_buffers, block.annotations,
        )  # fmt: skip

    return tvm_ffi.structural_map(
        body, [(tirx.BufferStore, stored), (ir.TensorLoad, loaded), (s_tir.SBlock, untouched)], order="post"
    )
