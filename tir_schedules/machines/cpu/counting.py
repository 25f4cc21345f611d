"""From the engine's raw counts, per access and per basic block, to Counters, summed and per CUDA source
line."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from tir_schedules.machines.cpu.classify import instruction_class
from tir_schedules.machines.cpu.findings import Sources
from tir_schedules.machines.cpu.lowering import Program
from tir_schedules.model.counters import Access, Counters, LineCounters

MERGE = np.dtype([("offset", "i4"), ("width", "u4")])


def counters_of(program: Program, sources: Sources, accesses: np.ndarray, blocks: np.ndarray) -> Counters:
    """accesses: requests, cost and ideal of each counted access. blocks: warps and threads that entered each
    block."""
    by_line: dict[tuple[str, int], dict[str, Access]] = defaultdict(lambda: defaultdict(Access))
    total: dict[str, Access] = defaultdict(Access)
    for counted, row in zip(program.counted, accesses.tolist()):
        if row[0]:
            place = sources(counted.instruction.line)
            by_line[place.file, place.line][counted.kind] += Access(*row)
            total[counted.kind] += Access(*row)
    mix_by_line: dict[tuple[str, int], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    mix: dict[str, int] = defaultdict(int)
    issued = executed = 0
    for block, (warps, threads) in zip(program.kernel.blocks, blocks.tolist()):
        if not warps:
            continue
        for instruction in block.all_instructions:
            kind, place = instruction_class(instruction), sources(instruction.line)
            mix[kind] += threads
            mix_by_line[place.file, place.line][kind] += threads
            issued, executed = issued + warps, executed + threads
    places = sorted(by_line.keys() | mix_by_line.keys())
    lines = tuple(LineCounters(*place, dict(by_line[place]), dict(mix_by_line[place])) for place in places)
    return Counters(dict(total), dict(mix), issued, executed, lines)
