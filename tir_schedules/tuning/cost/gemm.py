"""The cost model of a GEMM: from what the CPU machine counts on a small one.

What one block does there is scaled to the whole workload: multiply-adds, loads and copies by K, stores of C
not at all. That gives cycles of a block on each of four pipes of a streaming multiprocessor (SM):

- issue: warp instructions, four in a cycle: multiply-adds on CUDA cores, requests to shared and global
  memory. Integer arithmetic is left out: PTX has much that ptxas hoists or drops.
- tensor: multiply-adds on tensor cores, at the datasheet's rate. On Hopper two thirds of it: the rest is for
  wgmma alone.
- shared: wavefronts of shared memory, one in a cycle.
- memory: sectors of 32 bytes from and to the L2 cache, L2_BYTES in a cycle.

Pipes work at the same time, though not all of the time: together they need (a^p + b^p + ...)^(1/p). p is 2.
Where tensor cores multiply and cp.async copies, neither stops its warp; then p rises by HIDING for each warp
that a quarter of an SM holds. A loop longer than the instruction cache is issued more slowly. No tile takes
less than its share of the memory latency, which the tiles in flight divide among them. The busiest SM has the
blocks that the grid gives it, its tail included, and a start. The whole cannot be faster than the compulsory
bytes through the memory. Launches that copy matrices to whole tiles, and the one that adds up parts of K,
come on top, as in the model of ladders/sgemm/shapes.py.

Left out: the order of blocks, and so the threadblock swizzle, for what the L2 cache keeps; the order of
multiply-adds; conflicts of registers; spills, which tiles have at edges that no tile divides.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod
from typing import cast

from tir_schedules.insight.metrics.counting import GLOBAL_LOADS, GLOBAL_STORES, SECTOR, SHARED, occupancy_of
from tir_schedules.insight.metrics.roofline import Gpu, clock
from tir_schedules.ladders.sgemm import shapes, split_k
from tir_schedules.model.gpus import QUARTERS, WARP, find_sm
from tir_schedules.model.launch import ceil_div
from tir_schedules.tuning.building.candidate import Candidate
from tir_schedules.workloads.gemm import Gemm

WITHOUT_WGMMA = {"sm_90": 0.66}
"""Share of the tensor cores' rate that mma.sync reaches, where it is not all."""

L2_BYTES = 40  # of an SM in a cycle
HIDING = 0.5
LATENCY = 800  # cycles from a copy's request until its tile can be multiplied
START = 1500  # cycles of a block before and after its tiles
LAUNCH = 2e-6  # seconds
MEMORY = 0.9  # share of the datasheet's bandwidth that a copy reaches
LOOP_BYTES, MISSING = 72 << 10, 0.6  # a loop twice as long as this is issued in 1 + MISSING times the cycles
INSTRUCTION = 16  # bytes

EXECUTED = re.compile(r"^\t(?!\.)(?!mov|cvt)\S.*;$")
LABEL, BRANCH = re.compile(r"^(\$\w+):"), re.compile(r"\bbra(?:\.uni)?\s+(\$\w+);")


@dataclass(frozen=True)
class Demand:
    """What a kernel asks of the busiest SM.

    pipes: name -> cycles of one block. loop: bytes of the longest loop. blocks: that it executes; resident:
    of these at a time; warps: of a block. tiles: along K; ahead: how many copies have time to arrive.
    asynchronous: whether tiles are copied by cp.async.
    """

    pipes: dict[str, float]
    loop: int
    blocks: int
    resident: int
    warps: int
    tiles: int
    ahead: int
    asynchronous: bool

    @property
    def cycles(self) -> float:
        """Until it has executed its blocks."""
        free = self.asynchronous and self.pipes["tensor"]
        power = 2 + (HIDING * self.resident * self.warps / QUARTERS if free else 0)
        issue = self.pipes["issue"] * (1 + MISSING * max(0.0, self.loop / LOOP_BYTES - 1))
        busy = sum(cycles**power for cycles in (self.pipes | {"issue": issue}).values()) ** (1 / power)
        waiting = self.tiles * LATENCY / self.ahead + START
        return max(self.blocks * busy, ceil_div(self.blocks, self.resident) * waiting) + START


def predicted_seconds(candidate: Candidate, gpu: Gpu, arch: str) -> float:
    """Seconds of a GEMM on a GPU."""
    executing = demand(candidate, gpu).cycles / clock(gpu, arch)
    moving = candidate.workload.bytes / (MEMORY * gpu.bandwidth * 1e9)
    return max(executing, moving) + LAUNCH + seconds_of_others(candidate)


def seconds_of_others(candidate: Candidate) -> float:
    """Seconds of the launches beside the rung's own."""
    config, gemm = candidate.rung.config, cast(Gemm, candidate.workload)
    if not isinstance(config, split_k.Config):
        return 0.0
    return 1e-6 * shapes.adding_up(gemm, split_k.parts_of(gemm, config))


def demand(candidate: Candidate, gpu: Gpu) -> Demand:
    """From counters of the small launch, and from the binary for the whole workload: in the small one loops
    may be written out."""
    config, gemm, own = candidate.rung.config, cast(Gemm, candidate.workload), candidate.own
    metrics, binary = candidate.metrics[own], candidate.binaries[own]
    kernel = binary.kernel
    asynchronous = "global_cp_async" in metrics.counters.accesses
    blocks = ceil_div(prod(kernel.grid), gpu.multiprocessors)
    return Demand(
        pipes(candidate, gpu),
        loop_bytes(binary.ptx),
        blocks,
        resident=min(blocks, max(1, occupancy_of(binary).blocks)),
        warps=ceil_div(kernel.threads, WARP),
        tiles=ceil_div(ceil_div(gemm.k, kernel.parts), config.bk),
        ahead=max(1, getattr(config, "stages", 2) - 1) if asynchronous else 1,
        asynchronous=asynchronous,
    )


def pipes(candidate: Candidate, gpu: Gpu) -> dict[str, float]:
    """Cycles of one block on each pipe, in the mean over the blocks of the small launch."""
    whole, small = cast(Gemm, candidate.workload), cast(Gemm, candidate.small)
    metrics, kernel = candidate.metrics[candidate.own], candidate.kernels[candidate.own]
    arch, mix, launched = kernel.arch, metrics.counters.mix, metrics.binary.kernel
    blocks, longer = prod(launched.grid), whole.k / kernel.parts / (small.k / launched.parts)
    shared, loads, stores = (metrics.access(*kinds) for kinds in (SHARED, GLOBAL_LOADS, GLOBAL_STORES))
    on_tensor_cores = "mma" in mix
    multiplied = mix["mma" if on_tensor_cores else "fp32"] / WARP
    issued = multiplied + shared.requests + loads.requests
    on_cores = 0 if on_tensor_cores else multiplied * WARP / find_sm(arch).lanes
    return {
        "issue": max(issued / QUARTERS, on_cores) * longer / blocks,
        "tensor": small.flops * longer / blocks / tensor_rate(gpu, whole, arch) if on_tensor_cores else 0,
        "shared": shared.cost * longer / blocks,
        "memory": (loads.cost * longer + stores.cost) / blocks * SECTOR / L2_BYTES,
    }


def tensor_rate(gpu: Gpu, gemm: Gemm, arch: str) -> float:
    """Floating-point operations of an SM's tensor cores in a cycle."""
    share = WITHOUT_WGMMA.get(arch.rstrip("af"), 1)
    return gpu.peak(gemm) * 1e12 * share / (gpu.multiprocessors * clock(gpu, arch))


def loop_bytes(ptx: str) -> int:
    """Bytes of the longest loop in SASS: ptxas drops moves and most conversions, and keeps the rest."""
    labels: dict[str, int] = {}
    executed = longest = 0
    for line in ptx.splitlines():
        label, branch = LABEL.match(line), BRANCH.search(line)
        if label:
            labels[label[1]] = executed
        executed += bool(EXECUTED.match(line))
        if branch and branch[1] in labels:
            longest = max(longest, executed - labels[branch[1]])
    return INSTRUCTION * longest
