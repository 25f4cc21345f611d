"""Tiles whose slabs are shared out among programs evenly, beside tiles that a program has alone.

The first tiles are streamed: their slabs, tile after tile, are cut into shares, one for each program. A
share begins within a tile and ends within one. Who has the first slab of a tile adds the sums that the next
programs leave, and stores it. Programs are numbered backwards, so that blocks wait for blocks that began
before them.

No primitive has a loop over slabs end where a program's share does. So `persistent_tiles` has `Streamed`
change its extent, and tell an intrinsic what of a tile the program has. A rung with such tiles asks for
"streamed_tiles", too: for `same_counters`, and for a LowerWarpMemory more, as TVM lowers one buffer of a warp
in each, and the sums of all slabs are a second one.
"""

from __future__ import annotations

from typing import Any

import tvm_ffi
from tvm import IRModule, ir, tirx, transform

from tir_schedules.tir.intrinsics.parts import PREFIX, SHARED
from tir_schedules.tir.intrinsics.ring import stands_for
from tir_schedules.tir.passes import ROLES
from tir_schedules.tir.passes.rewriting import body_of, with_value
from tir_schedules.tir.passes.slot_counters import ZERO, counter, store, value

OF_PROGRAM = ("begin_slab", "end_slab", "first_tile", "shared_tiles")
OF_TURN = ("tile_number", "tile_row", "tile_column", "first_slab", "slab_behind", "tile_end")
"""Counters in which a program, and a turn of its loop over tiles, has its numbers."""


@tirx.transform.prim_func_pass(opt_level=0, name="tir_schedules.same_counters")
def same_counters(function: tirx.PrimFunc, module: IRModule, context: transform.PassContext) -> tirx.PrimFunc:
    """Put the counters that are allocated in the place of copies of them: CompactBufferAllocation, where it
    makes indices relative to a tile's, leaves such copies."""
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
        if statement.buffer.name in OF_PROGRAM + OF_TURN:
            own[statement.buffer.name] = statement.buffer

    tvm_ffi.structural_walk(body_of(function), (tirx.AllocBuffer, look))
    return own


class Streamed:
    """What a program has. block: its number in the grid. tiles: of C, the first `streamed` of them shared;
    slabs: of each."""

    def __init__(self, block: Any, programs: int, tiles: int, streamed: int, slabs: int):
        self.programs, self.streamed, self.slabs = programs, streamed, slabs
        self.whole = (tiles - streamed) // programs
        self.each, self.extra = divmod(streamed * slabs, programs)
        self.program = programs - 1 - block
        self.begin, self.end, self.first_tile, self.shared = map(counter, OF_PROGRAM)
        self.number, self.row, self.column, self.first, self.behind, self.tile_end = map(counter, OF_TURN)

    @property
    def counters(self) -> list[Any]:
        """All that it counts with."""
        return [self.begin, self.end, self.first_tile, self.shared, self.number, self.row, self.column,
                self.first, self.behind, self.tile_end]  # fmt: skip

    @property
    def count(self) -> Any:
        """Of the tiles that it works at."""
        return value(self.shared) + self.whole

    @property
    def tile(self) -> Any:
        """The number of the tile of a turn."""
        return value(self.number)

    def place(self, rows: int, columns: int) -> tuple[Any, Any]:
        """Row and column of that tile."""
        return below(value(self.row), rows), below(value(self.column), columns)

    def start(self) -> list[tirx.Stmt]:
        """Counters, and what the program has of the slabs that are shared."""
        slabs, more = number(self.slabs), tirx.Select(self.program < self.extra, number(1), ZERO)
        last: Any = tirx.truncdiv(value(self.end) - 1, slabs)
        return [
            *map(tirx.AllocBuffer, self.counters),
            store(self.begin, self.program * self.each + tirx.min(self.program, self.extra)),
            store(self.end, value(self.begin) + self.each + more),
            store(self.first_tile, tirx.truncdiv(value(self.begin), slabs)),
            store(self.shared, last - value(self.first_tile) + 1),
        ]

    def tile_of(self, turn: Any) -> Any:
        """The number of the tile of a turn: those that it shares come first."""
        later = self.streamed + self.program + (turn - value(self.shared)) * self.programs
        return tirx.Select(turn < value(self.shared), value(self.first_tile) + turn, later)

    def within(self, body: Any, turn: Any, place: tuple[Any, Any]) -> tirx.Stmt:
        """What is done for a tile, of which `body` is for all slabs: with those that the program has of it;
        behind the call that shares sums, where the first of them is among these."""
        first: Any = value(self.first)
        all_ = map(number, (self.each, self.extra, self.programs))
        known: dict[str, Any] = dict(zip(SHARED, (first > 0, self.program, value(self.tile_end), *all_)))
        end = tirx.Select(self.tile < self.streamed, (self.tile + 1) * self.slabs, ZERO)
        numbers = [*self.numbers(turn, place), store(self.tile_end, end)]
        statements = [*body.seq]
        behind = next(place for place, each in enumerate(statements) if shares(each)) + 1
        done = [self.shortened(each) for each in statements[:behind]]
        rest = statements[behind:]
        stored = tirx.SeqStmt(rest) if len(rest) > 1 else rest[0]
        owned = tirx.IfThenElse(tirx.EQ(first, ZERO), stored, None)
        return tirx.SeqStmt([*numbers, *done[:-1], told(done[-1], known), owned])

    def numbers(self, turn: Any, place: tuple[Any, Any]) -> list[tirx.Stmt]:
        """Those of a turn. place: row and column of the tile that `tile` is the number of."""
        before = self.tile * self.slabs
        own: Any = tirx.min(value(self.end) - before, self.slabs)
        return [
            store(self.number, self.tile_of(turn)),
            store(self.row, place[0]),
            store(self.column, place[1]),
            store(self.first, tirx.max(value(self.begin) - before, 0)),
            store(self.behind, tirx.Select(self.tile < self.streamed, own, number(self.slabs))),
        ]

    def shortened(self, statement: Any) -> tirx.Stmt:
        """A loop over all slabs as one over those that the program has."""
        if not isinstance(statement, tirx.For) or ROLES not in statement.annotations:
            return statement
        slab, first = statement.loop_var, value(self.first)
        body = with_value(statement.body, slab, below(slab + first, self.slabs))
        extent = value(self.behind) - first
        return tirx.For(slab, ZERO, extent, statement.kind, body, None, statement.annotations)


def below(value: Any, bound: int) -> Any:
    """A value that is from 0 to the bound, so that TVM sees it."""
    return tirx.max(tirx.min(value, bound - 1), 0)


def number(value: int) -> tirx.IntImm:
    return tirx.IntImm("int32", value)


def shares(statement: tirx.Stmt) -> bool:
    """Whether sums are shared in a statement."""
    found: list[Any] = []
    tvm_ffi.structural_walk(
        statement, (ir.Call, lambda node: found.append(node) if stands_for(node, PREFIX + "leaves") else None)
    )
    return bool(found)


def told(statement: tirx.Stmt, known: dict[str, Any]) -> tirx.Stmt:
    """A statement with what is known in place of the calls that stand for it."""

    def replaced(node: Any) -> Any:
        return next((value for name, value in known.items() if stands_for(node, PREFIX + name)), node)

    return tvm_ffi.structural_map(statement, (ir.Call, replaced))
