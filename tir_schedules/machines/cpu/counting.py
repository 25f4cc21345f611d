"""From the engine's counts per access and per basic block to Counters, in all and per CUDA source line."""

from __future__ import annotations

from collections import defaultdict
from itertools import islice

import numpy as np

from tir_schedules.machines.cpu.lowering import LoweredKernel
from tir_schedules.machines.cpu.sources import Sources
from tir_schedules.model.counters import Access, Counters, LineCounters


def counters_of(
    lowered: LoweredKernel, sources: Sources, accesses: np.ndarray, blocks: np.ndarray
) -> Counters:
    """accesses: rows of COUNTER, one for each counted access. blocks: rows of BLOCK_COUNT."""
    by_line: dict[tuple[str, int], dict[str, Access]] = defaultdict(lambda: defaultdict(Access))
    total: dict[str, Access] = defaultdict(Access)
    for access, (requests, cost, ideal) in zip(lowered.counted, accesses.tolist()):
        if requests:
            place, counted = sources(access.line), Access(requests, cost, ideal)
            by_line[place.file, place.line][access.kind] += counted
            total[access.kind] += counted
    mix_by_line: dict[tuple[str, int], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    issued_by_line: dict[tuple[str, int], int] = defaultdict(int)
    mix: dict[str, int] = defaultdict(int)
    issued = executed = 0
    left: dict[int, None] = {}
    instructions = zip(lowered.listing.lines, lowered.listing.mixes)
    for length, (warps, threads) in zip(lowered.blocks["cost"].tolist(), blocks.tolist()):
        block = list(islice(instructions, length))
        if not warps:
            left.update(dict.fromkeys(line for line, _ in block))
            continue
        for line, kind in block:
            place = sources(line)
            mix[kind] += threads
            mix_by_line[place.file, place.line][kind] += threads
            issued_by_line[place.file, place.line] += warps
            issued, executed = issued + warps, executed + threads
    places = sorted(by_line.keys() | mix_by_line.keys())
    lines = tuple(
        LineCounters(*at, dict(by_line[at]), dict(mix_by_line[at]), issued_by_line[at]) for at in places
    )
    unreached = {
        (place.file, place.line): place
        for place in map(sources, left)
        if place.text and (place.file, place.line) not in mix_by_line
    }
    return Counters(dict(total), dict(mix), issued, executed, lines, tuple(unreached.values()))
