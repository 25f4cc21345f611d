"""Stream-K: the K tiles of the first tiles of C are shared out evenly among persistent blocks ("programs").

The K tiles of the shared tiles, tile after tile, are cut into one share per program. A share begins within a
tile and ends within one. The program with the first K tile of a tile adds the partial sums that the next
programs leave, and stores the tile. Programs are numbered backwards, so that blocks wait only for blocks that
began before them. Each program computes further tiles alone.

No primitive ends a loop over K tiles where a program's share ends. So `persistent_kernel` has `StreamK`
change the loop's extent, and tell an intrinsic which K tiles of a tile the program has. A rung with shared
tiles asks for the pass "stream_k", too: for `unify_counters`, and for another LowerWarpMemory, because TVM
lowers one buffer of a warp in each, and the sums of all K tiles are a second one.
"""

from __future__ import annotations

from typing import Any

import tvm_ffi
from tvm import IRModule, ir, tirx, transform

from tir_schedules.model.annotations import WARP_SPECIALIZATION
from tir_schedules.tir.intrinsics.parts import PREFIX, SHARED
from tir_schedules.tir.intrinsics.ring import stands_for
from tir_schedules.tir.passes.pipeline_state import ZERO, counter, store, value
from tir_schedules.tir.passes.rewriting import body_of, substitute

PROGRAM_COUNTERS = ("share_begin", "share_end", "first_tile", "shared_tiles")
TILE_COUNTERS = ("tile_number", "tile_row", "tile_column", "first_k_tile", "k_tile_end", "tile_end")
"""Counters of a program, and of an iteration of its loop over tiles."""


@tirx.transform.prim_func_pass(opt_level=0, name="tir_schedules.unify_counters")
def unify_counters(
    function: tirx.PrimFunc, module: IRModule, context: transform.PassContext
) -> tirx.PrimFunc:
    """Replace copies of the counters by the counters that are allocated: CompactBufferAllocation leaves
    copies where it makes indices relative to a tile."""
    own = counters_of(function)
    if not own:
        return function
    return function.with_body(
        tvm_ffi.structural_map(body_of(function), (tirx.Buffer, lambda node: own.get(node.name, node)))
    )


def counters_of(function: tirx.PrimFunc) -> dict[str, Any]:
    """The counters that a function allocates, by name."""
    own: dict[str, Any] = {}

    def look(statement: Any) -> None:
        if statement.buffer.name in PROGRAM_COUNTERS + TILE_COUNTERS:
            own[statement.buffer.name] = statement.buffer

    tvm_ffi.structural_walk(body_of(function), (tirx.AllocBuffer, look))
    return own


class StreamK:
    """The work of a program. block: its number in the grid. tiles: of C, the first `streamed` of them shared.
    k_tiles: of each tile."""

    def __init__(self, block: Any, programs: int, tiles: int, streamed: int, k_tiles: int):
        self.programs, self.streamed, self.k_tiles = programs, streamed, k_tiles
        self.whole = (tiles - streamed) // programs
        self.each, self.extra = divmod(streamed * k_tiles, programs)
        self.program = programs - 1 - block
        self.begin, self.end, self.first_tile, self.shared = map(counter, PROGRAM_COUNTERS)
        self.number, self.row, self.column, self.first, self.k_tile_end, self.tile_end = map(
            counter, TILE_COUNTERS
        )

    @property
    def counters(self) -> list[Any]:
        """All counters."""
        return [self.begin, self.end, self.first_tile, self.shared, self.number, self.row, self.column,
                self.first, self.k_tile_end, self.tile_end]  # fmt: skip

    @property
    def count(self) -> Any:
        """The number of tiles that the program works at."""
        return value(self.shared) + self.whole

    @property
    def tile(self) -> Any:
        """The number of the tile of an iteration."""
        return value(self.number)

    def place(self, rows: int, columns: int) -> tuple[Any, Any]:
        """Row and column of that tile."""
        return clamp(value(self.row), rows), clamp(value(self.column), columns)

    def start(self) -> list[tirx.Stmt]:
        """Allocates the counters, and computes the share of the program."""
        k_tiles, more = int32(self.k_tiles), tirx.Select(self.program < self.extra, int32(1), ZERO)
        last: Any = tirx.truncdiv(value(self.end) - 1, k_tiles)
        return [
            *map(tirx.AllocBuffer, self.counters),
            store(self.begin, self.program * self.each + tirx.min(self.program, self.extra)),
            store(self.end, value(self.begin) + self.each + more),
            store(self.first_tile, tirx.truncdiv(value(self.begin), k_tiles)),
            store(self.shared, last - value(self.first_tile) + 1),
        ]

    def tile_of(self, iteration: Any) -> Any:
        """The number of the tile of an iteration: shared tiles come first."""
        later = self.streamed + self.program + (iteration - value(self.shared)) * self.programs
        return tirx.Select(iteration < value(self.shared), value(self.first_tile) + iteration, later)

    def compute_tile(self, body: Any, iteration: Any, place: tuple[Any, Any]) -> tirx.Stmt:
        """The compute of a tile, from `body`, which is for all K tiles: it is shortened to those of the
        program. What follows the call that shares sums is executed only by the program with the first K
        tile."""
        first: Any = value(self.first)
        all_ = map(int32, (self.each, self.extra, self.programs))
        known: dict[str, Any] = dict(zip(SHARED, (first > 0, self.program, value(self.tile_end), *all_)))
        end = tirx.Select(self.tile < self.streamed, (self.tile + 1) * self.k_tiles, ZERO)
        numbers = [*self.numbers(iteration, place), store(self.tile_end, end)]
        statements = [*body.seq]
        behind = next(place for place, each in enumerate(statements) if has_shared_sums(each)) + 1
        done = [self.shorten(each) for each in statements[:behind]]
        rest = statements[behind:]
        stored = tirx.SeqStmt(rest) if len(rest) > 1 else rest[0]
        owned = tirx.IfThenElse(tirx.EQ(first, ZERO), stored, None)
        return tirx.SeqStmt([*numbers, *done[:-1], substitute_calls(done[-1], known), owned])

    def numbers(self, iteration: Any, place: tuple[Any, Any]) -> list[tirx.Stmt]:
        """Sets the counters of an iteration. place: row and column of the tile whose number is `tile`."""
        before = self.tile * self.k_tiles
        own: Any = tirx.min(value(self.end) - before, self.k_tiles)
        return [
            store(self.number, self.tile_of(iteration)),
            store(self.row, place[0]),
            store(self.column, place[1]),
            store(self.first, tirx.max(value(self.begin) - before, 0)),
            store(self.k_tile_end, tirx.Select(self.tile < self.streamed, own, int32(self.k_tiles))),
        ]

    def shorten(self, statement: Any) -> tirx.Stmt:
        """A loop over all K tiles, shortened to those of the program."""
        if not isinstance(statement, tirx.For) or WARP_SPECIALIZATION not in statement.annotations:
            return statement
        k_tile, first = statement.loop_var, value(self.first)
        body = substitute(statement.body, k_tile, clamp(k_tile + first, self.k_tiles))
        extent = value(self.k_tile_end) - first
        return tirx.For(k_tile, ZERO, extent, statement.kind, body, None, statement.annotations)


def clamp(value: Any, bound: int) -> Any:
    """A value from 0 to below the bound, clamped so that TVM can prove it."""
    return tirx.max(tirx.min(value, bound - 1), 0)


def int32(value: int) -> tirx.IntImm:
    return tirx.IntImm("int32", value)


def has_shared_sums(statement: tirx.Stmt) -> bool:
    """Whether sums are shared in a statement."""
    found: list[Any] = []
    tvm_ffi.structural_walk(
        statement, (ir.Call, lambda node: found.append(node) if stands_for(node, PREFIX + "leaves") else None)
    )
    return bool(found)


def substitute_calls(statement: tirx.Stmt, known: dict[str, Any]) -> tirx.Stmt:
    """A statement with known values in place of the calls that stand for them."""

    def replaced(node: Any) -> Any:
        return next((value for name, value in known.items() if stands_for(node, PREFIX + name)), node)

    return tvm_ffi.structural_map(statement, (ir.Call, replaced))
