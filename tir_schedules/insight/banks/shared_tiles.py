"""Where boxes of tensor maps and factors of wgmma lie in shared memory, as they were written and read; and
pictures of it: the banks of each piece of 16 bytes, and the product that reads it.

A tile is what one box fills, or, where threads fill it, what the first products of a warpgroup read. All
places are from the execution: the pieces of 16 bytes that a copy moved, and those that a product's descriptor
named. How a wgmma asks the banks for them is a model: eight rows of a piece at once.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Iterator, Mapping, Sequence

from tir_schedules.insight.banks.pictures import HUES, Cell, Picture, Row
from tir_schedules.insight.banks.tiles import PIECE
from tir_schedules.insight.banks.wavefronts import BANKS, LINE, WORD
from tir_schedules.machines.cpu.abi import RIGHT_FACTOR, Happening
from tir_schedules.machines.cpu.instructions.warpgroup import ProductOption
from tir_schedules.model.findings import Location
from tir_schedules.model.machine import Events

GROUPS = BANKS * WORD // PIECE
"""Groups of four banks, each as wide as a piece."""
DEPTH, EIGHT = 16, 8

Place = tuple[int, int]
"""A row of a tile, and a piece of 16 bytes in it."""


@dataclass(frozen=True)
class SharedTile:
    """kind: "box", "store" (a box that is written back), or "factor" (of products, filled by threads).

    buffer: the array, or the factor. location: of the instruction. count: how many such boxes the block
    copies. places: row and piece -> address in shared memory. readers: the same -> which product of its
    warpgroup reads it first, from 0. agrees: whether products read rows and pieces as the box has them; None
    where no product reads it.
    """

    buffer: str
    kind: str
    location: Location
    count: int
    places: Mapping[Place, int]
    readers: Mapping[Place, int]
    agrees: bool | None = None

    @property
    def rows(self) -> int:
        return 1 + max(row for row, _ in self.places)

    @property
    def pieces(self) -> int:
        return 1 + max(piece for _, piece in self.places)

    @property
    def start(self) -> int:
        return min(self.places.values())

    @property
    def turns(self) -> int:
        """How often a group of four banks is asked for by eight rows of a piece, at most: 1 where all banks
        serve at once."""
        asked: Counter[tuple[int, int, int]] = Counter()
        for (row, piece), address in self.places.items():
            asked[piece, row // EIGHT, address // PIECE % GROUPS] += 1
        return max(asked.values())

    def as_json(self) -> dict[str, object]:
        cells = [
            {"row": row, "piece": piece, "address": address, "read_by": self.readers.get((row, piece))}
            for (row, piece), address in sorted(self.places.items())
        ]
        return {
            "buffer": self.buffer, "kind": self.kind, "line": self.location.line, "count": self.count,
            "rows": self.rows, "pieces": self.pieces, "turns": self.turns, "agrees": self.agrees,
            "cells": cells,
        }  # fmt: skip


@dataclass(frozen=True)
class Read:
    """What a product reads of one factor. number: of the product in its warpgroup, from 0; places: see
    SharedTile."""

    factor: str
    number: int
    line: int
    places: dict[Place, int]


def find_shared_tiles(events: Events) -> list[SharedTile]:
    """The first box of each array and instruction of the block that is watched, and factors in no box."""
    table = events.rows
    moved: dict[int, list[tuple[int, int]]] = {}
    for event, at, address, _ in events.moved.tolist():
        moved.setdefault(event, []).append((at, address))
    reads = list(reads_of(table, moved, events.rank))
    boxes = list(boxes_of(events, table, moved, reads))
    inside = {address for box in boxes for address in box.places.values()}
    factors: dict[str, list[Read]] = {}
    for read in reads:
        if read.places and inside.isdisjoint(read.places.values()):
            factors.setdefault(read.factor, []).append(read)
    return boxes + [factor_of(events, name, found) for name, found in factors.items()]


def boxes_of(
    events: Events,
    table: Sequence[Mapping[str, int]],
    moved: Mapping[int, Sequence[tuple[int, int]]],
    reads: Sequence[Read],
) -> Iterator[SharedTile]:
    kinds = {Happening.BEGUN: "box", Happening.STORED: "store"}
    own = [
        (number, event)
        for number, event in enumerate(table)
        if event["what"] in kinds and event["row"] and event["place"] == events.rank
    ]
    counts = Counter((event["what"], event["buffer"]) for _, event in own)
    seen = set()
    for number, event in own:
        key = event["what"], event["buffer"]
        if key in seen or number not in moved:
            continue
        seen.add(key)
        places: dict[Place, int] = {}
        for at, address in moved[number]:
            row, byte = divmod(at, event["row"])
            places.setdefault((row, byte // PIECE), address // PIECE * PIECE)
        kind = kinds[Happening(event["what"])]
        readers, agrees = readers_of(places, reads) if kind == "box" else ({}, None)
        yield SharedTile(
            events.buffers.get(event["buffer"], "bytes"), kind, events.locations[event["line"]], counts[key],
            places, readers, agrees,
        )  # fmt: skip


def readers_of(places: Mapping[Place, int], reads: Sequence[Read]) -> tuple[dict[Place, int], bool | None]:
    """Who reads each cell first; and whether each product's rows and pieces are apart as the box's are."""
    cells = {address: cell for cell, address in places.items()}
    found: dict[Place, int] = {}
    agrees: bool | None = None
    for read in reads:
        apart = set()
        for (row, piece), address in read.places.items():
            if cell := cells.get(address):
                found.setdefault(cell, read.number)
                apart.add((cell[0] - row, cell[1] - piece))
        if apart:
            agrees = len(apart) == 1 and agrees is not False
    return found, agrees


def reads_of(
    table: Sequence[Mapping[str, int]], moved: Mapping[int, Sequence[tuple[int, int]]], rank: int
) -> Iterator[Read]:
    """What the first products of each warpgroup of a block read, up to the first group that is committed."""
    numbers: Counter[int] = Counter()
    committed = set()
    for number, event in enumerate(table):
        if event["actor"] != rank:
            continue
        warpgroup = event["warp"] // 4
        if event["what"] == Happening.COMMITTED and event["warp"] % 4 == 0:
            committed.add(warpgroup)
        if event["what"] != Happening.MULTIPLIED or number not in moved or warpgroup in committed:
            continue
        of_group, options = numbers[warpgroup], event["row"]
        numbers[warpgroup] += 1
        for name, right, across, rows in (
            ("A", False, options & ProductOption.LEFT_ACROSS, 64),
            ("B", True, options & ProductOption.RIGHT_ACROSS, event["bytes"]),
        ):
            pieces = [(at % RIGHT_FACTOR, to) for at, to in moved[number] if (at >= RIGHT_FACTOR) == right]
            places = {}
            for at, address in pieces:
                row, piece = divmod(at, rows // 8 if across else 2)
                cell = (row + DEPTH * of_group, piece) if across else (row, piece + 2 * of_group)
                places[cell] = address
            yield Read(name, of_group, event["line"], places)


def factor_of(events: Events, name: str, reads: Sequence[Read]) -> SharedTile:
    """What the products of a warpgroup read of a factor that threads wrote."""
    places: dict[Place, int] = {}
    readers: dict[Place, int] = {}
    for read in reads:
        for one, address in read.places.items():
            places.setdefault(one, address)
            readers.setdefault(one, read.number)
    return SharedTile(name, "factor", events.locations[reads[0].line], len(reads), places, readers)


LETTERS = "abcdefghijklmnopqrstuvwxyz"
SHARE = PIECE // WORD  # banks of a piece
LINES_SHOWN = 16


def caption(tile: SharedTile) -> str:
    """What it is, and how a wgmma meets the banks in it."""
    size = f"{tile.rows} rows of {tile.pieces * PIECE} bytes from byte {tile.start}"
    what = {
        "box": f"box of {tile.buffer}: {size}, one of {tile.count} that this block copies",
        "store": f"box of {tile.buffer} that is written back: {size}, one of {tile.count} of this block",
        "factor": f"factor {tile.buffer} of wgmma: {size}, read by {tile.count} products",
    }[tile.kind]
    banks = (
        f"8 rows of a piece fill all {BANKS} banks, so they have no conflicts"
        if tile.turns == 1
        else f"8 rows of a piece ask the same 4 banks {tile.turns} times"
    )
    read = {
        True: "; wgmma reads it as the box wrote it",
        False: "; wgmma READS OTHER ROWS OR PIECES",
        None: "",
    }
    return f"{what}; {banks}{read[tile.agrees]}"


LEGEND = (
    "r.p is piece p, of 16 bytes, of row r of a tile. A letter: the product of its warpgroup that reads it.",
    "Places are those that were executed; that a wgmma asks for 8 rows of a piece at once is a model.",
)


def lines_of(tile: SharedTile) -> list[tuple[int, dict[int, Place]]]:
    """The first lines of 128 bytes: their address, and the cell in each group of four banks."""
    found: dict[int, dict[int, Place]] = {}
    for one, address in tile.places.items():
        found.setdefault(address // LINE, {})[address % LINE // PIECE] = one
    return [(line * LINE, cells) for line, cells in sorted(found.items())[:LINES_SHOWN]]


def label(tile: SharedTile, one: Place) -> str:
    reader = tile.readers.get(one)
    letter = "" if reader is None else LETTERS[reader % len(LETTERS)]
    return f"{one[0]}.{one[1]}{letter}"


def tile_picture(tile: SharedTile) -> Picture:
    """A row for 128 bytes, a cell for each piece."""
    lines = lines_of(tile)
    rows = tuple(
        Row(
            f"byte {address}",
            tuple(piece_of(tile, group, one) for group, one in sorted(cells.items())),
            2 * (address == lines[-1][0]),
        )
        for address, cells in lines
    )
    return Picture(caption(tile), rows, SHARE)


def piece_of(tile: SharedTile, group: int, one: Place) -> Cell:
    name = label(tile, one)
    return Cell(group * SHARE, SHARE, name, name, tile.readers.get(one, 0) % HUES)
