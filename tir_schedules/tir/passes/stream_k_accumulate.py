"""Stream-K whose partial sums are accumulated in C.

As in `stream_k` the first tiles are shared, and a share begins within a tile and ends within one. But sums
stay in a thread's registers until they are stored. So the program with the first unit of K of a tile stores
its sums, and the programs with later units add theirs in C, in the order of programs. Therefore a program
begins with the tile in which its share ends. The sums that it adds to C at the end of its work are added to
those that the program before stored at the beginning of its work. Programs wait for programs before them, so
that blocks wait for blocks that began before them.

TVM pipelines the loop over K tiles for all of K: only then does it see which guards hold, and which stage is
which. So `persistent_kernel` has `StreamKAccumulate` leave that loop as it is, and the pass
`stream_k_accumulate` shortens it when it is pipelined. A unit of K is as many K tiles as there are stages: in
a share of whole units, the epilogue finds each K tile in the stage it expects.

Where K is not a multiple of a unit, copies have guards along K. In a loop over all of K TVM would prove most
of them true. So `StreamKAccumulate` offsets them by the first unit of a program, which TVM cannot know.
`stream_k_accumulate` leaves the guards in the first K tiles of a program and in those of its last unit.
"""

from __future__ import annotations

from typing import Any

import tvm_ffi
from tvm import IRModule, ir, s_tir, tirx, transform

from tir_schedules.model.annotations import STREAM_K_ACCUMULATE
from tir_schedules.tir.intrinsics.device import call
from tir_schedules.tir.passes.pipeline_state import ZERO, value
from tir_schedules.tir.passes.rewriting import body_of, conjuncts, guard_load, is_guarded, replace_block_body
from tir_schedules.tir.passes.stream_k import StreamK, counters_of

WARP = 32
VECTOR = 4  # floats in 16 bytes
ALONG_K = {"A": -1, "B": -2}
"""The axis of a matrix, from its last, that is summed over."""


class StreamKAccumulate(StreamK):
    """The work of a program. threads: of a block. Other arguments as of StreamK; `k_tiles` are units of K."""

    def __init__(self, block: Any, programs: int, tiles: int, streamed: int, k_tiles: int, threads: int):
        super().__init__(block, programs, tiles, streamed, k_tiles)
        self.program, self.warps = block, threads // WARP

    @property
    def counters(self) -> list[Any]:
        """All counters; the end of a tile's units is not needed."""
        return super().counters[:-1]

    def tile_of(self, iteration: Any) -> Any:
        """The number of the tile of an iteration: shared tiles come first, in reverse order."""
        shared = value(self.first_tile) + value(self.shared) - 1 - iteration
        later = self.streamed + self.program + (iteration - value(self.shared)) * self.programs
        return tirx.Select(iteration < value(self.shared), shared, later)

    def compute_tile(self, body: Any, iteration: Any, place: tuple[Any, Any]) -> tirx.Stmt:
        """The compute of a tile, from `body`, which is for all of K and ends with the store of the tile. An
        `else` branch has the same store, which `stream_k_accumulate` makes accumulate."""
        first: Any = value(self.first)
        *multiplied, stored = body.seq
        marks = f"<{self.programs}, {self.warps}>"
        behind: Any = value(self.k_tile_end)
        return tirx.SeqStmt(
            [
                *self.numbers(iteration, place),
                *(guard_from(first, each) for each in multiplied),
                tirx.Evaluate(call(f"wait_for_sums{marks}", first > 0, self.program)),
                tirx.IfThenElse(tirx.EQ(first, ZERO), stored, stored),
                tirx.Evaluate(call(f"leave_mark{marks}", behind < self.k_tiles, self.program)),
            ]
        )


def guard_from(first: Any, loop: Any) -> tirx.Stmt:
    """A loop annotated with STREAM_K_ACCUMULATE, with the guards along K of its copies offset by the first
    unit of a program. `stream_k_accumulate` offsets what they read."""
    if STREAM_K_ACCUMULATE not in getattr(loop, "annotations", ()):
        return loop
    unit = int(loop.annotations[STREAM_K_ACCUMULATE][2])

    def shift(realize: Any) -> Any:
        store = realize.block.body
        if not is_guarded(getattr(store, "value", None)):
            return realize
        guard, load, zero = store.value.args
        along_k = load.indices[ALONG_K[load.source.name]]
        guards = [
            each.a + first * unit < each.b if each.a.same_as(along_k) else each for each in conjuncts(guard)
        ]
        value = guard_load(guards, load, zero)
        return replace_block_body(realize, tirx.BufferStore(store.buffer, value, store.indices))

    return tvm_ffi.structural_map(loop, (s_tir.SBlockRealize, shift), order="post")


@tirx.transform.prim_func_pass(opt_level=0, name="tir_schedules.stream_k_accumulate")
def stream_k_accumulate(
    function: tirx.PrimFunc, module: IRModule, context: transform.PassContext
) -> tirx.PrimFunc:
    """Shorten the loop annotated with STREAM_K_ACCUMULATE to the units of K that a program has of a tile,
    from the first of these on, and accumulate the sums in C where another program stores the tile."""
    own = counters_of(function)
    if not own:
        return function
    first: Any = value(own["first_k_tile"])
    behind: Any = value(own["k_tile_end"])
    strides: dict[str, int] = {}

    def shorten(loop: Any) -> tirx.Stmt:
        if STREAM_K_ACCUMULATE not in loop.annotations or loop.kind != tirx.ForKind.SERIAL:
            return loop
        tiles, stages, strides["A"], strides["B"] = map(int, loop.annotations[STREAM_K_ACCUMULATE])
        extent = (behind - first) * stages - (tiles - int(loop.extent))
        bare = drop_k_guards(loop.body, own["first_k_tile"])
        if bare.same_as(loop.body):
            return tirx.For(loop.loop_var, loop.min, extent, loop.kind, loop.body, None, {})
        last: Any = tirx.min(extent, stages)
        loops = ((loop.min, extent - last, bare), (loop.min + extent - last, last, loop.body))
        return tirx.SeqStmt(
            [tirx.For(loop.loop_var, begin, count, loop.kind, body, None, {}) for begin, count, body in loops]
        )

    def shift(load: Any) -> Any:
        if load.source.name not in strides:
            return load
        (index,) = load.indices
        return tirx.BufferLoad(load.source, [offset_index(index, first * strides[load.source.name])])

    def add(branch: Any) -> tirx.Stmt:
        if branch.else_case is None or not reads(branch.condition, own["first_k_tile"]):
            return branch
        added = tvm_ffi.structural_map(branch.else_case, (tirx.BufferStore, accumulate_to_c), order="post")
        return tirx.IfThenElse(branch.condition, branch.then_case, added)

    body = body_of(function)
    for change in ((tirx.For, shorten), (ir.TensorLoad, shift), (tirx.IfThenElse, add)):
        body = tvm_ffi.structural_map(body, change, order="post")
    return function.with_body(body)


def drop_k_guards(body: tirx.Stmt, first: Any) -> tirx.Stmt:
    """The statements without their guards along K."""

    def bare(value: Any) -> Any:
        if not is_guarded(value):
            return value
        guard, load, zero = value.args
        guards = [each for each in conjuncts(guard) if not reads(each, first)]
        if len(guards) == len(conjuncts(guard)):
            return value
        return guard_load(guards, load, zero)

    return tvm_ffi.structural_map(body, (ir.Call, bare), order="post")


def offset_index(index: Any, by: Any) -> Any:
    """An index, or a ramp of them, with an offset."""
    if isinstance(index, tirx.Ramp):
        fields: Any = index
        return tirx.Ramp(fields.base + by, fields.stride, fields.lanes)
    return index + by


def reads(condition: Any, buffer: Any) -> bool:
    """Whether a condition reads a counter."""
    found: list[Any] = []
    tvm_ffi.structural_walk(
        condition, (ir.TensorLoad, lambda load: found.append(load) if load.source.same_as(buffer) else None)
    )
    return bool(found)


def accumulate_to_c(store: Any) -> tirx.Stmt:
    """A store to C, of one element or four neighbours, as a call that adds them there."""
    if store.buffer.name != "C":
        return store
    (to,), (source,) = store.indices, store.value.indices
    if not isinstance(to, tirx.Ramp):
        return tirx.Evaluate(call("add_one", tirx.BufferLoad(store.buffer, [to]), store.value))
    ramps: tuple[Any, Any] = (to, source)
    assert int(ramps[0].lanes) == VECTOR, "C is written four neighbours at a time"
    target, sums = (
        tirx.BufferLoad(buffer, [ramp.base])
        for buffer, ramp in zip((store.buffer, store.value.source), ramps)
    )
    return tirx.Evaluate(call("add_four", target, sums))
