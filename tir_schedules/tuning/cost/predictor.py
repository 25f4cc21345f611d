"""The cost model: predicts the seconds of a candidate that no GPU ran.

Where the figures of a GPU are known, a block of each launch is simulated, see timing/. Else, and for what
that model refuses, a formula tells: from the launches of a workload, from occupancy, and from what the CPU
machine counts on a small one. Its constants are fitted to this project's H200. What matters is the order of
predictions; tests/tuning and experiments/search_predictions.py compare it with measured times.

The simulator is imported where it is asked for: it takes a quarter of a second, and processes that build or
measure do without.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING

from tir_schedules.errors import BadInput, CheckFailed
from tir_schedules.insight.metrics.counting import GLOBAL, SECTOR, SHARED
from tir_schedules.insight.metrics.roofline import GPU_OF, Gpu, clock, gpu_for
from tir_schedules.ladders.hgemm.hopper import Tiling
from tir_schedules.machines.execution import written
from tir_schedules.model.gpus import QUARTERS, WARP
from tir_schedules.model.launch import ceil_div
from tir_schedules.tuning.building.candidate import Candidate
from tir_schedules.tuning.cost import gemm, hopper, reduction
from tir_schedules.tuning.cost.gemm import L2_BYTES, LAUNCH, MEMORY
from tir_schedules.workloads.drawing import ZEROS
from tir_schedules.workloads.reduction import Reduction

if TYPE_CHECKING:
    from tir_schedules.timing.gpus import GpuTable


def stand_in(arch: str) -> Gpu:
    """The GPU whose figures predictions for an architecture use. BadInput where there is none."""
    if arch.rstrip("af") not in GPU_OF:
        raise BadInput(f"there are no predictions for {arch}; there are for {', '.join(GPU_OF)}")
    return gpu_for(arch)


def predicted_seconds(candidate: Candidate) -> float:
    """Seconds of a candidate on the workload it was built for. BadInput as from stand_in.

    Sums are estimated: on configurations that an H100 had timed the formula's order was the better one, see
    experiments/README.md. Neither way knows what registers in local memory cost: of a kernel that has some
    the longer time is nearer.
    """
    if isinstance(candidate.workload, Reduction):
        return estimated_seconds(candidate)
    try:
        simulated = simulated_seconds(candidate)
    except CheckFailed:
        return estimated_seconds(candidate)
    spills = any(one.resources.spill_loads or one.resources.spill_stores for one in candidate.binaries)
    return max(simulated, estimated_seconds(candidate)) if spills else simulated


def simulated_seconds(candidate: Candidate) -> float:
    """Seconds by a simulated SM of the whole workload, at the clock of the table. CheckFailed for what it
    refuses."""
    from tir_schedules.timing.prediction import predict

    table, workload = table_for(candidate.kernels[0].arch), candidate.workload
    given, arguments = workload.arguments(kind=ZEROS), []
    for kernel in candidate.kernels:
        given = kernel.prepared(workload, given)
        arguments.append(given)
    names = written(workload, candidate.kernels)
    outputs = [*dict.fromkeys(name for of_launch in names for name in of_launch)]
    return 1e-6 * predict(candidate.binaries, arguments, outputs, table).microseconds


@lru_cache(maxsize=8)
def table_for(arch: str) -> GpuTable:
    """The figures of a GPU that executes code for an architecture. CheckFailed where there are none."""
    from tir_schedules.timing.gpus import find_table, known_tables

    for table in map(find_table, known_tables()):
        if table.arch == arch.rstrip("af"):
            return table
    raise CheckFailed(f"there is no table of a GPU for {arch}")


def estimated_seconds(candidate: Candidate) -> float:
    """Seconds by the formula. BadInput as from stand_in."""
    arch = candidate.kernels[0].arch
    if candidate.rung.file:
        return seconds_of_unknown(candidate, stand_in(arch), arch)
    model = reduction if isinstance(candidate.workload, Reduction) else gemm
    model = hopper if isinstance(candidate.rung.config, Tiling) else model
    return model.predicted_seconds(candidate, stand_in(arch), arch)


def seconds_of_unknown(candidate: Candidate, gpu: Gpu, arch: str) -> float:
    """Seconds of all launches on a GPU, of a rung from elsewhere: from what the CPU machine counts on a small
    workload alone.

    Nothing is known of its tiles. What its blocks do on the small workload is scaled by the arithmetic of the
    whole one, and spread over the SMs as its grid is. The busiest of three pipes decides: warp instructions,
    QUARTERS in a cycle of an SM; wavefronts of shared memory, one in a cycle; sectors through the L1 cache,
    L2_BYTES in a cycle. The whole cannot be faster than the compulsory bytes through the memory.

    Left out: latency, and so occupancy. It tells bank conflicts, instructions and traffic apart; not how well
    they are hidden.
    """
    instructions = sum(sum(metrics.counters.mix.values()) for metrics in candidate.metrics) / WARP
    wavefronts = sum(metrics.access(*SHARED).cost for metrics in candidate.metrics)
    sectors = sum(metrics.access(*GLOBAL).cost for metrics in candidate.metrics)
    busiest = max(instructions / QUARTERS, wavefronts, sectors * SECTOR / L2_BYTES)
    scaled = busiest * candidate.workload.flops / max(1, candidate.small.flops)
    blocks = prod(candidate.kernels[0].grid)
    cycles = scaled * ceil_div(blocks, gpu.multiprocessors) / blocks
    moving = candidate.workload.bytes / (MEMORY * gpu.bandwidth * 1e9)
    return max(cycles / clock(gpu, arch), moving) + LAUNCH * len(candidate.binaries)
