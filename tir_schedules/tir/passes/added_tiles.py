"""Tiles whose slabs are shared out among programs, and whose sums meet in C.

As in `streamed_tiles` the first tiles are streamed, and a share begins within a tile and ends within one. But
sums stay in a thread's registers until they are stored. So who has the first slab of a tile stores its sums,
and who has later ones adds them where these are, in the order of programs. For that a program begins with the
tile that its share ends in: what it adds to C at the end of its share is added to what the program before
stored at the beginning of its own. Programs wait for programs before them, so that blocks wait for blocks
that began before them.

The loop over tiles of K is pipelined by TVM, for all of K: only then does it see which guards hold and which
stage is which. So `persistent_tiles` has `Added` leave that loop as it is, and the pass `added_tiles`
shortens it when it is pipelined. A slab here is as many tiles of K as there are stages: in a share of whole
slabs, what stands behind the loop is for the stages it was for.

Where K is no multiple of a slab, copies ask for what is beyond K. In a loop over all of K TVM would see that
most of them need not. So `Added` has them ask from the first slab of a program on, of which TVM knows
nothing. `added_tiles` leaves the questions to the first tiles of a program and to those of its last slab.
"""

from __future__ import annotations

from typing import Any

import tvm_ffi
from tvm import IRModule, ir, s_tir, tirx, transform

from tir_schedules.tir.intrinsics.device import call
from tir_schedules.tir.passes import ADDED
from tir_schedules.tir.passes.rewriting import body_of, conjuncts, guarded, is_guarded, with_block_body
from tir_schedules.tir.passes.slot_counters import ZERO, value
from tir_schedules.tir.passes.streamed_tiles import Streamed, counters_of

WARP = 32
VECTOR = 4  # floats in 16 bytes
ALONG_K = {"A": -1, "B": -2}
"""The axis of a matrix, from its last, that is summed over."""


class Added(Streamed):
    """What a program has. threads: of a block. Other arguments as of Streamed."""

    def __init__(self, block: Any, programs: int, tiles: int, streamed: int, slabs: int, threads: int):
        super().__init__(block, programs, tiles, streamed, slabs)
        self.program, self.warps = block, threads // WARP

    @property
    def counters(self) -> list[Any]:
        """All that it counts with: nobody asks where a tile's slabs end."""
        return super().counters[:-1]

    def tile_of(self, turn: Any) -> Any:
        """The number of the tile of a turn: those that it shares come first, the last of them before all."""
        shared = value(self.first_tile) + value(self.shared) - 1 - turn
        later = self.streamed + self.program + (turn - value(self.shared)) * self.programs
        return tirx.Select(turn < value(self.shared), shared, later)

    def within(self, body: Any, turn: Any, place: tuple[Any, Any]) -> tirx.Stmt:
        """What is done for a tile, of which `body` is for all slabs and ends with what stores it: what adds
        to it stands beside that, the same still."""
        first: Any = value(self.first)
        *multiplied, stored = body.seq
        marks = f"<{self.programs}, {self.warps}>"
        behind: Any = value(self.behind)
        return tirx.SeqStmt(
            [
                *self.numbers(turn, place),
                *(guarded_from(first, each) for each in multiplied),
                tirx.Evaluate(call(f"wait_for_sums{marks}", first > 0, self.program)),
                tirx.IfThenElse(tirx.EQ(first, ZERO), stored, stored),
                tirx.Evaluate(call(f"leave_mark{marks}", behind < self.slabs, self.program)),
            ]
        )


def guarded_from(first: Any, loop: Any) -> tirx.Stmt:
    """A loop that is annotated with ADDED, whose copies ask for what is beyond K from the first slab of a
    program on. `added_tiles` shifts what they read."""
    if ADDED not in getattr(loop, "annotations", ()):
        return loop
    slab = int(loop.annotations[ADDED][2])

    def shift(realize: Any) -> Any:
        store = realize.block.body
        if not is_guarded(getattr(store, "value", None)):
            return realize
        guard, load, zero = store.value.args
        along_k = load.indices[ALONG_K[load.source.name]]
        asked = [
            each.a + first * slab < each.b if each.a.same_as(along_k) else each for each in conjuncts(guard)
        ]
        value = guarded(asked, load, zero)
        return with_block_body(realize, tirx.BufferStore(store.buffer, value, store.indices))

    return tvm_ffi.structural_map(loop, (s_tir.SBlockRealize, shift), order="post")


@tirx.transform.prim_func_pass(opt_level=0, name="tir_schedules.added_tiles")
def added_tiles(function: tirx.PrimFunc, module: IRModule, context: transform.PassContext) -> tirx.PrimFunc:
    """Shorten the loop that is annotated with ADDED to the slabs that a program has of a tile, have it begin
    with the first of these, and add sums to C where another program stores them."""
    own = counters_of(function)
    if not own:
        return function
    first: Any = value(own["first_slab"])
    behind: Any = value(own["slab_behind"])
    strides: dict[str, int] = {}

    def shorten(loop: Any) -> tirx.Stmt:
        if ADDED not in loop.annotations or loop.kind != tirx.ForKind.SERIAL:
            return loop
        tiles, stages, strides["A"], strides["B"] = map(int, loop.annotations[ADDED])
        extent = (behind - first) * stages - (tiles - int(loop.extent))
        bare = unguarded(loop.body, own["first_slab"])
        if bare.same_as(loop.body):
            return tirx.For(loop.loop_var, loop.min, extent, loop.kind, loop.body, None, {})
        last: Any = tirx.min(extent, stages)
        turns = ((loop.min, extent - last, bare), (loop.min + extent - last, last, loop.body))
        return tirx.SeqStmt(
            [tirx.For(loop.loop_var, begin, count, loop.kind, body, None, {}) for begin, count, body in turns]
        )

    def shift(load: Any) -> Any:
        if load.source.name not in strides:
            return load
        (index,) = load.indices
        return tirx.BufferLoad(load.source, [moved(index, first * strides[load.source.name])])

    def add(branch: Any) -> tirx.Stmt:
        if branch.else_case is None or not reads(branch.condition, own["first_slab"]):
            return branch
        added = tvm_ffi.structural_map(branch.else_case, (tirx.BufferStore, added_to_c), order="post")
        return tirx.IfThenElse(branch.condition, branch.then_case, added)

    body = body_of(function)
    for change in ((tirx.For, shorten), (ir.TensorLoad, shift), (tirx.IfThenElse, add)):
        body = tvm_ffi.structural_map(body, change, order="post")
    return function.with_body(body)


def unguarded(body: tirx.Stmt, first: Any) -> tirx.Stmt:
    """Statements of which none asks for what is beyond K."""

    def bare(value: Any) -> Any:
        if not is_guarded(value):
            return value
        guard, load, zero = value.args
        asked = [each for each in conjuncts(guard) if not reads(each, first)]
        if len(asked) == len(conjuncts(guard)):
            return value
        return guarded(asked, load, zero)

    return tvm_ffi.structural_map(body, (ir.Call, bare), order="post")


def moved(index: Any, by: Any) -> Any:
    """An index, or those of neighbours, further on."""
    if isinstance(index, tirx.Ramp):
        fields: Any = index
        return tirx.Ramp(fields.base + by, fields.stride, fields.lanes)
    return index + by


def reads(condition: Any, buffer: Any) -> bool:
    """Whether a condition is about a counter."""
    found: list[Any] = []
    tvm_ffi.structural_walk(
        condition, (ir.TensorLoad, lambda load: found.append(load) if load.source.same_as(buffer) else None)
    )
    return bool(found)


def added_to_c(store: Any) -> tirx.Stmt:
    """A store of one element to C, or four neighbours, as a call that adds them."""
    if store.buffer.name != "C":
        return store
    (to,), (of,) = store.indices, store.value.indices
    if not isinstance(to, tirx.Ramp):
        return tirx.Evaluate(call("add_one", tirx.BufferLoad(store.buffer, [to]), store.value))
    ramps: tuple[Any, Any] = (to, of)
    assert int(ramps[0].lanes) == VECTOR, "C is written four neighbours at a time"
    target, sums = (
        tirx.BufferLoad(buffer, [ramp.base])
        for buffer, ramp in zip((store.buffer, store.value.source), ramps)
    )
    return tirx.Evaluate(call("add_four", target, sums))
