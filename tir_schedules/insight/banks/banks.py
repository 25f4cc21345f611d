"""Shared memory as 32 banks of 4-byte words: how a request is served in wavefronts, and which banks the
fragments of mma touch.

A wavefront serves one word per bank, to any number of lanes. A request is split into phases first: the whole
warp up to 4 bytes per lane, half warps for 8, quarter warps for 16; loads whose lanes ask pairwise for the
same address take half as many. The CPU machine counts by the same rules (machines/cpu/core/counters.cpp);
here they say which lane is served when.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Callable, Mapping, Sequence

BANKS = 32
WORD = 4  # bytes
LANES = 32
HALF = 2  # bytes
PIECE = 16  # bytes: the widest access of a lane, and a row of an 8x8 matrix of halves
PIECE_HALVES = PIECE // HALF
LINE = BANKS * WORD  # bytes in which every bank has one word
PAIRING = ("shared_load",)
"""Classes of access whose lanes may pair."""


@dataclass(frozen=True)
class Served:
    """A word that a bank gives in one wavefront, and the lanes that asked for it. word: byte address / 4."""

    word: int
    lanes: tuple[int, ...]


Wavefront = Mapping[int, Served]
"""Bank -> what it serves."""


@dataclass(frozen=True)
class Phase:
    """Lanes that are served together, in one wavefront if no bank is asked for two words."""

    lanes: tuple[int, ...]
    wavefronts: tuple[Wavefront, ...]


def bank_of(word: int) -> int:
    return word % BANKS


def words_of(address: int, width: int) -> range:
    """The words that `width` bytes at an address lie in."""
    return range(address // WORD, address // WORD + max(1, width // WORD))


def split(
    addresses: Sequence[int], width: int, lanes: Sequence[int] = range(LANES), pairing: bool = False
) -> tuple[Phase, ...]:
    """The phases of a request that has any lanes, and their wavefronts.

    addresses: in bytes, of all 32 lanes. width: bytes per lane. lanes: those that take part. pairing: whether
    it is a load.
    """
    together = LANES // max(1, width // WORD)
    if pairing and width > WORD and any(lanes_pair(addresses, lanes, distance) for distance in (1, 2)):
        together *= 2
    groups = [tuple(lane for lane in lanes if lane // together == k) for k in range(LANES // together)]
    return tuple(Phase(group, wavefronts(addresses, width, group)) for group in groups if group)


def lanes_pair(addresses: Sequence[int], lanes: Sequence[int], distance: int) -> bool:
    """Whether every lane asks for the address of the one at lane ^ distance, where that one takes part."""
    return all(addresses[lane] == addresses[lane ^ distance] for lane in lanes if lane ^ distance in lanes)


def wavefronts(addresses: Sequence[int], width: int, lanes: Sequence[int]) -> tuple[Wavefront, ...]:
    """A phase: a bank gives its words in the order in which lanes ask for them."""
    asked: dict[int, dict[int, list[int]]] = {}
    for lane in lanes:
        for word in words_of(addresses[lane], width):
            asked.setdefault(bank_of(word), {}).setdefault(word, []).append(lane)
    turns = max(len(words) for words in asked.values())
    found: list[dict[int, Served]] = [{} for _ in range(turns)]
    for bank, words in sorted(asked.items()):
        for turn, (word, served) in enumerate(words.items()):
            found[turn][bank] = Served(word, tuple(served))
    return tuple(found)


def cost(phases: Sequence[Phase]) -> int:
    """Wavefronts of a request."""
    return sum(len(phase.wavefronts) for phase in phases)


# ---- fragments of mma, PTX ISA "Matrix fragments for mma"
# ------------------------------------------------------------
@dataclass(frozen=True)
class Fragment:
    """An operand of mma.m16n8kK of halves, in rows along K: A row-major, or B column-major, whose rows are
    the columns of the matrix.

    corners: (row, first of 8 halves) of each 8x8 matrix it consists of, one register of a lane each.
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


# ---- a tile of halves in shared memory
# ---------------------------------------------------------------------------------
@dataclass(frozen=True)
class Tile:
    """Rows of halves, each followed by `pad` halves that hold nothing; permuted: 16-byte pieces of a row
    swapped by xor instead.

    row: halves, a multiple of 8, and for a permuted tile 32 or a multiple of 64.
    """

    row: int
    pad: int = 0
    permuted: bool = False

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
        if self.permuted:
            piece ^= row // 2 % 4 if self.row == 32 else row % 8
        return row * self.pitch + piece * PIECE + rest * HALF


def register_addresses(tile: Tile, fragment: Fragment, register: int) -> list[int]:
    """What the lanes of a warp ask for when they load one register of a fragment at the tile's corner, 4
    bytes each."""
    return [tile.address(*fragment.place(register, lane)) for lane in range(LANES)]


def matrix_addresses(tile: Tile, fragment: Fragment) -> list[int]:
    """The rows that ldmatrix reads for the same: lane l names row l % 8 of matrix l / 8."""
    return [tile.address(row + r, column) for row, column in fragment.corners for r in range(8)]


def store_addresses(tile: Tile) -> list[int]:
    """Where a warp stores the first rows of the tile, 16 bytes per lane, piece after piece."""
    return [tile.address(lane // tile.pieces, lane % tile.pieces * PIECE_HALVES) for lane in range(LANES)]


def load_phases(tile: Tile, fragment: Fragment, register: int) -> tuple[Phase, ...]:
    return split(register_addresses(tile, fragment, register), WORD, pairing=True)


def matrix_phases(tile: Tile, fragment: Fragment) -> tuple[Phase, ...]:
    addresses = matrix_addresses(tile, fragment)
    return split(addresses, PIECE, range(len(addresses)))


def store_phases(tile: Tile) -> tuple[Phase, ...]:
    return split(store_addresses(tile), PIECE)


def bank_table(tile: Tile, fragment: Fragment, register: int = 0) -> list[tuple[tuple[int, ...], ...]]:
    """Article 004's table: each four threads, the words they load and the banks these lie in (what it calls
    total and inner banks)."""
    words = [address // WORD for address in register_addresses(tile, fragment, register)]
    fours = [tuple(range(first, first + 4)) for first in range(0, LANES, 4)]
    return [
        (four, tuple(words[lane] for lane in four), tuple(bank_of(words[lane]) for lane in four))
        for four in fours
    ]


def picture(
    tile: Tile, lines: int, marked: Callable[[int, int], bool] = lambda row, piece: False
) -> list[list[str]]:
    """What lies in each 16 bytes of the first lines of 128 bytes: "row.piece", in brackets where marked, or
    "-" for padding."""
    places = product(range(lines * LINE // tile.pitch + 1), range(tile.pieces))
    at = {tile.address(row, piece * PIECE_HALVES): (row, piece) for row, piece in places}
    cells = []
    for address in range(0, lines * LINE, PIECE):
        row, piece = at.get(address, (-1, -1))
        cells.append("-" if row < 0 else f"[{row}.{piece}]" if marked(row, piece) else f"{row}.{piece}")
    across = LINE // PIECE
    return [cells[first : first + across] for first in range(0, len(cells), across)]
