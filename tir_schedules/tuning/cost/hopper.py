"""The cost model of an HGEMM rung with wgmma, from its tiles alone.

An SM multiplies the K tiles of its tiles one after another. A K tile takes

- products: what the tensor cores take for it, at the rate that they keep up under full load, and a start;
- lines: of L2 that its copies read, see `tile_costs`;
- waiting: the latency of its copies, divided among the K tiles under way: all stages of all blocks of the SM.

These happen at the same time, though not all of the time: together they need (a^4 + b^4)^(1/4), where a is
the longer one of products and lines, and b is waiting. In hgemm/wgmma nothing is under way while products
are: there waiting comes on top. The end of a tile costs STORE for each of its elements where C is written
from registers, and BLOCK where another block begins; other blocks of the same SM hide it. What comes once is
ONCE.

The constants are fitted to an H200. Most are the times that `tile_costs` has of tiles of hgemm/tma_store,
to 8 %; those of other rungs come from benchmarks of one tile, 128x256.

The model leaves out what was not measured or made less than 3 %: the order of tiles (`group`, and `programs`
except for its limit), how many boxes of C have a place, the traffic of L2 that a cluster saves, and how many
warpgroups share a tile. Points that differ in these alone have equal predictions.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import cast

from tir_schedules.insight.metrics.counting import occupancy_of
from tir_schedules.insight.metrics.roofline import Gpu
from tir_schedules.ladders.hgemm import hopper, specialization
from tir_schedules.ladders.hgemm.tile_costs import copied_rows, cycles_of_rows
from tir_schedules.model.launch import ceil_div
from tir_schedules.tuning.building.candidate import Candidate
from tir_schedules.tuning.cost.gemm import MEMORY
from tir_schedules.workloads.half_gemm import HalfGemm

CLOCKED = 4096 / 2 / hopper.DEPTH  # elements of C that an SM's tensor cores multiply by a K tile in a cycle
CYCLE, START = 0.627, 40  # nanoseconds: of a cycle under full load, and of a K tile before its products
LINE = 1.4  # cycles in which L2 gives an SM a line of 128 bytes
LATENCY = 1100  # nanoseconds from a copy's request until its K tile can be multiplied, in a ring
SYNCHRONOUS = 720  # the same of copies by threads that wait for them
STORE, BLOCK = 0.08, 1600  # nanoseconds: of an element that is written from registers, and of a new block
ONCE = 2400  # nanoseconds


@dataclass(frozen=True)
class Demand:
    """What a kernel asks of the busiest SM. Times are nanoseconds.

    products, lines: of a K tile. k_tiles: of a tile. tiles: that the SM multiplies; resident: blocks that it
    holds at a time. stages: of a block's ring, 1 where it has none. end: of a tile.
    """

    products: float
    lines: float
    k_tiles: int
    tiles: int
    resident: int
    stages: int
    end: float

    @property
    def k_tile_time(self) -> float:
        """Mean time of a K tile."""
        busy = max(self.products, self.lines)
        if self.stages == 1:
            return busy + SYNCHRONOUS / self.resident
        waiting = LATENCY / (self.stages * self.resident)
        return (busy**4 + waiting**4) ** (1 / 4)

    @property
    def nanoseconds(self) -> float:
        """Nanoseconds of the kernel."""
        return ONCE + self.tiles * (self.k_tiles * self.k_tile_time + self.end / self.resident)


def predicted_seconds(candidate: Candidate, gpu: Gpu, arch: str) -> float:
    """Seconds of a GEMM on a GPU, not fewer than its compulsory bytes take through the memory."""
    gemm, (binary,) = cast(HalfGemm, candidate.workload), candidate.binaries
    asked = demand(gemm, candidate.rung.config, gpu, prod(binary.kernel.grid), occupancy_of(binary).blocks)
    return max(asked.nanoseconds * 1e-9, gemm.bytes / (MEMORY * gpu.bandwidth * 1e9))


def demand(gemm: HalfGemm, config: hopper.Tiling, gpu: Gpu, grid: int, held: int) -> Demand:
    """The demand of a configuration. grid: its blocks. held: how many of them an SM can hold."""
    tiles = specialization.tiles_of(gemm, config) * config.blocks
    blocks = ceil_div(grid, gpu.multiprocessors)
    elements = config.bm * config.bn
    return Demand(
        products=START + elements / CLOCKED * CYCLE,
        lines=CYCLE * max(cycles_of_rows(gemm, config, 1), LINE * copied_rows(config)),
        k_tiles=ceil_div(gemm.k, hopper.DEPTH),
        tiles=blocks * ceil_div(tiles, grid),
        resident=min(blocks, max(1, held)),
        stages=config.stages if isinstance(config, hopper.Ring) else 1,
        end=(0 if isinstance(config, specialization.Stored) else STORE * elements)
        + (0 if isinstance(config, specialization.Persistent) else BLOCK),
    )
