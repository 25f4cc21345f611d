"""A barrier that the schedule asks for: all threads of a block arrive before any of them begins a loop.

TVM puts barriers between accesses to shared memory that it sees. It does not see what an intrinsic reads,
and gives a buffer the place of another one that is not needed any more. So warps that are done would
overwrite what others still multiply.
"""

# TVM's nodes have their fields at run time alone.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from typing import Any

from tvm import IRModule, tirx, transform

from tir_schedules.model.annotations import BARRIER_BEFORE
from tir_schedules.tir.passes.rewriting import map_body, sequence


@tirx.transform.prim_func_pass(opt_level=0, name="tir_schedules.barrier_before")
def barrier_before(
    function: tirx.PrimFunc, module: IRModule, context: transform.PassContext
) -> tirx.PrimFunc:
    """Put a barrier before every loop that is annotated with BARRIER_BEFORE."""

    def separate(loop: Any) -> tirx.Stmt:
        if BARRIER_BEFORE not in loop.annotations:
            return loop
        rest = {name: value for name, value in loop.annotations.items() if name != BARRIER_BEFORE}
        plain = tirx.For(
            loop.loop_var, loop.min, loop.extent, loop.kind, loop.body, loop.thread_binding, rest
        )
        barrier = tirx.call_intrin("int32", "tirx.tvm_storage_sync", "shared")
        return sequence([tirx.Evaluate(barrier), plain])

    return map_body(function, tirx.For, separate)
