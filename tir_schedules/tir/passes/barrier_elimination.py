"""Barrier elimination: one barrier per K tile is enough for a double-buffered loop.

Two stages alternate in shared memory: while one is read, registers bring the next K tile, which is then
stored into the other. One barrier per K tile is enough, between that store and the first read of what it
stored: a thread that passes it has finished with the stage that the next iteration stores to. ThreadSync
takes both stages for one buffer, and puts a barrier before the store as well; this pass removes that one.
Stores to dynamic shared memory keep it: there a tile of C may take the place of tiles that others still read.
"""

from __future__ import annotations

from typing import Sequence

import tvm_ffi
from tvm import IRModule, ir, tirx, transform

from tir_schedules.tir.passes.rewriting import map_body

STAGED = "shared"
SHARED = (STAGED, "shared.dyn")


@tirx.transform.prim_func_pass(opt_level=0, name="tir_schedules.barrier_elimination")
def barrier_elimination(
    function: tirx.PrimFunc, module: IRModule, context: transform.PassContext
) -> tirx.PrimFunc:
    """Drop each barrier after which static shared memory alone is only stored to until the next barrier of
    the same sequence."""

    def drop(sequence: tirx.SeqStmt) -> tirx.SeqStmt:
        statements = list(sequence.seq)
        barriers = [place for place, statement in enumerate(statements) if is_barrier(statement)]
        pairs = zip(barriers, barriers[1:])
        needless = {first for first, second in pairs if only_stores(statements[first + 1 : second])}
        kept = [statement for place, statement in enumerate(statements) if place not in needless]
        return tirx.SeqStmt(kept) if needless else sequence

    return map_body(function, tirx.SeqStmt, drop)


def is_barrier(statement: tirx.Stmt) -> bool:
    """Whether it is a __syncthreads()."""
    if not (isinstance(statement, tirx.Evaluate) and isinstance(statement.value, ir.Call)):
        return False
    call = statement.value
    if getattr(call.op, "name", "") != "tirx.tvm_storage_sync":
        return False
    return getattr(call.args[0], "value") in SHARED


def only_stores(statements: Sequence[tirx.Stmt]) -> bool:
    """Whether the statements store to static shared memory and do nothing else with shared memory."""
    found: set[tuple[str, str]] = set()
    look = [
        (tirx.BufferStore, lambda store: found.add(("store", store.buffer.scope()))),
        (ir.TensorLoad, lambda load: found.add(("load", load.source.scope()))),
    ]
    for statement in statements:
        tvm_ffi.structural_walk(statement, look)
    return {(what, scope) for what, scope in found if scope in SHARED} == {("store", STAGED)}
