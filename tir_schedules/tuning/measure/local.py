"""The evaluators that use this computer: its GPUs, or the cost model without one."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Sequence, cast

from tir_schedules.model.machine import Machine
from tir_schedules.model.rung import Rung
from tir_schedules.model.workload import Workload
from tir_schedules.subjects.subject import Subject
from tir_schedules.tuning.building.workers import Workers, builders_for
from tir_schedules.tuning.cost.predictor import predicted_seconds
from tir_schedules.tuning.measure.evaluator import Evaluation, Evaluator, Measurer, Predictor
from tir_schedules.tuning.measure.gpu_timing import (
    Timed,
    compiled,
    seconds_of,
    subject_of,
    timed,
    timed_together,
)
from tir_schedules.tuning.measure.gpus import GpuLost, Gpus
from tir_schedules.tuning.records.record import device_of
from tir_schedules.tuning.records.timesheet import AWAITING_SERVER, SERVED, Timesheet

if TYPE_CHECKING:
    from tir_schedules.machines.gpu import GpuMachine


class LocalPredictor(Predictor):
    """Without a GPU."""

    places, place = 0, ""

    def __init__(self) -> None:
        self.spent, self.builders = Timesheet(), builders_for()
        self.workers = Workers(self.builders, self.spent)

    def close(self) -> None:
        self.workers.close()

    def evaluate(self, rung: Rung, workload: Workload, arch: str) -> Evaluation:
        candidate = self.workers.build(rung, workload, arch)
        return Evaluation((predicted_seconds(candidate),), candidate.source)


class LocalMeasurer(Measurer):
    """On a GPU, one candidate at a time, while others are built."""

    places, place = 1, "GPU"

    def __init__(self, machine: Machine) -> None:
        self.machine, self.device, self.alone = machine, device_of(machine), Lock()
        self.spent, self.builders = Timesheet(), builders_for(self.places)
        self.workers = Workers(self.builders, self.spent)

    def close(self) -> None:
        self.workers.close()

    def evaluate(self, rung: Rung, workload: Workload, arch: str) -> Evaluation:
        """Of the whole workload, on which it is verified again."""
        candidate = self.workers.build(rung, workload, arch)
        subject = subject_of(rung, workload, candidate.binaries)
        with self.spent.during(AWAITING_SERVER):
            self.alone.acquire()
        try:
            with self.spent.during(SERVED):
                return Evaluation(self.timed(subject), candidate.source)
        finally:
            self.alone.release()

    def timed(self, subject: Subject) -> tuple[float, ...]:
        broken = cast("GpuMachine", self.machine).broken
        if broken:
            raise GpuLost(
                f"this process can use the GPU no more after {broken}: --resume goes on without that"
                " candidate"
            )
        return timed(subject, self.machine)

    def compare(self, rungs: Sequence[Rung], workload: Workload, arch: str) -> list[Timed]:
        return timed_together([compiled(rung, workload, arch) for rung in rungs], self.machine)


class SeveralGpus(Measurer):
    """On all GPUs of this computer that are like the first. Each has a process of its own, so that a kernel
    that hangs or breaks the GPU's context takes that process with it and nothing else."""

    place = "GPU"

    def __init__(self, machine: Machine, names: Sequence[str]) -> None:
        self.device, self.places = device_of(machine), len(names)
        self.spent, self.builders = Timesheet(), builders_for(self.places)
        self.workers, self.gpus = Workers(self.builders, self.spent), Gpus(names, self.spent)

    def close(self) -> None:
        self.workers.close()
        self.gpus.close()

    def evaluate(self, rung: Rung, workload: Workload, arch: str) -> Evaluation:
        candidate = self.workers.build(rung, workload, arch)
        (found,) = self.gpus.timed([subject_of(rung, workload, candidate.binaries)], together=False)
        return Evaluation(seconds_of(found), candidate.source)

    def compare(self, rungs: Sequence[Rung], workload: Workload, arch: str) -> list[Timed]:
        """By one of the GPUs."""
        return self.gpus.timed([compiled(rung, workload, arch) for rung in rungs], together=True)


def evaluator_for(machine: Machine | None) -> Evaluator:
    """GPUs measure; without one, the cost model predicts."""
    if machine is None or machine.name != "gpu":
        return LocalPredictor()
    names = cast("GpuMachine", machine).alike()
    return SeveralGpus(machine, names) if len(names) > 1 else LocalMeasurer(machine)
