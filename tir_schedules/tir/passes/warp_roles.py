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

from tir_schedules.tir.intrinsics import ring
from tir_schedules.tir.intrinsics.device import call
from tir_schedules.tir.passes import ROLES
from tir_schedules.tir.passes.partial_group import on_grid
from tir_schedules.tir.passes.rewriting import body_of, map_body, with_value
from tir_schedules.tir.passes.ring_barriers import WARPGROUP, with_barriers
from tir_schedules.tir.passes.serpentine import thread_tag
from tir_schedules.tir.passes.slot_counters import SlotCounters

REGISTERS = {1: (24, 240), 2: (24, 240), 3: (32, 160)}
"""Warpgroups that multiply -> registers of a thread that copies, and of one that multiplies."""

ROLLED = {"disable_unroll": True}
"""The annotation of a loop that nvcc is not to unroll. Where it knows that slabs are few it would do so for
the thread that copies: much code, of which each line is executed once."""


@dataclass(frozen=True)
class Work:
    """What a block does for a tile: before the slabs, for each slab, and after them.

    tiles: the loop over the block's tiles, if it has one. slabs: the loop. copies, multiply: what stands in
    it. slots: of the ring. blocks: of a cluster.
    """

    tiles: Any
    before: Sequence[tirx.Stmt]
    slabs: Any
    copies: Sequence[tirx.Stmt]
    multiply: tirx.Stmt
    after: Sequence[tirx.Stmt]
    slots: int
    blocks: int

    @classmethod
    def of(cls, threads: Any) -> "Work | None":
        """That in a loop on threadIdx.y; None where no loop has roles."""
        body: Any = threads.body
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
        slabs = statements[place]
        *copies, multiply = statements_of(slabs.body)
        slots, blocks = map(int, slabs.annotations[ROLES])
        return cls(tiles, statements[:place], slabs, copies, multiply, statements[place + 1 :], slots, blocks)

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
        rings.extend((each, tiles.ring(each, work.slots)) for each in tiles.operands)
        few, many = REGISTERS[consumers]
        production = produced(work, counters, tiles.slab_bytes)
        copies = [evaluate(f"keep_registers<{few}>"), by_one_thread(production)]
        products = [evaluate(f"take_registers<{many}>"), consumed(work, counters), *left_over(work)]
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
        body = [ring.set_up(work.slots, 1, warps), evaluate(meet), *counters.start(), roles]
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

    def ring(self, operand: Any, slots: int) -> Any:
        """The buffer that an operand has in its place."""
        shape = [slots, *self.extents[operand][1:]]
        return tirx.decl_buffer(shape, operand.dtype, operand.name, scope=operand.scope())

    def in_ring(self, threads: Any, slot: Any) -> Any:
        """The loop on threadIdx.y, with operands in the slot of their slab. All other indices are those
        within a block's tile: TVM then allocates no more than that."""

        def folded(block: Any) -> s_tir.SBlock:
            if not any(map(is_shared, block.match_buffers)):
                return block
            matches = [
                self.placed(match, slot) if is_shared(match) else match for match in block.match_buffers
            ]
            parts = (block.iter_vars, block.reads, block.writes, block.name_hint, block.body, block.init)
            return s_tir.SBlock(*parts, block.alloc_buffers, matches, block.annotations)

        body = tvm_ffi.structural_map(threads.body, (s_tir.SBlock, folded), order="post")
        return tirx.For(
            threads.loop_var, threads.min, threads.extent, threads.kind, body, threads.thread_binding,
            threads.annotations,
        )  # fmt: skip

    def placed(self, match: Any, slot: Any) -> Any:
        source = match.source.source
        region = [
            ir.Range.from_min_extent(tirx.floormod(each.min, tirx.IntImm("int32", extent)), each.extent)
            for each, extent in zip(match.source.region, self.extents[source])
        ]
        if source in self.operands:
            region[0] = ir.Range.from_min_extent(thread_invariant(slot), match.source.region[0].extent)
        return s_tir.MatchBufferRegion(match.buffer, tirx.BufferRegion(source, region))


def produced(work: Work, counters: SlotCounters, slab_bytes: int) -> tirx.Stmt:
    """Slab after slab copied into its slot, when that is empty."""
    empty = ring.barrier(counters.slot + ring.MOST_SLOTS)
    # A wait for the phase before the first one does not wait.
    before = tirx.const(1, "uint32") - counters.parity
    return work.over_tiles(
        [
            work.over_slabs(
                [
                    evaluate("wait_for_parity", empty, before),
                    evaluate("arrive_announcing", ring.full(), slab_bytes),
                    *work.copies,
                ],
                counters,
                ROLLED,
            )
        ]
    )


def consumed(work: Work, counters: SlotCounters) -> tirx.Stmt:
    """Slab after slab multiplied; its slot is released when the products of the next have been started."""
    release = ring.release(counters.slot_before, work.blocks)
    behind = tirx.IfThenElse(work.slabs.loop_var > 0, release, None)
    slabs = work.over_slabs([work.multiply, behind], counters)
    return work.over_tiles([*work.before, slabs, evaluate("wait_for_products<0>"), release, *work.after])


def left_over(work: Work) -> list[tirx.Stmt]:
    """A wait for stores of boxes, if there are any."""
    stores: list[Any] = []

    def look(node: Any) -> None:
        if getattr(node.op, "name", "") == "tirx.cuda.func_call" and node.args[0].value == "store_box":
            stores.append(node)

    for statement in work.after:
        tvm_ffi.structural_walk(statement, (ir.Call, look))
    return [by_one_thread(evaluate("wait_for_stores"))] if stores else []


def by_one_thread(statement: tirx.Stmt) -> tirx.Stmt:
    """A statement that the first thread of a warpgroup executes."""
    thread: Any = tirx.Var("thread", "int32")
    return on_grid(thread, WARPGROUP, "threadIdx.x", tirx.IfThenElse(thread == 0, statement, None))


def thread_invariant(value: Any) -> Any:
    """A value that is the same in all threads of a warpgroup. TVM does not look into it: for a slot it
    allocates the whole ring, and for a bare counter, which it takes for constant, one slot."""
    return tirx.call_intrin(value.ty, "tirx.tvm_thread_invariant", value)


def renewed(loop: Any, body: tirx.Stmt, annotations: Any = None) -> tirx.For:
    """A copy of a loop with another body and annotations, and a variable of its own."""
    variable: Any = tirx.Var(loop.loop_var.name, loop.loop_var.ty)
    body = with_value(body, loop.loop_var, variable)
    return tirx.For(variable, loop.min, loop.extent, tirx.ForKind.SERIAL, body, annotations=annotations)


def evaluate(name: str, *arguments: Any) -> tirx.Stmt:
    """A call of a device function."""
    return tirx.Evaluate(call(name, *arguments))


def statements_of(statement: Any) -> list[Any]:
    """A statement's parts, or itself."""
    return list(statement.seq) if isinstance(statement, tirx.SeqStmt) else [statement]


def sequence(statements: Sequence[tirx.Stmt]) -> tirx.Stmt:
    return tirx.SeqStmt([*statements]) if len(statements) > 1 else statements[0]


def is_shared(match: Any) -> bool:
    return match.source.source.scope().startswith("shared")
