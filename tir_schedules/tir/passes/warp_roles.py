"""Warpgroups with roles: one has slabs copied into a ring of slots, the others multiply them.

A schedule says what is computed where, and all threads of a block do the same. Here one loop over slabs
becomes two, in different warpgroups, which run apart and meet at the barriers of slots alone: full, when all
bytes of a slab are there; empty, when all warps that multiply are done with it. Slots and phases are counted
over all tiles of the block.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, Sequence

import tvm_ffi
from tvm import DataType, IRModule, ir, s_tir, tirx, transform

from tir_schedules.tir.intrinsics import boxes, ring
from tir_schedules.tir.intrinsics.device import call
from tir_schedules.tir.passes import ROLES
from tir_schedules.tir.passes.partial_group import on_grid
from tir_schedules.tir.passes.rewriting import body_of, map_body, with_value
from tir_schedules.tir.passes.ring_barriers import WARPGROUP, with_barriers
from tir_schedules.tir.passes.serpentine import thread_tag
from tir_schedules.tir.passes.slot_counters import SlotCounters

REGISTERS = {2: (24, 240), 3: (32, 160)}
"""Warpgroups that multiply -> registers of a thread that copies, and of one that multiplies. Where one does,
all threads have as many as a thread can have from the start."""

ROLLED = {"disable_unroll": True}
"""The annotation of a loop that nvcc is not to unroll. Where it knows that slabs are few it would do so for
the thread that copies: much code, of which each line is executed once."""


@dataclass(frozen=True)
class Work:
    """What a block does for a tile: before the slabs, for each slab, and after them.

    tiles: the loop over the block's tiles, if it has one. slabs: the loop. copies, multiply: what stands in
    it. slots: of the ring. blocks: of a cluster. box_rows, box_columns: of the boxes of C in a warpgroup's
    tile. places: of a warpgroup for them, which they take in turns.
    """

    tiles: Any
    before: Sequence[tirx.Stmt]
    slabs: Any
    copies: Sequence[tirx.Stmt]
    multiply: tirx.Stmt
    after: Sequence[tirx.Stmt]
    slots: int
    blocks: int
    box_rows: int
    box_columns: int
    places: int

    @classmethod
    def of(cls, threads: Any) -> "Work | None":
        """That in a loop on threadIdx.y; None where no loop has roles."""
        body: Any = statements_of(threads.body)[-1] if before_tiles(threads) else threads.body
        tiles: Any = body if isinstance(body, tirx.For) and ROLES not in body.annotations else None
        statements = statements_of(body if tiles is None else tiles.body)
        places = [
            place
            for place, statement in enumerate(statements)
            if isinstance(statement, tirx.For) and ROLES in statement.annotations
        ]
        if not places:
            return None
        (place,) = places
        before, slabs, after = statements[:place], statements[place], statements[place + 1 :]
        *copies, multiply = statements_of(slabs.body)
        numbers = map(int, slabs.annotations[ROLES])
        return cls(tiles, before, slabs, copies, multiply, after, *numbers)

    def over_slabs(
        self, statements: Sequence[tirx.Stmt], counters: SlotCounters, annotations: Any = None
    ) -> tirx.For:
        body = with_barriers(sequence(statements), counters.slot, counters.parity)
        return renewed(self.slabs, sequence([body, *counters.advance()]), annotations)

    def over_tiles(self, statements: Sequence[tirx.Stmt]) -> tirx.Stmt:
        body = sequence(statements)
        return body if self.tiles is None else renewed(self.tiles, body)


@tirx.transform.prim_func_pass(opt_level=0, name="tir_schedules.warp_roles")
def warp_roles(function: tirx.PrimFunc, module: IRModule, context: transform.PassContext) -> tirx.PrimFunc:
    """Give a loop on threadIdx.y one more warpgroup, which has what the loop over slabs annotated with ROLES
    multiplies copied."""

    rings: list[tuple[Any, Any]] = []

    def with_roles(threads: Any) -> tirx.Stmt:
        if thread_tag(threads) != "threadIdx.y":
            return threads
        work = Work.of(threads)
        if work is None:
            return threads
        consumers = int(threads.extent)
        tiles = Buffers(threads, work)
        counters = SlotCounters(work.slots)
        work = Work.of(tiles.in_ring(threads, counters.slot))
        assert work
        rings.extend(tiles.rings.items())
        keep, take = registers(consumers)
        copies = [*keep, by_one_thread(produced(work, counters, tiles.slab_bytes))]
        products = [*take, consumed(work, counters), *left_over(work)]
        # TVM must see that warpgroups number as many as there are tiles of theirs in shared memory.
        member = tirx.floormod(threads.loop_var, tirx.IntImm("int32", consumers))
        role = tirx.EQ(threads.loop_var, tirx.IntImm("int32", consumers))
        roles = tirx.IfThenElse(
            thread_invariant(role),
            sequence(copies),
            with_value(sequence(products), threads.loop_var, member),
        )
        meet = "sync_cluster" if work.blocks > 1 else "__syncthreads"
        warps = consumers * WARPGROUP // 32 * work.blocks
        body = [
            tirx.IfThenElse(role, by_one_thread(tirx.Evaluate(boxes.prefetch())), None),
            ring.set_up(work.slots, 1, warps),
            evaluate(meet),
            *counters.start(),
            *before_tiles(threads),
            roles,
        ]
        if work.blocks > 1:  # no block ends while another copies to it or arrives there
            body.append(evaluate(meet))
        return tirx.For(
            threads.loop_var, threads.min, tirx.IntImm("int32", consumers + 1), threads.kind, sequence(body),
            threads.thread_binding, threads.annotations,
        )  # fmt: skip

    def in_ring(buffer: Any) -> Any:
        return next((ring for whole, ring in rings if buffer.same_as(whole)), buffer)

    changed = map_body(function, tirx.For, with_roles)
    return changed.with_body(tvm_ffi.structural_map(body_of(changed), (tirx.Buffer, in_ring)))


class Buffers:
    """The buffers in shared memory of a block's work, and how large a block's part of each is."""

    def __init__(self, threads: Any, work: Work):
        self.work, self.consumers = work, int(threads.extent)
        self.extents: dict[Any, list[int]] = {}
        self.operands: list[Any] = []
        self.values: dict[Any, Any] = {}

        def bind(realize: Any) -> None:
            for variable, value in zip(realize.block.iter_vars, realize.iter_values):
                self.values[variable.var] = value

        def measure(block: Any) -> None:
            for match in filter(is_shared, block.match_buffers):
                region = match.source.region
                extents = [
                    int(each.extent) * (int(threads.extent) if self.uses(each.min, threads.loop_var) else 1)
                    for each in region
                ]
                known = self.extents.setdefault(match.source.source, extents)
                self.extents[match.source.source] = [*map(max, known, extents)]

        tvm_ffi.structural_walk(threads.body, (s_tir.SBlockRealize, bind))

        def collect(block: Any) -> None:
            sources = [match.source.source for match in filter(is_shared, block.match_buffers)]
            self.operands += [source for source in sources if source not in self.operands]

        tvm_ffi.structural_walk(threads.body, (s_tir.SBlock, measure))
        tvm_ffi.structural_walk(work.multiply, (s_tir.SBlock, collect))
        self.rings = {each: self.ring(each) for each in self.extents}

    def uses(self, value: Any, variable: Any) -> bool:
        """Whether a value in a block depends on a variable of a loop around it."""
        met: list[Any] = []
        tvm_ffi.structural_walk(value, (tirx.Var, met.append))
        return any(
            one.same_as(variable) or one in self.values and self.uses(self.values[one], variable)
            for one in met
        )

    @property
    def slab_bytes(self) -> int:
        """Of one slab of all operands."""
        return sum(prod(self.extents[each]) * DataType(each.dtype).bits // 8 for each in self.operands)

    def ring(self, buffer: Any) -> Any:
        """The buffer that takes its place."""
        inner = self.extents[buffer][1:]
        if buffer in self.operands:
            shape = [self.work.slots, *inner]
        else:
            shape = [self.work.places, self.consumers, *inner[1:]]
        return tirx.decl_buffer(shape, buffer.dtype, buffer.name, scope=boxes.SHARED)

    def in_ring(self, threads: Any, slot: Any) -> Any:
        """The loop on threadIdx.y, with operands in the slot of their slab, and boxes of C in a place. All
        other indices are those within a block's tile: TVM then allocates no more than that."""

        def folded(block: Any) -> s_tir.SBlock:
            if not any(map(is_shared, block.match_buffers)):
                return block
            matches = [
                self.placed(match, slot) if is_shared(match) else match for match in block.match_buffers
            ]
            body = block.body
            for before, now in zip(block.match_buffers, matches):
                body = with_buffer(body, before.buffer, now.buffer)
            parts = (block.iter_vars, block.reads, block.writes, block.name_hint, body, block.init)
            return s_tir.SBlock(*parts, block.alloc_buffers, matches, block.annotations)

        body = tvm_ffi.structural_map(threads.body, (s_tir.SBlock, folded), order="post")
        return tirx.For(
            threads.loop_var, threads.min, threads.extent, threads.kind, body, threads.thread_binding,
            threads.annotations,
        )  # fmt: skip

    def placed(self, match: Any, slot: Any) -> Any:
        source, region = match.source.source, list(match.source.region)
        if source in self.operands:
            within = [remainder(each.min, extent) for each, extent in zip(region, self.extents[source])]
            places = [thread_invariant(slot), *within[1:]]
        else:
            places = [*self.place_of(*(each.min for each in region[:2])), *(each.min for each in region[2:])]
        region = [ir.Range.from_min_extent(place, each.extent) for place, each in zip(places, region)]
        return s_tir.MatchBufferRegion(in_shared(match.buffer), tirx.BufferRegion(self.rings[source], region))

    def place_of(self, column: Any, row: Any) -> tuple[Any, Any]:
        """Of a box of C among those of its warpgroup, and the number of that. They are counted along rows of
        boxes."""
        work = self.work
        number = remainder(row, work.box_rows) * work.box_columns + remainder(column, work.box_columns)
        place = thread_invariant(remainder(number, work.places))
        return place, remainder(tirx.floordiv(row, tirx.IntImm("int32", work.box_rows)), self.consumers)


def registers(consumers: int) -> tuple[list[tirx.Stmt], list[tirx.Stmt]]:
    """What a warpgroup that copies does first, and one that multiplies, so that these have more registers."""
    if consumers not in REGISTERS:
        return [], []
    few, many = REGISTERS[consumers]
    return [evaluate(f"keep_registers<{few}>")], [evaluate(f"take_registers<{many}>")]


def produced(work: Work, counters: SlotCounters, slab_bytes: int) -> tirx.Stmt:
    """Slab after slab copied into its slot, when that is empty."""
    empty = ring.barrier(counters.slot + ring.MOST_SLOTS)
    # A wait for the phase before the first one does not wait.
    before = tirx.const(1, "uint32") - counters.parity
    counts = [statement for statement in work.before if isinstance(statement, tirx.BufferStore)]
    return work.over_tiles(
        [
            *counts,
            work.over_slabs(
                [
                    evaluate("wait_for_parity", empty, before),
                    evaluate("arrive_announcing", ring.full(), slab_bytes),
                    *work.copies,
                ],
                counters,
                ROLLED,
            ),
        ]
    )


def consumed(work: Work, counters: SlotCounters) -> tirx.Stmt:
    """Slab after slab multiplied; its slot is released when the products of the next have been started."""
    release = ring.release(counters.slot_before, work.blocks)
    behind = tirx.IfThenElse(work.slabs.loop_var > 0, release, None)
    slabs = work.over_slabs([work.multiply, behind], counters)
    return work.over_tiles([*work.before, slabs, evaluate("wait_for_products<0>"), release, *work.after])


def left_over(work: Work) -> list[tirx.Stmt]:
    """A wait until stores of boxes have read shared memory, if there are any: it must not go before. When
    they have written C is the end of the kernel's business."""
    stores: list[Any] = []

    def look(node: Any) -> None:
        if getattr(node.op, "name", "") == "tirx.cuda.func_call" and node.args[0].value == "store_box":
            stores.append(node)

    for statement in work.after:
        tvm_ffi.structural_walk(statement, (ir.Call, look))
    return [by_one_thread(evaluate("wait_until_stores_have_read<0>"))] if stores else []


def by_one_thread(statement: tirx.Stmt) -> tirx.Stmt:
    """A statement that the first thread of a warpgroup executes."""
    thread: Any = tirx.Var("thread", "int32")
    return on_grid(thread, WARPGROUP, "threadIdx.x", tirx.IfThenElse(thread == 0, statement, None))


def thread_invariant(value: Any) -> Any:
    """A value that is the same in all threads of a warpgroup. TVM does not look into it: for a slot it
    allocates the whole ring, and for a bare counter, which it takes for constant, one slot."""
    return tirx.call_intrin(value.ty, "tirx.tvm_thread_invariant", value)


def remainder(value: Any, by: int) -> Any:
    return tirx.floormod(value, tirx.IntImm("int32", by))


def renewed(loop: Any, body: tirx.Stmt, annotations: Any = None) -> tirx.For:
    """A copy of a loop with another body and annotations, and a variable of its own."""
    variable: Any = tirx.Var(loop.loop_var.name, loop.loop_var.ty)
    body = with_value(body, loop.loop_var, variable)
    return tirx.For(variable, loop.min, loop.extent, tirx.ForKind.SERIAL, body, annotations=annotations)


def evaluate(name: str, *arguments: Any) -> tirx.Stmt:
    """A call of a device function."""
    return tirx.Evaluate(call(name, *arguments))


def before_tiles(threads: Any) -> list[tirx.Stmt]:
    """Counters that both roles have, and what is in them before the loop over tiles."""
    first, *_ = statements = statements_of(threads.body)
    return statements[:-1] if isinstance(first, tirx.AllocBuffer) else []


def statements_of(statement: Any) -> list[Any]:
    """A statement's parts, or itself."""
    return list(statement.seq) if isinstance(statement, tirx.SeqStmt) else [statement]


def sequence(statements: Sequence[tirx.Stmt]) -> tirx.Stmt:
    return tirx.SeqStmt([*statements]) if len(statements) > 1 else statements[0]


def in_shared(buffer: Any) -> Any:
    """A buffer of a block, in shared memory."""
    if buffer.scope() == boxes.SHARED:
        return buffer
    return tirx.decl_buffer(
        buffer.shape, buffer.dtype, buffer.name, None, buffer.strides, buffer.elem_offset, boxes.SHARED,
        buffer.data_alignment, buffer.offset_factor,
    )  # fmt: skip


def with_buffer(statement: tirx.Stmt, before: Any, now: Any) -> tirx.Stmt:
    """The statement with one buffer in place of another."""
    if now.same_as(before):
        return statement
    statement = tvm_ffi.structural_map(
        statement, (tirx.Buffer, lambda buffer: now if buffer.same_as(before) else buffer)
    )
    return with_value(statement, before.data, now.data)


def is_shared(match: Any) -> bool:
    """Whether a block's buffer is in shared memory, or is to be."""
    return match.source.source.scope() in (boxes.SHARED, boxes.BOXES)
