"""Elements of an array as rows, columns and pieces: what a picture draws, and the sentence under it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterator, NamedTuple, Sequence

import numpy as np

from tir_schedules.insight.metrics.formats import plural
from tir_schedules.insight.threads.mapping import ThreadMap

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
        told.append(f"Lane {lane} of it {found.access}s {place_of(own)}{at_a_time(own)}.")
    else:
        told.append(f"Lane {lane} of it {found.access}s none of them.")
    return told


def of_block(found: ThreadMap) -> str:
    grid = " x ".join(map(str, found.kernel.grid))
    size = plural(found.size, "element") if found.flat else f"{found.shape[0]} x {found.shape[1]}"
    if found.block is not None:
        who = f"Block {','.join(map(str, found.block))} of {grid} {found.access}s"
        return f"{who} {place_of(found)} of {found.array} ({size}){how_often(found)}."
    blocks = np.unique(found.accesses["block"])
    first = int(blocks[0])
    own = found.among(found.accesses["block"] == first)
    return (
        f"{plural(len(blocks), 'block')} of {grid} {found.access} elements of {found.array}"
        f" ({size}){how_often(found)}; block {found.block_name(first)} {found.access}s {place_of(own)}."
    )


def place_of(found: ThreadMap) -> str:
    """Which elements: "32 x 32 elements: rows 0-31, columns 0-31"."""
    elements = np.unique(found.accesses["element"])
    if found.flat:
        runs = runs_of(elements)
        return f"{plural(len(elements), 'element')}{pieces(runs, 'from element {}')}"
    rows, columns = np.divmod(elements, found.shape[1])
    own_rows, own_columns = np.unique(rows), np.unique(columns)
    if len(elements) != len(own_rows) * len(own_columns):
        return (
            f"{plural(len(elements), 'element')} of rows {span(own_rows[0], own_rows[-1])}, columns"
            f" {span(own_columns[0], own_columns[-1])}"
        )
    down, across = runs_of(own_rows), runs_of(own_columns)
    size = f"{len(own_rows)} x {len(own_columns)} elements" if len(elements) > 1 else "1 element"
    if len(down) == len(across) == 1:
        return f"{size}: {rows_text(own_rows)}, {columns_text(own_columns)}"
    alike = {length for _, length in down}, {length for _, length in across}
    if len(alike[0]) == len(alike[1]) == 1:
        shape = f"{down[0][1]} x {across[0][1]}"
        return (
            f"{size} in {len(down) * len(across)} pieces of {shape}, the first at row {own_rows[0]}, column"
            f" {own_columns[0]}"
        )
    return f"{size} of {rows_text(own_rows)}, {columns_text(own_columns)}"


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


def pieces(runs: Sequence[tuple[int, int]], start: str) -> str:
    """Of an array of one dimension."""
    first, length = runs[0]
    if len(runs) == 1:
        return f": {span(first, first + length - 1)}"
    alike = len({length for _, length in runs}) == 1
    each = f" of {length}" if alike else ""
    apart = {b[0] - a[0] for a, b in zip(runs, runs[1:])}
    steps = f", {apart.pop()} apart" if len(apart) == 1 else ""
    return f" in {len(runs)} pieces{each}{steps}, {start.format(first)}"


def how_often(found: ThreadMap) -> str:
    """How many threads access an element, and how often."""
    accesses = found.accesses
    _, times = np.unique(accesses["element"], return_counts=True)
    thread = (accesses["block"].astype(np.int64) << 16) + accesses["warp"] * 32 + accesses["lane"]
    both = np.stack([accesses["element"].astype(np.int64), thread], 1)
    pairs, of_thread = np.unique(both, axis=0, return_counts=True)
    _, threads = np.unique(pairs[:, 0], return_counts=True)
    if (times == 1).all():
        return ", each once"
    if (threads == 1).all():
        most = plural_times(int(times.max()))
        return f", each {most} by the same thread" if times.min() == times.max() else f", up to {most}"
    several = f"{threads.max()} threads"
    if threads.min() != threads.max():
        return f", each by {threads.min()} to {several}"
    if times.max() == threads.max():
        return f", each by {several}"
    most = "" if of_thread.min() == of_thread.max() else "up to "
    return f", each by {several}, {most}{plural_times(int(of_thread.max()))} each"


def plural_times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def at_a_time(own: ThreadMap) -> str:
    """Of a lane: ", 4 elements (16 bytes) at a time, in 8 steps"."""
    _, sizes = np.unique(own.accesses["step"], return_counts=True)
    each = int(sizes[0])
    steps = f"in {plural(len(sizes), 'step')}"
    if (sizes != each).any():
        return f", {steps}"
    if len(sizes) == each == 1:
        return ""
    bytes_each = f" ({each * own.itemsize} bytes)" if each > 1 else ""
    return f", {plural(each, 'element')}{bytes_each} at a time, {steps}"
