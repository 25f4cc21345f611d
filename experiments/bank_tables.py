"""Article 004 in numbers: which thread of a fragment touches which bank, without padding, with it, and with
rows permuted by xor.

    python experiments/bank_tables.py                      # a tile of 32 halves per row, padding 0 and 8
    python experiments/bank_tables.py --row 64 --pad 0 --pad 4 --pad 8 --pad 16

Nothing is executed: the tables follow from the PTX ISA's fragments of mma.m16n8k8 and m16n8k16.
tests/insight/test_banks.py holds them against what the kernels of the ladder do on the CPU machine;
`tir-schedules layout hgemm/wmma_padded A` draws these.
"""

from __future__ import annotations

import argparse
import sys
from itertools import product
from typing import Callable

from rich.markup import escape

from tir_schedules.console import print_error, print_line, print_table
from tir_schedules.errors import BadInput, TirSchedulesError
from tir_schedules.insight.banks.tiles import (
    FRAGMENTS,
    PIECE,
    PIECE_HALVES,
    Fragment,
    SharedTile,
    bank_table,
    register_addresses,
)
from tir_schedules.insight.banks.wavefronts import BANKS, LANES, LINE, WORD, Phase, cost, split
from tir_schedules.numerals import integer_for

SHAPES = ("m16n8k8", "m16n8k16")
PADS = (0, 8)
ROW = 32
"""Halves: of article 004's tile of A, 128x32."""


def main(arguments: list[str] | None = None) -> int:
    try:
        options = parse(arguments)
        print_tables(tiles(options.row, options.pad or PADS))
    except TirSchedulesError as error:
        print_error(str(error))
        return error.exit_code
    return 0


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Banks that fragments of mma touch in a tile of halves, and what loads and stores cost."
    )
    row_help = f"halves in a row of the tile (default {ROW})"
    parser.add_argument("--row", type=integer_for("--row", ROW), default=ROW, metavar="HALVES", help=row_help)
    pads = " and ".join(map(str, PADS))
    pad_help = f"halves after each row, repeatable (default {pads})"
    parser.add_argument(
        "--pad", type=integer_for("--pad", 8), action="append", metavar="HALVES", help=pad_help
    )
    return parser.parse_args(arguments)


def tiles(row: int, pads: list[int] | tuple[int, ...]) -> list[SharedTile]:
    """The tiles to compare: padded ones, then the permuted one. BadInput for rows and paddings that kernels
    cannot have."""
    if row not in (16, 32) and (row < 64 or row % 64):
        raise BadInput(f"--row is {row}; it can be 16, 32 or a multiple of 64 halves")
    for pad in pads:
        if pad < 0 or pad % 2:
            raise BadInput(
                f"--pad is {pad}; it must be an even number of halves, or 4-byte loads are misaligned"
            )
    return [SharedTile(row, pad) for pad in pads] + ([SharedTile(row, swizzled=True)] if row > 16 else [])


def name_of(tile: SharedTile) -> str:
    return "permuted by xor" if tile.swizzled else f"padding {tile.pad}" if tile.pad else "no padding"


def print_tables(compared: list[SharedTile]) -> None:
    for tile in compared:
        print_picture(tile)
        for shape in SHAPES:
            print_threads(tile, FRAGMENTS[f"{shape} A"])
    print_costs(compared)


def print_picture(tile: SharedTile) -> None:
    """Rows of 128 bytes of the tile; the pieces of the first 8x8 matrix, which are read at once, are in
    brackets."""
    print_line(
        f"Rows of {tile.row} halves, {name_of(tile)}: {tile.pitch} bytes from row to row,"
        f" {tile.pitch / WORD:g} banks"
    )
    if tile.pitch % PIECE:
        print_line(f"16-byte pieces do not fall on banks 0, 4, ...: a row is not a multiple of {PIECE} bytes")
        print_line()
        return
    lines = -(-8 * tile.pitch // LINE)
    cells = picture(tile, lines, lambda row, piece: row < 8 and piece == 0)
    banks = [f"{bank}~{bank + 3}" for bank in range(0, BANKS, PIECE // WORD)]
    print_table(banks, [list(map(escape, line)) for line in cells])
    padding = "; - is padding" if tile.pad else ""
    print_line(
        f"row.piece of 16 bytes; in brackets what ldmatrix reads at once: pieces 0 of rows 0 to 7{padding}"
    )
    print_line()


def print_threads(tile: SharedTile, fragment: Fragment) -> None:
    """The article's table, of the first register of a fragment; and the banks of its other registers."""
    tables = [bank_table(tile, fragment, register) for register in range(len(fragment.corners))]
    rows = [[*map(ends, row[0]), *(ends(other[2]) for other in row[1:])] for row in zip(*tables)]
    print_line(f"{fragment.name}, {name_of(tile)}: the banks of what a thread's registers hold")
    print_table(
        ("thread idx", "total bank", "inner bank", *(f"register {k}" for k in range(1, len(tables)))), rows
    )
    print_line()


def ends(values: tuple[int, ...]) -> str:
    """As the article writes it: "0~3"."""
    return f"{values[0]}~{values[-1]}"


def print_costs(compared: list[SharedTile]) -> None:
    """Wavefronts of each way to load a fragment, and of filling the tile."""
    rows = []
    for fragment in FRAGMENTS.values():
        ideal = str(len(fragment.corners))
        rows.append(
            [f"{fragment.name} by 32-bit loads", *(summed(tile, fragment) for tile in compared), ideal]
        )
        rows.append(
            [
                f"{fragment.name} by ldmatrix",
                *(cell(tile, matrix_phases, fragment) for tile in compared),
                ideal,
            ]
        )
    rows.append(["16-byte store of the tile", *(cell(tile, store_phases) for tile in compared), "4"])
    print_table(("wavefronts", *map(name_of, compared), "ideal"), rows)
    if any(tile.pitch % PIECE for tile in compared):
        print_line(f"-: misaligned, rows are not a multiple of {PIECE_HALVES} halves ({PIECE} bytes) apart")


def summed(tile: SharedTile, fragment: Fragment) -> str:
    """Of all registers' loads together."""
    return str(sum(cost(load_phases(tile, fragment, register)) for register in range(len(fragment.corners))))


def cell(tile: SharedTile, phases, *arguments: Fragment) -> str:
    """Of an access in pieces of 16 bytes, which need rows that start on 16 bytes."""
    return "-" if tile.pitch % PIECE else str(cost(phases(tile, *arguments)))


def matrix_addresses(tile: SharedTile, fragment: Fragment) -> list[int]:
    """The rows that ldmatrix reads for a fragment: lane l names row l % 8 of matrix l / 8."""
    return [tile.address(row + r, column) for row, column in fragment.corners for r in range(8)]


def store_addresses(tile: SharedTile) -> list[int]:
    """Where a warp stores the first rows of the tile, 16 bytes per lane, piece after piece."""
    return [tile.address(lane // tile.pieces, lane % tile.pieces * PIECE_HALVES) for lane in range(LANES)]


def load_phases(tile: SharedTile, fragment: Fragment, register: int) -> tuple[Phase, ...]:
    return split(register_addresses(tile, fragment, register), WORD, pairing=True)


def matrix_phases(tile: SharedTile, fragment: Fragment) -> tuple[Phase, ...]:
    addresses = matrix_addresses(tile, fragment)
    return split(addresses, PIECE, range(len(addresses)))


def store_phases(tile: SharedTile) -> tuple[Phase, ...]:
    return split(store_addresses(tile), PIECE)


def picture(
    tile: SharedTile, lines: int, marked: Callable[[int, int], bool] = lambda row, piece: False
) -> list[list[str]]:
    """The first lines of 128 bytes, a cell for each 16 bytes: "row.piece", in brackets where marked, or "-"
    for padding."""
    places = product(range(lines * LINE // tile.pitch + 1), range(tile.pieces))
    at = {tile.address(row, piece * PIECE_HALVES): (row, piece) for row, piece in places}
    cells = []
    for address in range(0, lines * LINE, PIECE):
        row, piece = at.get(address, (-1, -1))
        cells.append("-" if row < 0 else f"[{row}.{piece}]" if marked(row, piece) else f"{row}.{piece}")
    across = LINE // PIECE
    return [cells[first : first + across] for first in range(0, len(cells), across)]


if __name__ == "__main__":
    sys.exit(main())
