"""TMA prefetch: one thread issues the copies of later K tiles into a multistage buffer, and all threads
compute.

A schedule has copies and compute in one loop over K tiles. Here the prologue issues the copies of the first K
tiles. An iteration begins with the statement in which threads wait for its K tile and meet: behind it no
thread needs the K tile before, and the copies of a later K tile fill its stage. Where the schedule has no
such statement, warps do not meet. They wait for the K tile and release its stage when they have read it, and
the thread that fills it again waits for that.

TVM's software pipeline would do the same, but its epilogue has the products of several K tiles as code, for
the last iterations have no copies. Here a condition is enough, which one thread evaluates.
"""

from __future__ import annotations

from typing import Any, Sequence

import tvm_ffi
from tvm import IRModule, ir, s_tir, tirx, transform

from tir_schedules.model.annotations import TMA_PREFETCH
from tir_schedules.tir.intrinsics import ring
from tir_schedules.tir.intrinsics.device import call
from tir_schedules.tir.passes.mbarrier_pipeline import bind_mbarriers, stage_and_parity
from tir_schedules.tir.passes.rewriting import (
    body_of,
    map_body,
    replace_body,
    sequence,
    substitute,
    thread_tag,
)

WARP = 32

MEETING_STAGES = 2
"""Stages of a buffer that threads write before they meet: the K tile before may still be read."""


@tirx.transform.prim_func_pass(opt_level=0, name="tir_schedules.tma_prefetch")
def tma_prefetch(function: Any, module: IRModule, context: transform.PassContext) -> tirx.PrimFunc:
    """Prefetch boxes or pieces in a loop annotated with TMA_PREFETCH. Operands, whose first index is the
    number of the K tile, get as many stages as the annotation says. Threads have read a stage before it is
    filled again: that takes a fence.proxy.async between (PTX ISA 9.0, Async Proxy)."""
    found: list[tuple[int, bool]] = []
    stages: list[tuple[Any, Any]] = []

    def prefetch(loop: Any) -> tirx.Stmt:
        count = int(loop.annotations.get(TMA_PREFETCH, 0))
        if not count:
            return loop
        statements = list(loop.body.seq)
        copies = [statement for statement in statements if fills_stage(statement)]
        work = [statement for statement in statements if not fills_stage(statement)]
        meeting = names(work[0], ring.PHASE)
        found.append((count, meeting))
        for statement, number in [*((copy, count) for copy in copies), (work[0], MEETING_STAGES)]:
            stages.extend((buffer, staged_buffer(buffer, number)) for buffer in shared_writes(statement))
        k_tile, ahead = loop.loop_var, min(count - 1 if meeting else count, int(loop.extent))
        stage, parity = stage_and_parity(k_tile, count)

        def copy_of(number: Any) -> tirx.Stmt:
            own = renew_variables(sequence(copies))
            return bind_mbarriers(substitute(own, k_tile, number), *stage_and_parity(number, count))

        first: Any = tirx.Var("prologue_k_tile", "int32")
        prologue = serial_loop(first, ahead, copy_of(first))
        read = (
            [] if meeting else [evaluate("wait_for_parity", ring.barrier(stage + ring.MOST_STAGES), parity)]
        )
        ready = sequence([*read, evaluate("fence_async_proxy")])
        refill = tirx.SeqStmt([tirx.IfThenElse(ring.first_thread(), ready, None), copy_of(k_tile + ahead)])
        later = tirx.IfThenElse(k_tile + ahead < loop.extent, refill, None)
        again = [later] if int(loop.extent) > ahead else []
        if meeting:
            iteration = [bind_mbarriers(work[0], stage, parity), *again, *work[1:]]
        else:
            wait = evaluate("wait_for_parity", ring.barrier(stage), parity)
            iteration = [wait, *work, evaluate("__syncwarp"), ring.release(stage), *again]
        annotations = {name: value for name, value in loop.annotations.items() if name != TMA_PREFETCH}
        body = tirx.SeqStmt(iteration)
        main_loop = tirx.For(k_tile, loop.min, loop.extent, loop.kind, body, loop.thread_binding, annotations)
        return tirx.SeqStmt([prologue, main_loop])

    def set_up(loop: Any) -> tirx.Stmt:
        if thread_tag(loop) != "threadIdx.x" or not found:
            return prefetch(loop)
        count, meeting = found.pop()
        first = ring.set_up(count, 1, 0 if meeting else int(loop.extent) // WARP)
        return replace_body(loop, tirx.SeqStmt([first, evaluate("__syncthreads"), loop.body]))

    changed = map_body(function, tirx.For, set_up)
    return changed.with_body(index_stages(body_of(changed), stages))


def renew_variables(statement: tirx.Stmt) -> tirx.Stmt:
    """A copy of a statement with loop variables of its own. TVM renews the buffers that it does not allocate,
    too: these are put back."""
    renewed: Any = body_of(s_tir.renew_defs(tirx.PrimFunc([], statement)))
    back = list(zip(sources(renewed), sources(statement)))
    return tvm_ffi.structural_map(
        renewed, (tirx.Buffer, lambda node: next((old for new, old in back if node.same_as(new)), node))
    )


def sources(statement: tirx.Stmt) -> list[Any]:
    """The buffers of all regions."""
    found: list[Any] = []
    tvm_ffi.structural_walk(statement, (ir.TensorRegion, lambda node: found.append(node.source)))
    return found


def fills_stage(statement: tirx.Stmt) -> bool:
    """Whether a statement copies to the stage of its K tile: it names the mbarrier that tells when that is
    full, and does not wait."""
    return names(statement, ring.FULL) and not names(statement, ring.PHASE)


def names(statement: tirx.Stmt, placeholder: str) -> bool:
    """Whether a placeholder of `ring` stands in a statement."""
    found: list[bool] = []
    tvm_ffi.structural_walk(
        statement, (ir.Call, lambda node: found.append(ring.stands_for(node, placeholder)))
    )
    return any(found)


def shared_writes(statement: tirx.Stmt) -> list[Any]:
    """The buffers in shared memory that the blocks of a statement write, if their first index is the K
    tile."""
    found: list[Any] = []

    def look(block: Any) -> None:
        for region in block.writes:
            if region.source.scope().startswith("shared") and region.source not in found:
                found.append(region.source)

    tvm_ffi.structural_walk(statement, (s_tir.SBlock, look))
    return [buffer for buffer in found if len(buffer.shape) == 3]


def evaluate(name: str, *arguments: Any) -> tirx.Stmt:
    """A call of a device function."""
    return tirx.Evaluate(call(name, *arguments))


def staged_buffer(buffer: Any, stages: int) -> Any:
    """The buffer of so many stages that replaces one of all K tiles."""
    return tirx.decl_buffer([stages, *buffer.shape[1:]], buffer.dtype, buffer.name, scope=buffer.scope())


def stage_of(k_tile: Any, stages: int) -> Any:
    """The stage of a K tile among so many."""
    return stage_and_parity(k_tile, stages)[0]


def index_stages(body: tirx.Stmt, stages: Sequence[tuple[Any, Any]]) -> tirx.Stmt:
    """A statement in which the stage replaces the number of the K tile as the index of staged buffers."""

    def stage_count(buffer: Any) -> int:
        return next((int(ring.shape[0]) for whole, ring in stages if buffer.same_as(whole)), 0)

    def load(node: Any) -> Any:
        count = stage_count(node.source)
        if not count:
            return node
        return tirx.BufferLoad(node.source, [stage_of(node.indices[0], count), *node.indices[1:]])

    def region(node: Any) -> Any:
        count = stage_count(node.source)
        if not count:
            return node
        k_tile = node.region[0]
        stage = ir.Range.from_min_extent(stage_of(k_tile.min, count), k_tile.extent)
        return tirx.BufferRegion(node.source, [stage, *node.region[1:]])

    def buffer(node: Any) -> Any:
        return next((ring for whole, ring in stages if node.same_as(whole)), node)

    body = tvm_ffi.structural_map(body, [(ir.TensorLoad, load), (ir.TensorRegion, region)], order="post")
    return tvm_ffi.structural_map(body, (tirx.Buffer, buffer))


def serial_loop(variable: Any, extent: int, body: tirx.Stmt) -> tirx.For:
    """A loop from 0 on."""
    return tirx.For(
        variable, tirx.IntImm("int32", 0), tirx.IntImm("int32", extent), tirx.ForKind.SERIAL, body
    )
