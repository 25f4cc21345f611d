"""The evaluators that use this computer: its GPU, or the cost model without one."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Sequence, cast

from tir_schedules.errors import TirSchedulesError
from tir_schedules.model.machine import Machine
from tir_schedules.model.rung import Rung
from tir_schedules.model.workload import Workload
from tir_schedules.tuning.building.workers import Workers, at_once
from tir_schedules.tuning.cost.predictor import predicted_seconds
from tir_schedules.tuning.measure.evaluator import Evaluation, Evaluator, Measurer, Predictor
from tir_schedules.tuning.measure.gpu_timing import Timed, compiled, subject_of, timed, timed_together
from tir_schedules.tuning.records.record import device_of

if TYPE_CHECKING:
    from tir_schedules.machines.gpu import GpuMachine


class GpuLost(TirSchedulesError):
    """A kernel broke the GPU's context, so that nothing more can be said of any other in this process."""


class LocalPredictor(Predictor):
    """Without a GPU."""

    at_once = at_once()

    def __init__(self) -> None:
        self.workers = Workers()

    def close(self) -> None:
        self.workers.close()

    def evaluate(self, rung: Rung, workload: Workload, arch: str) -> Evaluation:
        candidate = self.workers.build(rung, workload, arch)
        return Evaluation((predicted_seconds(candidate),), candidate.source)


class LocalMeasurer(Measurer):
    """On a GPU, one candidate at a time, while others are built."""

    at_once = at_once()

    def __init__(self, machine: Machine) -> None:
        self.machine, self.device, self.alone = machine, device_of(machine), Lock()
        self.workers = Workers()

    def close(self) -> None:
        self.workers.close()

    def evaluate(self, rung: Rung, workload: Workload, arch: str) -> Evaluation:
        """Of the whole workload, on which it is verified again."""
        candidate = self.workers.build(rung, workload, arch)
        with self.alone:
            broken = cast("GpuMachine", self.machine).broken
            if broken:
                raise GpuLost(
                    f"this process can use the GPU no more after {broken}: --resume goes on without that"
                    " candidate"
                )
            subject = subject_of(rung, workload, candidate.binaries)
            return Evaluation(timed(subject, self.machine), candidate.source)

    def compare(self, rungs: Sequence[Rung], workload: Workload, arch: str) -> list[Timed]:
        return timed_together([compiled(rung, workload, arch) for rung in rungs], self.machine)


def evaluator_for(machine: Machine | None) -> Evaluator:
    """A GPU measures; without one, the cost model predicts."""
    return LocalMeasurer(machine) if machine is not None and machine.name == "gpu" else LocalPredictor()
