"""Barriers for a ring of slots that the copy engine fills.

Every slot has an mbarrier: a phase ends when all bytes of a slab are there and all threads have arrived. A
schedule has no such thing: its barriers are between statements, all threads', and TVM places them. Intrinsics
arrive and wait; this pass sets the barriers up, and tells intrinsics which one is theirs.

Products of the last slab are in flight behind the loop: an intrinsic waits for those of the slab before. So
the pass has them awaited there.
"""

from __future__ import annotations

from typing import Any

import tvm_ffi
from tvm import IRModule, ir, tirx, transform

from tir_schedules.tir.intrinsics import ring
from tir_schedules.tir.intrinsics.device import call
from tir_schedules.tir.passes import RING
from tir_schedules.tir.passes.rewriting import body_of, map_body, with_body
from tir_schedules.tir.passes.serpentine import thread_tag

WARPGROUP = 128


@tirx.transform.prim_func_pass(opt_level=0, name="tir_schedules.ring_barriers")
def ring_barriers(function: tirx.PrimFunc, module: IRModule, context: transform.PassContext) -> tirx.PrimFunc:
    """In a loop annotated with RING, put the barrier of the turn's slot where an intrinsic asks for it, and a
    wait for all products behind it; set the barriers up at the head of the loop on threadIdx.y."""
    found: list[int] = []

    def number(loop: Any) -> tirx.Stmt:
        slots = int(loop.annotations.get(RING, 0))
        if not slots:
            return loop
        found.append(slots)
        turns = with_body(loop, with_barriers(loop.body, *place_of(loop.loop_var, slots)))
        return tirx.SeqStmt([turns, tirx.Evaluate(call("wait_for_products<0>"))])

    def set_up(loop: Any) -> tirx.Stmt:
        if thread_tag(loop) != "threadIdx.y" or not found:
            return loop
        # The thread that announces bytes arrives once more.
        first = ring.set_up(found[0], int(loop.extent) * WARPGROUP + 1)
        return with_body(loop, tirx.SeqStmt([first, tirx.Evaluate(call("__syncthreads")), loop.body]))

    numbered = map_body(function, tirx.For, number)
    return numbered.with_body(tvm_ffi.structural_map(body_of(numbered), (tirx.For, set_up), order="post"))


def with_barriers(statement: tirx.Stmt, slot: Any, parity: Any) -> tirx.Stmt:
    """A statement about a slab, with the barrier of its slot and the parity of the phase in which that is
    filled with it."""

    def replaced(node: Any) -> Any:
        if ring.stands_for(node, ring.FULL):
            return ring.barrier(slot)
        return parity if ring.stands_for(node, ring.PHASE) else node

    return tvm_ffi.structural_map(statement, (ir.Call, replaced))


def place_of(slab: Any, slots: int) -> tuple[Any, Any]:
    """The slot of slab number `slab`, and the parity of the phase in which it is filled with it: 0 in the
    first round of the ring, then 1, 0."""
    two, count = tirx.IntImm("int32", 2), tirx.IntImm("int32", slots)
    parity = tirx.Cast("uint32", tirx.truncmod(tirx.truncdiv(slab, count), two))
    return tirx.truncmod(slab, count), parity
