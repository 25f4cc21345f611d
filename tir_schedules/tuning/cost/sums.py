"""The cost of a sum, one launch after another: what a launch reads through the memory, and how much of that
is under way at a time.

By Little's law a multiprocessor reads no faster than what its warps have under way comes in, which takes
LATENCY. The blocks that all multiprocessors hold at once are a wave. A wave needs

    memory   its share of the bytes through the memory, of whose bandwidth reading reaches MEMORY; of what few
    multiprocessors ask for,
             no more than L2_BYTES in a cycle of each
    waiting  the time of one block: START, LATENCY for each time that its loads are waited for, and END, its
    tree issue    the warp instructions of its turns and of its tree, QUARTERS in a cycle of each
    multiprocessor

at the same time, though not all of the time: together (a^4 + b^4 + c^4)^(1/4). Blocks of a wave do not end
together. Where one ends another begins, but in the last wave, which has the blocks that are left and takes
STRAGGLING times as long: that is what few blocks with many turns cost on long arrays.

Loads of a thread that are under way: those that are unrolled. nvcc unrolls short loops, too, UNROLLED turns
at least, and ptxas keeps no more than MOST_LOADS under way.

Left out: registers, of which nvcc takes more or fewer with the number of turns; the guards of a ragged end.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot, prod
from typing import TYPE_CHECKING

from tir_schedules.insight.metrics.metrics import occupancy_of
from tir_schedules.insight.metrics.roofline import Gpu, clock
from tir_schedules.ladders.reduce.vectorized import width
from tir_schedules.model.gpus import QUARTERS, WARP
from tir_schedules.model.launch import ceil_div
from tir_schedules.tuning.cost.products import L2_BYTES

if TYPE_CHECKING:
    from tir_schedules.tuning.measure.building import Built

MEMORY = 0.97  # share of the datasheet's bandwidth
LATENCY = 800  # cycles
START, END = 400, 400  # cycles of a block before its first load, and of its tree
TREE, TURN = 60, 6  # warp instructions of a tree, and of a turn: a load, four additions, an index
UNROLLED, MOST_LOADS = 4, 8
STRAGGLING = 1.03
LAUNCH = 1.5e-6  # seconds


@dataclass(frozen=True)
class Pass:
    """One launch. bytes: that it reads. blocks: of the grid; resident: of these on a multiprocessor at a
    time; warps: of a block.

    turns: loads of a thread; ahead: how many of them are under way at a time.
    """

    bytes: int
    blocks: int
    resident: int
    warps: int
    turns: int
    ahead: int

    def cycles(self, multiprocessors: int, bandwidth: float) -> float:
        """bandwidth: bytes of all multiprocessors in a cycle."""
        at_once = self.resident * multiprocessors
        others = ceil_div(self.blocks, at_once) - 1
        last = self.wave(self.blocks - others * at_once, multiprocessors, bandwidth)
        return others * self.wave(at_once, multiprocessors, bandwidth) + STRAGGLING * last

    def wave(self, blocks: int, multiprocessors: int, bandwidth: float) -> float:
        """Cycles of so many blocks at a time."""
        busiest, each = ceil_div(blocks, multiprocessors), self.bytes / self.blocks
        memory = max(blocks * each / bandwidth, busiest * each / L2_BYTES)
        waiting = START + ceil_div(self.turns, self.ahead) * LATENCY + END
        issue = busiest * self.warps * (TREE + self.turns * TURN) / QUARTERS
        return hypot(memory**2, waiting**2, issue**2) ** 0.5


def seconds_of(built: "Built", gpu: Gpu, arch: str) -> float:
    """Of a sum on a GPU, all its launches."""
    rate, bandwidth = clock(gpu, arch), MEMORY * gpu.bandwidth * 1e9
    return sum(one.cycles(gpu.multiprocessors, bandwidth / rate) / rate + LAUNCH for one in passes(built))


def passes(built: "Built") -> list[Pass]:
    """The launches."""
    config, reduction, found = built.rung.config, built.workload, []
    for binary in built.binaries:
        blocks = prod(binary.kernel.grid)
        turns = ceil_div(reduction.n, blocks * config.block * width(reduction))
        ahead = min(turns, max(config.unroll, UNROLLED), MOST_LOADS)
        found.append(
            Pass(
                reduction.bytes,
                blocks,
                max(1, occupancy_of(binary).blocks),
                ceil_div(config.block, WARP),
                turns,
                ahead,
            )
        )
        reduction = reduction.rest(binary.kernel.grid)
    return found
