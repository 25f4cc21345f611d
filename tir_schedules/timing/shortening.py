"""Paths without most turns of their long loop, where all turns are alike.

A turn is what a warp executes between two visits of one instruction. Turns are alike when they execute the
same instructions, a barrier or a wait for an mbarrier among them, and their accesses cost the same number of
wavefronts and touch as many lines. Without a barrier the warps drift apart, and no turn is like the next in
time: nothing is left out. A path is shortened where every warp of the block has as many such turns in a row,
and more than are kept: the first KEPT and the last LAST of them. Two lengths are simulated, and the turns
between them give the cycles of one.

Where warps meet at mbarriers, some copy and others compute, each in a loop of its own, which ptxas may have
unrolled. Then as many waits are left out of each, in whole turns of all, and whole rounds of the stages, as
many as there are mbarriers that copies tell. The phases of later waits are counted without those. Warps
without a loop stay as they are.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from math import lcm

import numpy as np

from tir_schedules.machines.cpu.abi import Happening
from tir_schedules.timing.paths import BlockPaths, WarpPath

KEPT = (4, 12)
"""Turns that stay at the beginning of either length; LAST stay at the end. Eight turns more see as many parts
of what L2 fetches at once, also where a turn reads an eighth of it."""

LAST = 2
LEAST = 24
"""Turns in a row below which a loop is not looked at."""


@dataclass(frozen=True)
class Shortened:
    """paths: with fewer turns, and with `between` more; or as they were alone. dropped: turns that even the
    longer lacks."""

    paths: tuple[BlockPaths, ...]
    between: int
    dropped: int


@dataclass(frozen=True)
class Turns:
    """Alike turns of a path: where each begins, and where the last ends."""

    begins: np.ndarray
    end: int


def shortened(paths: BlockPaths) -> Shortened:
    found = [turns_of(path, paths) for path in paths.warps]
    if any(each is not None and waits_of(path, paths, each) for path, each in zip(paths.warps, found)):
        return shortened_by_waits(paths, found)
    alike = [each for each in found if each is not None]
    counts = {len(each.begins) for each in alike}
    if len(alike) < len(found) or len(counts) != 1 or min(counts) <= KEPT[1] + LAST:
        return Shortened((paths,), 0, 0)
    count = counts.pop()
    kept = tuple(
        replace(paths, warps=tuple(cut(path, turns, first) for path, turns in zip(paths.warps, alike)))
        for first in KEPT
    )
    return Shortened(kept, KEPT[1] - KEPT[0], count - KEPT[1] - LAST)


def shortened_by_waits(paths: BlockPaths, found: list[Turns | None]) -> Shortened:
    """Where warps meet at mbarriers; warps without alike turns stay as they are."""
    made = paths.steps.made
    waits = [each and waits_of(path, paths, each) for path, each in zip(paths.warps, found)]
    stages = max(1, len(np.unique(made["first"][made["what"] == Happening.BEGUN])))
    unit = lcm(stages, *(each for each in waits if each))
    totals = [each * len(turns.begins) for each, turns in zip(waits, found) if each and turns]
    kept = [unit * -(-turns // unit) for turns in KEPT]
    kept[1] = max(kept[1], kept[0] + unit)
    all_ = min(totals) - max(each * LAST for each in waits if each)
    dropped = (all_ - kept[1]) // unit * unit
    whole = Shortened((paths,), 0, 0)
    if None in waits or 0 in waits or max(totals) - min(totals) > unit or dropped <= 0:
        return whole
    between = kept[1] - kept[0]
    paths_ = tuple(without(paths, found, waits, kept[0], count) for count in (dropped + between, dropped))
    return Shortened(paths_, between, dropped)


def waits_of(path: WarpPath, paths: BlockPaths, turns: Turns) -> int:
    """Waits for mbarriers in a turn."""
    rows = path.accesses[turns.begins[0] : turns.begins[1]]
    return int((paths.steps.made["what"][rows[rows >= 0]] == Happening.PASSED).sum())


def without(
    paths: BlockPaths, found: list[Turns | None], waits: list[int | None], kept: int, count: int
) -> BlockPaths:
    """Without so many waits of each warp behind those that are kept."""
    made = paths.steps.made.copy()
    warps = []
    for path, turns, each in zip(paths.warps, found, waits):
        if turns is None or not each:
            warps.append(path)
            continue
        first = kept // each
        begin, end = turns.begins[first], turns.begins[first + count // each]
        rows, later = (part[part >= 0] for part in (path.accesses[begin:end], path.accesses[end:]))
        places, times = np.unique(
            made["first"][rows[made["what"][rows] == Happening.PASSED]], return_counts=True
        )
        later = later[made["what"][later] == Happening.PASSED]
        for place, phases in zip(places, times.astype(np.uint32)):
            made["source_cost"][later[made["first"][later] == place]] -= phases
        keep = np.r_[0:begin, end : len(path.numbers)]
        warps.append(replace(path, numbers=path.numbers[keep], accesses=path.accesses[keep]))
    return replace(paths, warps=tuple(warps), steps=replace(paths.steps, made=made))


def cut(path: WarpPath, turns: Turns, first: int) -> WarpPath:
    """Without the turns between the first ones and the last."""
    begin, end = turns.begins[first], turns.begins[-LAST]
    keep = np.r_[0:begin, end : len(path.numbers)]
    return replace(path, numbers=path.numbers[keep], accesses=path.accesses[keep])


def turns_of(path: WarpPath, paths: BlockPaths) -> Turns | None:
    """The alike turns that are most of a path; None where there are few."""
    numbers = path.numbers
    if not len(numbers):
        return None
    backward = np.flatnonzero(numbers[1:] <= numbers[:-1])
    best: Turns | None = None
    length = 0
    heads = Counter(numbers[backward + 1].tolist())
    for head, times in heads.items():
        if times < LEAST:
            continue
        turns = run_of(path, paths, np.flatnonzero(numbers == head))
        if turns is None:
            continue
        turn = numbers[turns.begins[0] : turns.begins[1]]
        meets = any(paths.code[n].name == "BAR" for n in turn) or waits_of(path, paths, turns)
        if turns.end - turns.begins[0] > length and meets:
            best, length = turns, turns.end - turns.begins[0]
    return best


def run_of(path: WarpPath, paths: BlockPaths, begins: np.ndarray) -> Turns | None:
    """The longest run of alike turns that begin at some places."""
    made = paths.steps.made
    costs = np.zeros(len(path.accesses) + 1, np.int64)
    real = path.accesses >= 0
    rows = made[path.accesses[real]]
    weights = path.numbers.astype(np.int64) * 0x9E3779B1 + 1
    weights[real] += rows["cost"] * 0x85EBCA77 + rows["pieces"] * 0xC2B2AE3D + rows["lanes"] * 0x27D4EB2F
    weights *= 0x165667B1
    weights ^= weights >> 29
    costs[1:] = np.cumsum(weights)
    signs = costs[begins[1:]] - costs[begins[:-1]]
    sizes = np.diff(begins)
    same = (signs[1:] == signs[:-1]) & (sizes[1:] == sizes[:-1])
    breaks = np.flatnonzero(~np.r_[False, same, False])
    runs = np.diff(breaks)
    if not len(runs):
        return None
    at = int(np.argmax(runs))
    first, last = int(breaks[at]), int(breaks[at + 1])
    if last - first < LEAST:
        return None
    return Turns(begins[first : last + 1][:-1] if last < len(begins) else begins[first:], int(begins[last]))
