"""Another numbering of a block's threads: what all its accesses would cost if lanes were neighbours that are
not, by regrouping the recorded accesses."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from tir_schedules.insight.advice.subject import Recording, Subject, active, costs

OF_WARPS = re.compile(
    r"^\s*(?:@!?%\w+\s+)?(?:shfl|vote|match|redux|activemask|elect|ldmatrix|stmatrix|mma|wmma|wgmma|movmatrix"
    r"|bar\.warp)\b|%(?:laneid|warpid|lanemask)",
    re.M,
)
"""PTX for which it matters which threads are a warp."""


@dataclass(frozen=True)
class Order:
    """row: threads that are neighbours now and would be in different columns. table, cost: the accesses as
    regrouped, and what each costs."""

    row: int
    table: np.ndarray
    cost: np.ndarray

    def of(self, chosen: np.ndarray) -> int:
        """What the accesses cost whose counters are chosen."""
        return int(self.cost[np.isin(self.table["counter"], chosen)].sum())


def best_order(subject: Subject, recording: Recording, counters: np.ndarray) -> Order | None:
    """The numbering in which accesses cost least. counters: of those that count. None where warps matter to
    the kernel, or its threads do not all make as many accesses."""
    kernel = subject.binary.kernel
    if OF_WARPS.search(subject.binary.ptx):
        return None
    grouped = by_thread(recording, kernel.threads)
    if grouped is None:
        return None
    table, shape = grouped
    found: Order | None = None
    for row in candidates(kernel.block):
        columns = kernel.threads // row
        place = np.arange(kernel.threads)
        order = place % columns * row + place // columns
        moved = regrouped(table, shape, order)
        one = Order(row, moved, costs(moved))
        if found is None or one.of(counters) < found.of(counters):
            found = one
    return found


def candidates(block: tuple[int, int, int]) -> list[int]:
    x, y, z = block
    if z > 1:
        return []
    if y > 1:
        return [x] if x > 1 else []
    return [1 << k for k in range(1, 10) if x % (1 << k) == 0 and x >> k > 1]


def by_thread(recording: Recording, threads: int) -> tuple[np.ndarray, list[tuple[int, int]]] | None:
    """Records sorted by counter, then by how often the warp executed it before, then by warp; and for each
    counter, where they begin and how many each warp has. None where warps differ in that."""
    table, warps = recording.records.table, threads // 32
    if threads % 32 or warps < 2 or not len(table):
        return None
    chosen, shape = [], []
    for counter in dict.fromkeys(table["counter"].tolist()):
        mine = np.flatnonzero(table["counter"] == counter)
        by_warp = [mine[table["warp"][mine] == warp] for warp in range(warps)]
        count = len(by_warp[0])
        times = table["times"][by_warp[0]]
        if any(len(one) != count or (table["times"][one] != times).any() for one in by_warp):
            return None
        shape.append((len(chosen) and sum(map(len, chosen)), count))
        chosen.append(np.stack(by_warp, 1).ravel())
    return table[np.concatenate(chosen)], shape


def regrouped(table: np.ndarray, shape: list[tuple[int, int]], order: np.ndarray) -> np.ndarray:
    """The same accesses with threads in another order. order: of each place, the thread that comes there."""
    moved, warps = table.copy(), len(order) // 32
    for first, count in shape:
        part = slice(first, first + count * warps)
        for name in ("address", "source"):
            values = table[name][part].reshape(count, warps * 32)[:, order]
            moved[name][part] = values.reshape(count * warps, 32)
        for name in ("mask", "reads"):
            lanes = active(table[name][part]).reshape(count, warps * 32)[:, order]
            bits = lanes.reshape(count * warps, 32).astype(np.uint32) << np.arange(32, dtype=np.uint32)
            moved[name][part] = bits.sum(1, dtype=np.uint32)
    empty = moved["mask"] == 0
    moved["times"][empty] = 0
    return moved
