"""A cost in seconds of what no GPU ran: a prediction, never to be called a time.

It comes from the launches of a workload, from occupancy, and from what the CPU machine counts on a small one.
The constants are fitted to this project's H200; what counts is the order of predictions, which tests/tuning
compares with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tir_schedules.errors import BadInput
from tir_schedules.insight.metrics.roofline import GPU_OF, Gpu, gpu_for
from tir_schedules.tuning.cost import products as prediction_of_products
from tir_schedules.tuning.cost import sums as prediction_of_sums

if TYPE_CHECKING:
    from tir_schedules.tuning.measure.building import Built


def stand_in(arch: str) -> Gpu:
    """The GPU that predictions for an architecture are of. BadInput where there is none."""
    if arch.rstrip("af") not in GPU_OF:
        raise BadInput(f"there are no predictions for {arch}; there are for {', '.join(GPU_OF)}")
    return gpu_for(arch)


def predicted_seconds(built: "Built") -> float:
    """The cost of a rung on the workload it was built for. BadInput as from stand_in."""
    arch = built.kernels[0].arch
    model = prediction_of_sums if built.rung.family == "reduce" else prediction_of_products
    return model.seconds_of(built, stand_in(arch), arch)
