"""How long blocks wait for each other.

A simulated SM knows no other blocks. Where a block waits for words that others store, as in Stream-K, the CPU
machine executes all blocks, each warp with a clock that goes by what its basic blocks took on the simulated
SM, see machines/cpu/core/observe/waits.cpp. The last block then ends later than it would if none waited. This
difference is what waits cost.
"""

from __future__ import annotations

from typing import Sequence

import numpy as np

from tir_schedules.model.kernel import Binary
from tir_schedules.model.machine import Watch
from tir_schedules.model.workload import Arguments
from tir_schedules.timing.gpus import GpuTable
from tir_schedules.timing.paths import BlockPaths, watched
from tir_schedules.timing.simulation import Simulated

MOST_WORK, MOST_BLOCKS = 1 << 27, 1 << 12
"""Instructions of warps of all blocks, and blocks, that are executed to tell waits. The machine takes some
seconds for so many: `stream_k` at 4096 would take minutes. What a block knows of all before it grows with
them."""

LOOKS = 1.5
"""Looks until a block finds what another has stored: a store goes to L2 in about half the time of a look, and
comes in the middle of a look."""


def cycles_of_waits(
    binary: Binary, arguments: Arguments, outputs: Sequence[str], paths: BlockPaths, simulated: Simulated,
    table: GpuTable,
) -> float:  # fmt: skip
    """By which the last block ends later because blocks wait for others. simulated: a block with these
    paths."""
    watch = Watch(
        (0, 0, 0), limit=1, steps=True, among_all=True, cycles=cycles_by_block(paths, simulated),
        link=LOOKS * (table.latencies["global"] + table.l2_latency[-1]),
    )  # fmt: skip
    ends = watched(binary, arguments, outputs, watch)[0].ends
    return max(0.0, ends.among - ends.alone) if ends else 0.0


def cycles_by_block(paths: BlockPaths, simulated: Simulated) -> tuple[float, ...]:
    """Cycles of a warp in each basic block of PTX, on average. A basic block that the simulated one does not
    execute takes as long for each instruction as all others do. A loop that waits for memory is negative:
    `link` stands for it."""
    steps = paths.steps
    lengths = np.array([len(lines) for lines in steps.lines], float)
    times = np.bincount(steps.table["block"], minlength=len(lengths)).astype(float)
    block_of = {line: number for number, lines in enumerate(steps.lines) for line in lines}
    spent = np.zeros(len(lengths))
    for one, cycles in zip(paths.code, simulated.stalls.sum(axis=1).tolist()):
        if (block := block_of.get(one.ptx_line)) is not None:
            spent[block] += cycles
    known = times > 0
    usual = spent[known].sum() / max(1.0, (lengths * times)[known].sum())
    found = np.where(known, spent / np.maximum(times, 1), usual * lengths)
    found[[*steps.looks]] = -1
    return tuple(found.tolist())
