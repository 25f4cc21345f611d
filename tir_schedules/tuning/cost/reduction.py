"""The cost model of a reduction: launch after launch, what it loads and how much of that is in flight.

By Little's law an SM loads no faster than what its warps have in flight arrives, which takes LATENCY. The
blocks that all SMs hold at once are a wave. A wave needs

- memory: its share of the bytes, of whose bandwidth loading reaches MEMORY; where only a few SMs load, no
  more than L2_BYTES in a cycle of each.
- waiting: the time of one block: START, LATENCY for each time that its loads are waited for, and END, its
  tree.
- issue: the warp instructions of its turns and of its tree, QUARTERS in a cycle of each SM.

at the same time, though not all of the time: together (a^4 + b^4 + c^4)^(1/4). Blocks of a wave do not end
together. Where one ends another begins, except in the last wave: it has the blocks that are left and takes
STRAGGLING times as long. That is what few blocks with many turns cost on long arrays.

Loads of a thread in flight: those that are unrolled. nvcc unrolls short loops, too, UNROLLED turns at least,
and ptxas keeps no more than MOST_LOADS in flight.

Left out: registers, whose number nvcc changes with the number of turns; the guards of a ragged end.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot, prod
from typing import cast

from tir_schedules.insight.metrics.counting import occupancy_of
from tir_schedules.insight.metrics.roofline import Gpu, clock
from tir_schedules.ladders.reduce.vectorized import width
from tir_schedules.model.gpus import QUARTERS, WARP
from tir_schedules.model.launch import ceil_div
from tir_schedules.tuning.building.candidate import Candidate
from tir_schedules.tuning.cost.gemm import L2_BYTES
from tir_schedules.workloads.reduction import Reduction

MEMORY = 0.97  # share of the datasheet's bandwidth
LATENCY = 800  # cycles
START, END = 400, 400  # cycles of a block before its first load, and of its tree
TREE, TURN = 60, 6  # warp instructions of a tree, and of a turn: a load, four additions, an index
UNROLLED, MOST_LOADS = 4, 8
STRAGGLING = 1.03
LAUNCH = 1.5e-6  # seconds


@dataclass(frozen=True)
class Demand:
    """What one launch asks of a GPU. bytes: that it loads.

    blocks: of the grid; resident: of these on an SM at a time; warps: of a block. turns: loads of a thread;
    ahead: how many of them are in flight at a time.
    """

    bytes: int
    blocks: int
    resident: int
    warps: int
    turns: int
    ahead: int

    def cycles(self, multiprocessors: int, bandwidth: float) -> float:
        """multiprocessors: of the GPU. bandwidth: bytes of all of them in a cycle."""
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


def predicted_seconds(candidate: Candidate, gpu: Gpu, arch: str) -> float:
    """Seconds of a reduction on a GPU, all its launches."""
    rate, bandwidth = clock(gpu, arch), MEMORY * gpu.bandwidth * 1e9
    cycles = (one.cycles(gpu.multiprocessors, bandwidth / rate) for one in demands(candidate))
    return sum(each / rate + LAUNCH for each in cycles)


def demands(candidate: Candidate) -> list[Demand]:
    """What each launch asks."""
    config, reduction, found = candidate.rung.config, cast(Reduction, candidate.workload), []
    for binary in candidate.binaries:
        blocks = prod(binary.kernel.grid)
        turns = ceil_div(reduction.n, blocks * config.block * width(reduction))
        found.append(
            Demand(
                reduction.bytes,
                blocks,
                resident=max(1, occupancy_of(binary).blocks),
                warps=ceil_div(config.block, WARP),
                turns=turns,
                ahead=min(turns, max(config.unroll, UNROLLED), MOST_LOADS),
            )
        )
        reduction = cast(Reduction, reduction.rest(binary.kernel.results))
    return found
