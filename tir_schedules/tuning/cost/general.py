"""The cost model of a rung from elsewhere: from what the CPU machine counts on a small workload alone.

Nothing is known of its tiles. What its blocks do on the small workload is scaled by the arithmetic of the
whole one, and spread over the SMs as its grid is. The busiest of three pipes decides: warp instructions,
QUARTERS in a cycle of an SM; wavefronts of shared memory, one in a cycle; sectors through the L1 cache,
L2_BYTES in a cycle. The whole cannot be faster than the compulsory bytes through the memory.

Left out: latency, and so occupancy. It tells bank conflicts, instructions and traffic apart; not how well
they are hidden.
"""

from __future__ import annotations

from math import prod

from tir_schedules.insight.metrics.counting import GLOBAL, SECTOR, SHARED
from tir_schedules.insight.metrics.roofline import Gpu, clock
from tir_schedules.model.gpus import QUARTERS, WARP
from tir_schedules.model.launch import ceil_div
from tir_schedules.tuning.building.candidate import Candidate
from tir_schedules.tuning.cost.gemm import L2_BYTES, LAUNCH, MEMORY


def predicted_seconds(candidate: Candidate, gpu: Gpu, arch: str) -> float:
    """Seconds of all launches on a GPU."""
    instructions = sum(sum(metrics.counters.mix.values()) for metrics in candidate.metrics) / WARP
    wavefronts = sum(metrics.access(*SHARED).cost for metrics in candidate.metrics)
    sectors = sum(metrics.access(*GLOBAL).cost for metrics in candidate.metrics)
    busiest = max(instructions / QUARTERS, wavefronts, sectors * SECTOR / L2_BYTES)
    scaled = busiest * candidate.workload.flops / max(1, candidate.small.flops)
    blocks = prod(candidate.kernels[0].grid)
    cycles = scaled * ceil_div(blocks, gpu.multiprocessors) / blocks
    moving = candidate.workload.bytes / (MEMORY * gpu.bandwidth * 1e9)
    return max(cycles / clock(gpu, arch), moving) + LAUNCH * len(candidate.binaries)
