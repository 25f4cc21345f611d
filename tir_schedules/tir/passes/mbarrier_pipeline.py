"""Mbarriers of a multistage pipeline that TMA copies fill.

Every stage has an mbarrier: a phase ends when all bytes of a K tile have arrived and all threads have. A
schedule cannot express it: its barriers lie between statements, hold all threads, and are placed by TVM.
Intrinsics arrive and wait; this pass initialises the mbarriers, and tells intrinsics which one is theirs.

Products of the last K tile are in flight behind the loop, because an intrinsic waits for those of the K tile
before. So the pass adds a wait for them.
"""

from __future__ import annotations

from typing import Any

import tvm_ffi
from tvm import IRModule, ir, tirx, transform

from tir_schedules.model.annotations import MBARRIER_PIPELINE
from tir_schedules.tir.intrinsics import ring
from tir_schedules.tir.intrinsics.device import call
from tir_schedules.tir.passes.rewriting import (
    body_of,
    map_body,
    replace_body,
    thread_tag,
)

WARPGROUP = 128


@tirx.transform.prim_func_pass(opt_level=0, name="tir_schedules.mbarrier_pipeline")
def mbarrier_pipeline(
    function: tirx.PrimFunc, module: IRModule, context: transform.PassContext
) -> tirx.PrimFunc:
    """In a loop annotated with MBARRIER_PIPELINE, put the mbarrier of the iteration's stage where an
    intrinsic asks for it, and a wait for all products behind the loop; initialise the mbarriers at the head
    of the loop on threadIdx.y."""
    found: list[int] = []

    def number(loop: Any) -> tirx.Stmt:
        stages = int(loop.annotations.get(MBARRIER_PIPELINE, 0))
        if not stages:
            return loop
        body = bind_mbarriers(loop.body, *stage_and_parity(loop.loop_var, stages))
        if tvm_ffi.structural_equal(body, loop.body):
            return loop
        found.append(stages)
        main_loop = replace_body(loop, body)
        return tirx.SeqStmt([main_loop, tirx.Evaluate(call("wait_for_products<0>"))])

    def set_up(loop: Any) -> tirx.Stmt:
        if thread_tag(loop) != "threadIdx.y" or not found:
            return loop
        # The thread that announces bytes arrives once more.
        first = ring.set_up(found[0], int(loop.extent) * WARPGROUP + 1)
        return replace_body(loop, tirx.SeqStmt([first, tirx.Evaluate(call("__syncthreads")), loop.body]))

    numbered = map_body(function, tirx.For, number)
    return numbered.with_body(tvm_ffi.structural_map(body_of(numbered), (tirx.For, set_up), order="post"))


def bind_mbarriers(statement: tirx.Stmt, stage: Any, parity: Any) -> tirx.Stmt:
    """A statement about a K tile, with the mbarrier of its stage and the parity of the phase in which the K
    tile fills it."""

    def replaced(node: Any) -> Any:
        if ring.stands_for(node, ring.FULL):
            return ring.barrier(stage)
        return parity if ring.stands_for(node, ring.PHASE) else node

    return tvm_ffi.structural_map(statement, (ir.Call, replaced))


def stage_and_parity(k_tile: Any, stages: int) -> tuple[Any, Any]:
    """The stage of K tile number `k_tile`, and the parity of the phase in which it fills that: 0 in the first
    round of the stages, then 1, 0."""
    two, count = tirx.IntImm("int32", 2), tirx.IntImm("int32", stages)
    parity = tirx.Cast("uint32", tirx.truncmod(tirx.truncdiv(k_tile, count), two))
    return tirx.truncmod(k_tile, count), parity
