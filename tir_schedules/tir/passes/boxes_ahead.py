"""Boxes that one thread has copied some slabs ahead, into a ring of slots, for threads that all multiply.

A schedule has copies and work in one loop over slabs. Here the copies of the first slabs stand before the
loop. A turn begins with the statement in which threads wait for its slab and meet: behind it nobody needs the
slab before, and the copies of a later slab go to its slot. TVM's software pipeline would do that, too. But it
writes the last turns out, which have no copies left: so it has the products of several slabs as code, where
here a condition is enough, which one thread looks at.
"""

from __future__ import annotations

from typing import Any, Sequence

import tvm_ffi
from tvm import IRModule, ir, s_tir, tirx, transform

from tir_schedules.tir.intrinsics import ring
from tir_schedules.tir.intrinsics.boxes import MAP
from tir_schedules.tir.intrinsics.device import call
from tir_schedules.tir.passes import AHEAD
from tir_schedules.tir.passes.rewriting import body_of, map_body, with_body, with_value
from tir_schedules.tir.passes.ring_barriers import place_of, with_barriers
from tir_schedules.tir.passes.serpentine import thread_tag

TURNED = 2
"""Slots of what threads make of a slab before they meet: the slab before may still be read."""


@tirx.transform.prim_func_pass(opt_level=0, name="tir_schedules.boxes_ahead")
def boxes_ahead(function: Any, module: IRModule, context: transform.PassContext) -> tirx.PrimFunc:
    """Have boxes copied ahead in a loop annotated with AHEAD; operands, whose first index is the number of
    the slab, get as many slots as that says."""
    found: list[int] = []
    slots: list[tuple[Any, Any]] = []

    def with_copies_ahead(loop: Any) -> tirx.Stmt:
        count = int(loop.annotations.get(AHEAD, 0))
        if not count:
            return loop
        found.append(count)
        statements = list(loop.body.seq)
        copies = [statement for statement in statements if has_box(statement)]
        meet, *work = (statement for statement in statements if not has_box(statement))
        for statement, number in [*((copy, count) for copy in copies), (meet, TURNED)]:
            slots.extend((buffer, ring_of(buffer, number)) for buffer in written_by(statement))
        slab, ahead = loop.loop_var, min(count - 1, int(loop.extent))

        def copied(number: Any) -> tirx.Stmt:
            own = with_variables_of_its_own(tirx.SeqStmt(copies))
            return with_barriers(with_value(own, slab, number), *place_of(number, count))

        first: Any = tirx.Var("first_slab", "int32")
        before = counting(first, ahead, copied(first))
        later = tirx.IfThenElse(slab + ahead < loop.extent, copied(slab + ahead), None)
        turn = [
            with_barriers(meet, *place_of(slab, count)),
            *([later] if int(loop.extent) > ahead else []),
            *work,
        ]
        annotations = {name: value for name, value in loop.annotations.items() if name != AHEAD}
        turns = tirx.For(
            slab, loop.min, loop.extent, loop.kind, tirx.SeqStmt(turn), loop.thread_binding, annotations
        )
        return tirx.SeqStmt([before, turns])

    def set_up(loop: Any) -> tirx.Stmt:
        if thread_tag(loop) != "threadIdx.x" or not found:
            return loop
        meet = tirx.Evaluate(call("__syncthreads"))
        return with_body(loop, tirx.SeqStmt([ring.set_up(found[0], 1), meet, loop.body]))

    ahead = map_body(map_body(function, tirx.For, with_copies_ahead), tirx.For, set_up)
    return ahead.with_body(in_slots(body_of(ahead), slots))


def with_variables_of_its_own(statement: tirx.Stmt) -> tirx.Stmt:
    """A statement that can stand beside the one it is made of. TVM renews the buffers that are not its own,
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


def has_box(statement: tirx.Stmt) -> bool:
    """Whether boxes are copied in a statement."""
    found: list[Any] = []

    def look(node: Any) -> None:
        if ring.stands_for(node, MAP):
            found.append(node)

    tvm_ffi.structural_walk(statement, (ir.Call, look))
    return bool(found)


def written_by(statement: tirx.Stmt) -> list[Any]:
    """The buffers in shared memory that the blocks of a statement write."""
    found: list[Any] = []

    def look(block: Any) -> None:
        for region in block.writes:
            if region.source.scope().startswith("shared") and region.source not in found:
                found.append(region.source)

    tvm_ffi.structural_walk(statement, (s_tir.SBlock, look))
    return [buffer for buffer in found if len(buffer.shape) == 3]


def ring_of(buffer: Any, slots: int) -> Any:
    """The buffer of so many slots in place of one that has all slabs."""
    return tirx.decl_buffer([slots, *buffer.shape[1:]], buffer.dtype, buffer.name, scope=buffer.scope())


def slot_of(slab: Any, slots: int) -> Any:
    """The slot of a slab in a ring of so many."""
    return place_of(slab, slots)[0]


def in_slots(body: tirx.Stmt, slots: Sequence[tuple[Any, Any]]) -> tirx.Stmt:
    """A statement with slabs in the slots of their buffers."""

    def slots_of(buffer: Any) -> int:
        return next((int(ring.shape[0]) for whole, ring in slots if buffer.same_as(whole)), 0)

    def load(node: Any) -> Any:
        count = slots_of(node.source)
        if not count:
            return node
        return tirx.BufferLoad(node.source, [slot_of(node.indices[0], count), *node.indices[1:]])

    def region(node: Any) -> Any:
        count = slots_of(node.source)
        if not count:
            return node
        slab = node.region[0]
        slot = ir.Range.from_min_extent(slot_of(slab.min, count), slab.extent)
        return tirx.BufferRegion(node.source, [slot, *node.region[1:]])

    def buffer(node: Any) -> Any:
        return next((ring for whole, ring in slots if node.same_as(whole)), node)

    body = tvm_ffi.structural_map(body, [(ir.TensorLoad, load), (ir.TensorRegion, region)], order="post")
    return tvm_ffi.structural_map(body, (tirx.Buffer, buffer))


def counting(variable: Any, extent: int, body: tirx.Stmt) -> tirx.For:
    """A loop from 0 on."""
    return tirx.For(
        variable, tirx.IntImm("int32", 0), tirx.IntImm("int32", extent), tirx.ForKind.SERIAL, body
    )
