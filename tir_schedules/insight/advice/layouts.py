"""Other layouts of an array in shared memory: rows further apart, or swizzled; and what the recorded accesses
would cost in them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Iterator, Sequence

import numpy as np

from tir_schedules.insight.advice.arrays import SharedArray
from tir_schedules.insight.advice.subject import active, costs
from tir_schedules.insight.banks.wavefronts import LINE
from tir_schedules.machines.cpu.abi import Counting

PADDINGS = (0, 1, 2, 4, 8)
"""Of a row, in units of what its accesses must be aligned to."""

STRIDES = 6
"""Distances of lanes that are tried as rows, the commonest first."""

ROWS_OF_MATRICES = [*range(8), *range(16, 24)]
"""Lanes that name the rows of a fragment, one below the other: of matrices as ldmatrix reads them."""

ROWS_OF_LANES = [*range(0, 32, 4)]
"""The same of accesses in which each lane has its own element."""

SHIFTS = (1, 2, 4, 8)
"""Neighbouring rows that are swizzled alike."""


@dataclass(frozen=True)
class Layout:
    """row, pitch: bytes of a row as it is, and from row to row. piece: bytes that an XOR swizzle moves
    together, 0 for none; alike: neighbouring rows that it treats alike."""

    row: int
    pitch: int
    piece: int = 0
    alike: int = 1

    @property
    def pieces(self) -> int:
        """Pieces of a row that change places: a power of two."""
        return 1 << (self.row // self.piece).bit_length() - 1

    def places(self, offsets: np.ndarray) -> np.ndarray:
        """Where bytes come to lie. offsets: from the start of the array, as it is."""
        rows, columns = offsets // self.row, offsets % self.row
        if self.piece:
            columns = columns ^ rows // self.alike % self.pieces * self.piece
        return rows * self.pitch + columns

    def more(self, size: int) -> int:
        """Bytes of shared memory beyond the size that the array has."""
        return -(-size // self.row) * (self.pitch - self.row)


def replayed(table: np.ndarray, array: SharedArray, layout: Layout) -> np.ndarray:
    """Wavefronts of each record that touches the array. table: those records, which stay as they are."""
    moved = table.copy()
    offsets = np.where(active(table["mask"]), table["address"].astype(np.int64) - array.start, 0)
    places = layout.places(offsets) + array.start
    moved["address"] = np.where(active(table["mask"]), places, 0)
    return costs(moved)


def keeps_rows(table: np.ndarray, array: SharedArray, layout: Layout) -> bool:
    """Whether the rows of a fragment, which one wmma instruction takes at one distance, still are at one.
    table: the accesses of such instructions."""
    offsets = table["address"].astype(np.int64) - array.start
    moved, matrices = layout.places(offsets), table["counting"] == Counting.ROWS_COUNT
    for part, rows in ((matrices, ROWS_OF_MATRICES), (~matrices, ROWS_OF_LANES)):
        steps = np.diff(moved[part][:, rows], axis=1)
        if (steps != steps[:, :1]).any():
            return False
    return True


def paddings(array: SharedArray, table: np.ndarray, rows: Sequence[int]) -> Iterator[Layout]:
    """Rows further apart, or, where the end of each is never touched, nearer. rows: bytes that are one."""
    for row in rows:
        used = used_bytes(array, table, row)
        for start in {row, used}:
            for padding in PADDINGS:
                pitch = start + padding * array.unit
                if pitch != row and pitch - row <= LINE:
                    yield Layout(row, pitch)


def swizzles(array: SharedArray, table: np.ndarray, rows: Sequence[int]) -> Iterator[Layout]:
    """Rows of a power of two of bytes whose pieces change places."""
    for row in rows:
        if row & (row - 1) or row < 2 * array.unit:
            continue
        for alike in SHIFTS:
            yield Layout(row, row, array.unit, alike)


def declared_rows(array: SharedArray) -> list[int]:
    row = array.declaration.row(array.size) if array.declaration else None
    return [row] if row and row % array.unit == 0 else []


def possible_rows(array: SharedArray, table: np.ndarray) -> list[int]:
    """Bytes that may be a row: powers of two, and distances between neighbouring lanes."""
    powers = [1 << k for k in range(3, 13)]
    both = active(table["mask"]) & np.roll(active(table["mask"]), -1, 1)
    both[:, -1] = False
    address = table["address"].astype(np.int64)
    apart = np.abs(np.roll(address, -1, 1) - address)[both]
    seen = Counter(apart.tolist())
    strides = [stride for stride, _ in seen.most_common() if stride > array.unit][:STRIDES]
    candidates = dict.fromkeys([*strides, *powers])
    return [row for row in candidates if row % array.unit == 0 and array.unit <= row <= array.size // 2]


def used_bytes(array: SharedArray, table: np.ndarray, row: int) -> int:
    """Bytes of a row up to the last that is touched, in whole units."""
    lanes = active(table["mask"])
    ends = (table["address"].astype(np.int64) - array.start) % row + table["width"].astype(np.int64)[:, None]
    last = min(int(ends[lanes].max()), row)
    return -(-last // array.unit) * array.unit
