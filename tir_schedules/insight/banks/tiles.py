"""Tiles of halves in shared memory, and the banks that the fragments of mma touch in them."""

from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.insight.banks.wavefronts import LANES, WORD, bank_of

HALF = 2  # bytes
PIECE = 16  # bytes: the widest access of a lane, and a row of an 8x8 matrix of halves
PIECE_HALVES = PIECE // HALF


@dataclass(frozen=True)
class Fragment:
    """An fp16 operand of mma.m16n8kK, in rows along K: A row-major, or B column-major, whose rows are the
    columns of the matrix (PTX ISA, matrix fragments for mma).

    corners: (row, first of 8 halves) of each of its 8x8 matrices; a lane holds one register of each.
    """

    name: str
    corners: tuple[tuple[int, int], ...]

    def place(self, register: int, lane: int) -> tuple[int, int]:
        """Row and first of the two halves that a lane holds in a register."""
        row, column = self.corners[register]
        return row + lane // 4, column + lane % 4 * 2


FRAGMENTS = {
    fragment.name: fragment
    for fragment in (
        Fragment("m16n8k8 A", ((0, 0), (8, 0))),
        Fragment("m16n8k8 B", ((0, 0),)),
        Fragment("m16n8k16 A", ((0, 0), (8, 0), (0, 8), (8, 8))),
        Fragment("m16n8k16 B", ((0, 0), (0, 8))),
    )
}


@dataclass(frozen=True)
class SharedTile:
    """Rows of halves in shared memory.

    row: halves, a multiple of 8; 32 or a multiple of 64 with a swizzle. pad: unused halves after each row.
    swizzled: an XOR swizzle moves the 16-byte pieces of a row.
    """

    row: int
    pad: int = 0
    swizzled: bool = False

    @property
    def pieces(self) -> int:
        """Pieces of 16 bytes in a row."""
        return self.row // PIECE_HALVES

    @property
    def pitch(self) -> int:
        """Bytes from row to row."""
        return (self.row + self.pad) * HALF

    def address(self, row: int, column: int) -> int:
        """Where a half lies, in bytes from the start of the tile."""
        piece, rest = divmod(column, PIECE_HALVES)
        if self.swizzled:
            piece ^= row // 2 % 4 if self.row == 32 else row % 8
        return row * self.pitch + piece * PIECE + rest * HALF


def register_addresses(tile: SharedTile, fragment: Fragment, register: int) -> list[int]:
    """What each lane asks for, 4 bytes, when a warp loads one register of a fragment at the tile's corner."""
    return [tile.address(*fragment.place(register, lane)) for lane in range(LANES)]


def bank_table(tile: SharedTile, fragment: Fragment, register: int = 0) -> list[tuple[tuple[int, ...], ...]]:
    """Article 004's table: by fours, the threads, the words they load (the article's total banks) and the
    banks of these (its inner banks)."""
    words = [address // WORD for address in register_addresses(tile, fragment, register)]
    fours = [tuple(range(first, first + 4)) for first in range(0, LANES, 4)]
    return [
        (four, tuple(words[lane] for lane in four), tuple(bank_of(words[lane]) for lane in four))
        for four in fours
    ]
