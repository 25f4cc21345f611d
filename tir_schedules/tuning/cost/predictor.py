"""The cost model: predicts the seconds of a candidate that no GPU ran.

A prediction comes from the launches of a workload, from occupancy, and from what the CPU machine counts on a
small one. The constants are fitted to this project's H200. What matters is the order of predictions;
tests/tuning compares it with measured times.
"""

from __future__ import annotations

from tir_schedules.errors import BadInput
from tir_schedules.insight.metrics.roofline import GPU_OF, Gpu, gpu_for
from tir_schedules.ladders.hgemm.hopper import Tiling
from tir_schedules.tuning.building.candidate import Candidate
from tir_schedules.tuning.cost import gemm, general, hopper, reduction
from tir_schedules.workloads.reduction import Reduction


def stand_in(arch: str) -> Gpu:
    """The GPU whose figures predictions for an architecture use. BadInput where there is none."""
    if arch.rstrip("af") not in GPU_OF:
        raise BadInput(f"there are no predictions for {arch}; there are for {', '.join(GPU_OF)}")
    return gpu_for(arch)


def predicted_seconds(candidate: Candidate) -> float:
    """Seconds of a candidate on the workload it was built for. BadInput as from stand_in."""
    arch = candidate.kernels[0].arch
    model = reduction if isinstance(candidate.workload, Reduction) else gemm
    model = hopper if isinstance(candidate.rung.config, Tiling) else model
    model = general if candidate.rung.file else model
    return model.predicted_seconds(candidate, stand_in(arch), arch)
