"""Elements of an array as rows, columns and pieces: what a picture draws, and the sentence under it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterator, NamedTuple, Sequence

import numpy as np

from tir_schedules.insight.metrics.formats import plural
from tir_schedules.insight.threads.mapping import ThreadMap, by_extents

NOBODY, SEVERAL = -1, -2
"""In place of a key: of elements that no thread accesses, and of those whose threads have different keys."""

GAP = 16
"""Rows that no thread accesses, from which on they are left out."""


@dataclass(frozen=True)
class Grid:
    """Rows of an array that are drawn, and a key for each element. rows: their numbers, rising. column: the
    first one that is drawn. keys: int32, as many rows."""

    rows: np.ndarray
    column: int
    keys: np.ndarray

    def first(self, rows: int, columns: int) -> Grid:
        """So many of its rows and columns."""
        return Grid(self.rows[:rows], self.column, self.keys[:rows, :columns])

    def joined(self, other: Grid) -> Grid:
        """With a key for each pair of keys."""
        return Grid(self.rows, self.column, self.keys.astype(np.int64) * (1 << 24) + other.keys)


def grid_of(found: ThreadMap, by: str) -> Grid:
    """What is accessed, and rows and columns between."""
    rows, columns = np.divmod(found.accesses["element"], found.shape[1])
    kept = filled(np.unique(rows))
    first, last = (0, found.shape[1] - 1) if found.flat else (int(columns.min()), int(columns.max()))
    width = last - first + 1
    cell = np.searchsorted(kept, rows) * width + columns - first
    keys = found.keys(by)
    low = np.full(len(kept) * width, np.iinfo(np.int32).max, np.int32)
    high = np.full(len(kept) * width, NOBODY, np.int32)
    np.minimum.at(low, cell, keys)
    np.maximum.at(high, cell, keys)
    merged = np.where((low == high) | (high == NOBODY), high, SEVERAL)
    return Grid(kept, first, merged.reshape(len(kept), width))


def filled(rows: np.ndarray) -> np.ndarray:
    """Rows with those between that are few."""
    gaps = np.diff(rows)
    few = np.flatnonzero((gaps > 1) & (gaps <= GAP))
    between = [np.arange(int(rows[at]) + 1, int(rows[at + 1])) for at in few]
    return np.unique(np.concatenate([rows, *between])) if between else rows


class Rectangle(NamedTuple):
    """Neighbouring elements with the same key: places in a Grid, ends excluded."""

    top: int
    bottom: int
    left: int
    right: int
    key: int

    def key_in(self, grid: Grid) -> int:
        """What its elements have in another Grid; SEVERAL where they differ."""
        keys = grid.keys[self.top : self.bottom, self.left : self.right]
        return int(keys[0, 0]) if (keys == keys[0, 0]).all() else SEVERAL


def rectangles_of(grid: Grid) -> Iterator[Rectangle]:
    """All elements but those of NOBODY: runs in a row, joined with the same runs in the rows below."""
    open_runs: dict[tuple[int, int, int], int] = {}
    for at in range(len(grid.rows) + 1):
        follows = 0 < at < len(grid.rows) and grid.rows[at] == grid.rows[at - 1] + 1
        runs = list(runs_in(grid.keys[at])) if at < len(grid.rows) else []
        still = {run: open_runs[run] for run in runs if follows and run in open_runs}
        for (left, right, key), top in open_runs.items():
            if (left, right, key) not in still:
                yield Rectangle(top, at, left, right, key)
        open_runs = {run: still.get(run, at) for run in runs}


def runs_in(keys: np.ndarray) -> Iterator[tuple[int, int, int]]:
    """Where each run of equal keys begins and ends, and its key."""
    edges = [0, *(np.flatnonzero(np.diff(keys)) + 1).tolist(), len(keys)]
    for left, right in zip(edges, edges[1:]):
        key = int(keys[left])
        if key != NOBODY:
            yield left, right, key


# ---- sentences ---
def summary(found: ThreadMap, warp: int, lane: int) -> list[str]:
    """What the block does, a warp of it, and a lane of that, as far as these access the array."""
    told = [of_block(found)]
    mine = found.accesses["warp"] == warp
    if found.block is None:
        return told
    if not mine.any():
        return [*told, f"Warp {warp} {found.access}s none of them."]
    ours = found.among(mine)
    told.append(f"Warp {warp} {found.access}s {place_of(ours)}{how_often(ours)}.")
    own = ours.among(ours.accesses["lane"] == lane)
    if len(own.accesses):
        told.append(f"Lane {lane} of warp {warp} {found.access}s {place_of(own)}{in_steps(own)}.")
    else:
        told.append(f"Lane {lane} of warp {warp} {found.access}s none of them.")
    return told


def of_block(found: ThreadMap) -> str:
    grid = " x ".join(map(str, found.kernel.grid))
    array = f" of {found.array} ({by_extents(found.extents)})"
    if found.block is not None:
        who = f"Block {','.join(map(str, found.block))} (grid {grid}) {found.access}s"
        return f"{who} {place_of(found, array)}{how_often(found)}."
    blocks = np.unique(found.accesses["block"])
    first = int(blocks[0])
    own = found.among(found.accesses["block"] == first)
    several = len(blocks) > 1
    return (
        f"{plural(len(blocks), 'block')} (grid {grid}) {found.access}{'' if several else 's'} elements"
        f"{array}{how_often(found)}; block {found.block_name(first)} {found.access}s {place_of(own)}."
    )


def place_of(found: ThreadMap, of: str = "") -> str:
    """Which elements: "32 x 32 elements: rows 0-31, columns 0-31". of: " of C (64 x 64)"."""
    elements = np.unique(found.accesses["element"])
    if found.flat:
        if len(elements) == 1:
            return f"element {elements[0]}{of}"
        return f"{plural(len(elements), 'element')}{of}{pieces(runs_of(elements))}"
    rows, columns = np.divmod(elements, found.shape[1])
    own_rows, own_columns = np.unique(rows), np.unique(columns)
    if len(elements) == 1:
        return f"one element{of}: row {rows[0]}, column {columns[0]}"
    places = f"{rows_text(own_rows)}, {columns_text(own_columns)}"
    if len(elements) != len(own_rows) * len(own_columns):
        return f"{plural(len(elements), 'element')}{of} within {places}"
    down, across = runs_of(own_rows), runs_of(own_columns)
    size = f"{len(own_rows)} x {len(own_columns)} elements{of}"
    if len(down) == len(across) == 1:
        return f"{size}: {places}"
    alike = {length for _, length in down}, {length for _, length in across}
    if len(alike[0]) == len(alike[1]) == 1:
        shape = f"{down[0][1]} x {across[0][1]}"
        many = len(down) * len(across)
        return f"{size} in {many} pieces of {shape}, the first at row {own_rows[0]}, column {own_columns[0]}"
    return f"{size} within {places}"


def rows_text(rows: np.ndarray) -> str:
    return f"row{'s' * (len(rows) > 1)} {span(rows[0], rows[-1])}"


def columns_text(columns: np.ndarray) -> str:
    return f"column{'s' * (len(columns) > 1)} {span(columns[0], columns[-1])}"


def span(first: int, last: int) -> str:
    return f"{first}" if first == last else f"{first}-{last}"


def runs_of(sorted_values: np.ndarray) -> list[tuple[int, int]]:
    """First value and length of each run of neighbours."""
    starts = np.flatnonzero(np.diff(sorted_values, prepend=sorted_values[0] - 2) != 1)
    lengths = np.diff(np.append(starts, len(sorted_values)))
    return [(int(sorted_values[at]), int(length)) for at, length in zip(starts, lengths)]


def pieces(runs: Sequence[tuple[int, int]]) -> str:
    """The pieces of an array of one dimension."""
    first, length = runs[0]
    if len(runs) == 1:
        return f": {span(first, first + length - 1)}"
    lengths = {length for _, length in runs}
    each = "" if len(lengths) > 1 else f" of {length}" if length > 1 else " of one element"
    apart = {b[0] - a[0] for a, b in zip(runs, runs[1:])}
    steps = f", {apart.pop()} apart" if len(apart) == 1 else ""
    return f" in {len(runs)} pieces{each}{steps}, the first at element {first}"


def how_often(found: ThreadMap) -> str:
    """How many threads access an element, and how often."""
    accesses = found.accesses
    _, times = np.unique(accesses["element"], return_counts=True)
    thread = (accesses["block"].astype(np.int64) << 16) + accesses["warp"] * 32 + accesses["lane"]
    both = np.stack([accesses["element"].astype(np.int64), thread], 1)
    pairs, of_thread = np.unique(both, axis=0, return_counts=True)
    _, threads = np.unique(pairs[:, 0], return_counts=True)
    each = ", each" if len(times) > 1 else ","
    if (times == 1).all():
        return f"{each} once" if len(times) > 1 else ""
    if (threads == 1).all():
        most = plural_times(int(times.max()))
        return f"{each} {most} by the same thread" if times.min() == times.max() else f"{each} up to {most}"
    several = f"{threads.max()} threads"
    if threads.min() != threads.max():
        return f"{each} by {threads.min()} to {several}"
    if times.max() == threads.max():
        return f"{each} by {several}"
    most = "" if of_thread.min() == of_thread.max() else "up to "
    return f"{each} by {several}, by each of them {most}{plural_times(int(of_thread.max()))}"


def plural_times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def in_steps(own: ThreadMap) -> str:
    """The steps of a lane: ", in 8 steps of 4 elements (16 bytes)"."""
    _, sizes = np.unique(own.accesses["step"], return_counts=True)
    each, steps = int(sizes[0]), len(sizes)
    if (sizes != each).any() or len(np.unique(own.accesses["element"])) == 1:
        return f", in {steps} steps" if steps > 1 else ""
    bytes_each = f"({each * own.itemsize} bytes)"
    if steps == 1:
        return f", in one step {bytes_each}"
    return f", in {steps} steps of {plural(each, 'element')} {bytes_each}"
