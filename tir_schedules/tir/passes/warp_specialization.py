"""Warp specialization: a producer warpgroup copies K tiles into stages, consumer warpgroups multiply them.

In a schedule all threads of a block do the same. Here one loop over K tiles becomes two, in different
warpgroups. They run independently and meet only at the mbarriers of stages: full, when all bytes of a K tile
have arrived; empty, when all consumer warps have finished with it. Stages and phases are counted over all
tiles of the block.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, Sequence

import tvm_ffi
from tvm import DataType, IRModule, ir, s_tir, tirx, transform

from tir_schedules.model.annotations import WARP_SPECIALIZATION
from tir_schedules.tir.intrinsics import boxes, ring, stmatrix
from tir_schedules.tir.intrinsics.device import call
from tir_schedules.tir.intrinsics.split_products import TURN
from tir_schedules.tir.passes.mbarrier_pipeline import WARPGROUP, bind_mbarriers
from tir_schedules.tir.passes.pipeline_state import ZERO, PipelineState
from tir_schedules.tir.passes.rewriting import (
    body_of,
    map_body,
    sequence,
    substitute,
    thread_tag,
)
from tir_schedules.tir.passes.threadblock_swizzle import thread_loop

REGISTERS = {2: (24, 240), 3: (32, 160)}
"""Consumer warpgroups -> registers of a producer thread, and of a consumer thread. With one consumer all
threads have as many as a thread can have from the start."""

NOT_UNROLLED: Any = {"disable_unroll": True}
"""The annotation of a loop that nvcc shall not unroll. If nvcc knows that there are few K tiles, it would
unroll the producer's loop, which makes much code that is executed once."""


@dataclass(frozen=True)
class Work:
    """The statements of a block for a tile: before the loop over K tiles, in it, and behind it.

    tiles: the loop over the block's tiles, if it has one. parts: a loop over parts of K whose sums are added
    to others, with the statements that clear these sums and those that add them, if there is one; before,
    after: what stands around it. k_loop: the loop over K tiles; copies, multiply: its body. stages: of the
    pipeline. stacked, beside: rows and columns of blocks in a cluster. box_rows, box_columns: of the boxes of
    C in a warpgroup's tile. places: how many boxes of a warpgroup shared memory holds; they take turns.
    part_columns: whether warpgroups have columns of boxes, else rows of them.
    """

    tiles: Any
    parts: "tuple[Any, Sequence[tirx.Stmt], Sequence[tirx.Stmt]] | None"
    before: Sequence[tirx.Stmt]
    k_loop: Any
    copies: Sequence[tirx.Stmt]
    multiply: tirx.Stmt
    after: Sequence[tirx.Stmt]
    stages: int
    stacked: int
    beside: int
    box_rows: int
    box_columns: int
    places: int
    part_columns: int

    @property
    def blocks(self) -> int:
        """Blocks of a cluster."""
        return self.stacked * self.beside

    @classmethod
    def find(cls, threads: Any) -> "Work | None":
        """The work in a loop on threadIdx.y; None where no loop is annotated with WARP_SPECIALIZATION."""
        body: Any = statements_of(threads.body)[-1] if tile_counters(threads) else threads.body
        is_tile_loop = isinstance(body, tirx.For) and WARP_SPECIALIZATION not in body.annotations
        tiles: Any = body if is_tile_loop else None
        found = around_k_loop(statements_of(body if tiles is None else tiles.body))
        if not found:
            return None
        before, k_loop, after = found
        parts = None
        if WARP_SPECIALIZATION not in k_loop.annotations:
            within = around_k_loop(statements_of(k_loop.body))
            assert within
            parts, k_loop = (k_loop, within[0], within[2]), within[1]
        *copies, multiply = statements_of(k_loop.body)
        numbers = map(int, k_loop.annotations[WARP_SPECIALIZATION])
        return cls(tiles, parts, before, k_loop, copies, multiply, after, *numbers)

    def loop_over_k_tiles(
        self, statements: Sequence[tirx.Stmt], state: PipelineState, annotations: Any = None
    ) -> tirx.For:
        body = bind_mbarriers(sequence(statements), state.stage, state.parity)
        body = tvm_ffi.structural_map(body, (ir.Call, self.whether_added))
        return copy_loop(self.k_loop, sequence([body, *state.advance()]), annotations)

    def whether_added(self, node: Any) -> Any:
        """The value of placeholders for it: true for all K tiles of a part of K except the first."""
        if not ring.stands_for(node, ring.ADDED):
            return node
        return tirx.Cast("int32", self.k_loop.loop_var > 0)

    def loop_over_parts(self, statements: Sequence[tirx.Stmt], alone: bool) -> list[tirx.Stmt]:
        """The statements of a part of K, for each of them. alone: without those that add up. The sums of a
        part are cleared before the first one alone: they begin with the part's first products."""
        if self.parts is None:
            return [*statements]
        loop, before, after = self.parts
        if not alone:
            cleared = tirx.IfThenElse(tirx.EQ(loop.loop_var, loop.min), sequence(before), None)
            statements = [cleared, *statements, *after]
        return [copy_loop(loop, sequence(statements))]

    def loop_over_tiles(self, statements: Sequence[tirx.Stmt]) -> tirx.Stmt:
        body = sequence(statements)
        return body if self.tiles is None else copy_loop(self.tiles, body)


@tirx.transform.prim_func_pass(opt_level=0, name="tir_schedules.warp_specialization")
def warp_specialization(
    function: tirx.PrimFunc, module: IRModule, context: transform.PassContext
) -> tirx.PrimFunc:
    """Specialize the warpgroups of a loop on threadIdx.y in which a loop over K tiles is annotated with
    WARP_SPECIALIZATION: one more warpgroup is the producer, the others are consumers."""

    staged: list[tuple[Any, Any]] = []

    def specialize(threads: Any) -> tirx.Stmt:
        if thread_tag(threads) != "threadIdx.y":
            return threads
        work = Work.find(threads)
        if work is None:
            return threads
        consumers = int(threads.extent)
        buffers = Buffers(threads, work)
        state = PipelineState(work.stages)
        work = Work.find(buffers.use_stages(threads, state.stage))
        assert work
        staged.extend(buffers.staged.items())
        keep, take = registers(consumers)
        copies = [*keep, on_one_thread(producer(work, state, buffers.stage_bytes))]
        begin, end = turns_around(work, consumers)
        products = [*take, *begin, consumer(work, state), *end, *wait_for_stores(work)]
        # TVM must prove that there are as many consumers as tiles of theirs in shared memory.
        member = tirx.floormod(threads.loop_var, tirx.IntImm("int32", consumers))
        role = tirx.EQ(threads.loop_var, tirx.IntImm("int32", consumers))
        roles = tirx.IfThenElse(
            thread_invariant(role),
            sequence(copies),
            substitute(sequence(products), threads.loop_var, member),
        )
        meet = "sync_cluster" if work.blocks > 1 else "__syncthreads"
        warps = consumers * WARPGROUP // 32 * (work.stacked + work.beside - 1)
        body = [
            tirx.IfThenElse(role, on_one_thread(tirx.Evaluate(boxes.prefetch())), None),
            ring.set_up(work.stages, 1, warps),
            evaluate(meet),
            *state.start(),
            *tile_counters(threads),
            roles,
        ]
        return tirx.For(
            threads.loop_var, threads.min, tirx.IntImm("int32", consumers + 1), threads.kind, sequence(body),
            threads.thread_binding, threads.annotations,
        )  # fmt: skip

    def replace(buffer: Any) -> Any:
        return next((stages for whole, stages in staged if buffer.same_as(whole)), buffer)

    changed = map_body(function, tirx.For, specialize)
    return changed.with_body(tvm_ffi.structural_map(body_of(changed), (tirx.Buffer, replace)))


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
        self.staged = {each: self.staged_buffer(each) for each in self.extents}

    def uses(self, value: Any, variable: Any) -> bool:
        """Whether a value in a block depends on a variable of a loop around it."""
        met: list[Any] = []
        tvm_ffi.structural_walk(value, (tirx.Var, met.append))
        return any(
            one.same_as(variable) or one in self.values and self.uses(self.values[one], variable)
            for one in met
        )

    @property
    def stage_bytes(self) -> int:
        """Bytes of one K tile of all operands. The first extent is that of K tiles."""
        return sum(prod(self.extents[each][1:]) * DataType(each.dtype).bits // 8 for each in self.operands)

    def staged_buffer(self, buffer: Any) -> Any:
        """The buffer of stages, or of boxes of C, that replaces one of the schedule."""
        inner = self.extents[buffer][1:]
        if buffer in self.operands:
            shape = [self.work.stages, *inner]
        else:
            shape = [self.work.places, self.consumers, *inner[1:]]
        return tirx.decl_buffer(shape, buffer.dtype, buffer.name, scope=boxes.SHARED)

    def use_stages(self, threads: Any, stage: Any) -> Any:
        """The loop on threadIdx.y, with operands in the stage of their K tile, and boxes of C in their
        places. All other indices are relative to the block's tile, so that TVM allocates no more than
        that."""

        def rewrite(block: Any) -> s_tir.SBlock:
            if not any(map(is_shared, block.match_buffers)):
                return block
            matches = [
                self.move_match(match, stage) if is_shared(match) else match for match in block.match_buffers
            ]
            body = block.body
            for before, now in zip(block.match_buffers, matches):
                body = replace_buffer(body, before.buffer, now.buffer)
            parts = (block.iter_vars, block.reads, block.writes, block.name_hint, body, block.init)
            return s_tir.SBlock(*parts, block.alloc_buffers, matches, block.annotations)

        body = tvm_ffi.structural_map(threads.body, (s_tir.SBlock, rewrite), order="post")
        return tirx.For(
            threads.loop_var, threads.min, threads.extent, threads.kind, body, threads.thread_binding,
            threads.annotations,
        )  # fmt: skip

    def move_match(self, match: Any, stage: Any) -> Any:
        source, region = match.source.source, list(match.source.region)
        if source in self.operands:
            within = [remainder(each.min, extent) for each, extent in zip(region, self.extents[source])]
            places = [thread_invariant(stage), *within[1:]]
        else:
            places = [*self.place_of(*(each.min for each in region[:2])), *(each.min for each in region[2:])]
        region = [ir.Range.from_min_extent(place, each.extent) for place, each in zip(places, region)]
        return s_tir.MatchBufferRegion(
            to_shared(match.buffer), tirx.BufferRegion(self.staged[source], region)
        )

    def place_of(self, column: Any, row: Any) -> tuple[Any, Any]:
        """The place of a box of C, and its warpgroup. Places take turns along rows of boxes."""
        work = self.work
        number = remainder(row, work.box_rows) * work.box_columns + remainder(column, work.box_columns)
        place = thread_invariant(remainder(number, work.places))
        index, each = (column, work.box_columns) if work.part_columns else (row, work.box_rows)
        return place, remainder(tirx.floordiv(index, tirx.IntImm("int32", each)), self.consumers)


def registers(consumers: int) -> tuple[list[tirx.Stmt], list[tirx.Stmt]]:
    """What the producer does first, and a consumer, so that consumers have more registers (setmaxnreg)."""
    if consumers not in REGISTERS:
        return [], []
    few, many = REGISTERS[consumers]
    return [evaluate(f"keep_registers<{few}>")], [evaluate(f"take_registers<{many}>")]


def producer(work: Work, state: PipelineState, stage_bytes: int) -> tirx.Stmt:
    """The producer's loop: waits until a stage is empty, then starts the copies of a K tile into it."""
    wait = wait_until_empty(state)
    counters = [statement for statement in work.before if isinstance(statement, tirx.BufferStore)]
    k_tiles = work.loop_over_k_tiles(
        [
            wait,
            evaluate("arrive_announcing", ring.full(), stage_bytes),
            *work.copies,
        ],
        state,
        NOT_UNROLLED,
    )
    tiles = work.loop_over_tiles([*counters, *work.loop_over_parts([k_tiles], True)])
    return sequence([tiles, drain(state)]) if work.blocks > 1 else tiles


def wait_until_empty(state: PipelineState) -> tirx.Stmt:
    """A wait until a stage is empty. In the first round, it is for the phase before the first one, and does
    not wait."""
    before = tirx.const(1, "uint32") - state.parity
    return evaluate("wait_for_parity", ring.barrier(state.stage + ring.MOST_STAGES), before)


def drain(state: PipelineState) -> tirx.Stmt:
    """A wait until all stages are empty. Then all consumers of the cluster are done with what this producer
    has copied, and have arrived at its barriers. So the block may end. A barrier of the cluster would do too,
    but it waits until the other blocks have written C."""
    stage: Any = tirx.Var("stage", "int32")
    body = sequence([wait_until_empty(state), *state.advance()])
    return tirx.For(stage, ZERO, state.stages, tirx.ForKind.SERIAL, body, annotations=NOT_UNROLLED)


def consumer(work: Work, state: PipelineState) -> tirx.Stmt:
    """A consumer's loop: multiplies K tiles. It releases a stage when the products of the next have
    started."""
    release = ring.release(state.previous_stage, work.stacked, work.beside)
    behind = tirx.IfThenElse(work.k_loop.loop_var > 0, release, None)
    k_tiles = work.loop_over_k_tiles([work.multiply, behind], state)
    done = work.loop_over_parts([k_tiles, evaluate("wait_for_products<0>"), release], False)
    return work.loop_over_tiles([*work.before, *done, *wait_for_places(work), *work.after])


def wait_for_places(work: Work) -> list[tirx.Stmt]:
    """A wait until all boxes of the tile before have been read. It is needed if the number of boxes of a tile
    is not a multiple of the number of places, because the first box then takes a place out of turn."""
    if not work.places or work.box_rows * work.box_columns % work.places == 0:
        return []
    return [*wait_for_stores(work), tirx.Evaluate(stmatrix.sync_own_warpgroup())]


def wait_for_stores(work: Work) -> list[tirx.Stmt]:
    """A wait until TMA stores have read shared memory, if there are any: the block must not end before. The
    end of the kernel waits until they have written C."""
    stores = calls_function(work.after, "store_box")
    return [on_one_thread(evaluate("wait_until_stores_have_read<0>"))] if stores else []


def turns_around(work: Work, consumers: int) -> tuple[list[tirx.Stmt], list[tirx.Stmt]]:
    """What consumers do first and last where they take turns, see turns.cuh."""
    turn = f"{TURN}<{consumers}>"
    if not calls_function([work.multiply], turn):
        return [], []
    return [evaluate(f"begin_turns<{consumers}>")], [evaluate(f"end_turns<{consumers}>")]


def calls_function(statements: Sequence[tirx.Stmt], name: str) -> bool:
    """Whether a device function of that name is called."""
    found: list[Any] = []

    def look(node: Any) -> None:
        if getattr(node.op, "name", "") == "tirx.cuda.func_call" and node.args[0].value == name:
            found.append(node)

    for statement in statements:
        tvm_ffi.structural_walk(statement, (ir.Call, look))
    return bool(found)


def on_one_thread(statement: tirx.Stmt) -> tirx.Stmt:
    """A statement that the first thread of a warpgroup executes."""
    thread: Any = tirx.Var("thread", "int32")
    return thread_loop(thread, WARPGROUP, "threadIdx.x", tirx.IfThenElse(thread == 0, statement, None))


def thread_invariant(value: Any) -> Any:
    """A value that is the same in all threads of a warpgroup. TVM does not look into it: for a stage it
    allocates all stages, and for a bare counter, which it takes for constant, one stage."""
    return tirx.call_intrin(value.ty, "tirx.tvm_thread_invariant", value)


def remainder(value: Any, by: int) -> Any:
    return tirx.floormod(value, tirx.IntImm("int32", by))


def copy_loop(loop: Any, body: tirx.Stmt, annotations: Any = None) -> tirx.For:
    """A copy of a loop with another body and annotations, and a variable of its own."""
    variable: Any = tirx.Var(loop.loop_var.name, loop.loop_var.ty)
    body = substitute(body, loop.loop_var, variable)
    return tirx.For(variable, loop.min, loop.extent, tirx.ForKind.SERIAL, body, annotations=annotations)


def evaluate(name: str, *arguments: Any) -> tirx.Stmt:
    """A call of a device function."""
    return tirx.Evaluate(call(name, *arguments))


def tile_counters(threads: Any) -> list[tirx.Stmt]:
    """The counters that producer and consumers share, and their values before the loop over tiles."""
    first, *_ = statements = statements_of(threads.body)
    return statements[:-1] if isinstance(first, tirx.AllocBuffer) else []


def around_k_loop(statements: Sequence[Any]) -> "tuple[Sequence[Any], Any, Sequence[Any]] | None":
    """The loop over K tiles among statements, or one around it, with what stands before and behind it. None
    where no loop is annotated."""

    def has_it(statement: Any) -> bool:
        return isinstance(statement, tirx.For) and (
            WARP_SPECIALIZATION in statement.annotations or any(map(has_it, statements_of(statement.body)))
        )

    for place, statement in enumerate(statements):
        if has_it(statement):
            return statements[:place], statement, statements[place + 1 :]
    return None


def statements_of(statement: Any) -> list[Any]:
    """A statement's parts, or itself."""
    return list(statement.seq) if isinstance(statement, tirx.SeqStmt) else [statement]


def to_shared(buffer: Any) -> Any:
    """A buffer of a block, in shared memory."""
    if buffer.scope() == boxes.SHARED:
        return buffer
    return tirx.decl_buffer(
        buffer.shape, buffer.dtype, buffer.name, None, buffer.strides, buffer.elem_offset, boxes.SHARED,
        buffer.data_alignment, buffer.offset_factor,
    )  # fmt: skip


def replace_buffer(statement: tirx.Stmt, before: Any, now: Any) -> tirx.Stmt:
    """The statement with one buffer in place of another."""
    if now.same_as(before):
        return statement
    statement = tvm_ffi.structural_map(
        statement, (tirx.Buffer, lambda buffer: now if buffer.same_as(before) else buffer)
    )
    return substitute(statement, before.data, now.data)


def is_shared(match: Any) -> bool:
    """Whether a block's buffer is in shared memory, or is to be."""
    return match.source.source.scope() in (boxes.SHARED, boxes.BOXES)
