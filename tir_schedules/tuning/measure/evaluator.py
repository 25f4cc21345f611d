"""What a candidate costs: its evaluator measures seconds on a GPU, or predicts them without one; and the
evaluators that use this computer."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Protocol, Sequence, cast

from tir_schedules.model.machine import Machine
from tir_schedules.model.rung import Rung
from tir_schedules.model.workload import Workload
from tir_schedules.subjects.subject import Subject
from tir_schedules.tuning.building.workers import Workers, builders_for
from tir_schedules.tuning.cost.predictor import predicted_seconds, stand_in
from tir_schedules.tuning.measure.gpu_timing import (
    Timed,
    compile_subject,
    seconds_of,
    subject_of,
    time_subject,
    time_together,
)
from tir_schedules.tuning.measure.gpus import GpuLost, Gpus
from tir_schedules.tuning.records.record import MEASURED, PREDICTED, device_of
from tir_schedules.tuning.records.timesheet import AWAITING_SERVER, SERVED, Timesheet


@dataclass(frozen=True)
class Evaluation:
    """seconds: samples, or one prediction. source: hash of the CUDA they are of."""

    seconds: tuple[float, ...]
    source: str


class Evaluator(Protocol):
    """kind, device: as records have them. spent: where the time of candidates went.

    builders: processes that build here. places: GPUs, or servers, that take one candidate each at a time, 0
    where builders do all; `place` is what they are called.
    """

    @property
    def kind(self) -> str: ...

    @property
    def device(self) -> str: ...

    @property
    def spent(self) -> Timesheet: ...

    @property
    def builders(self) -> int: ...

    @property
    def places(self) -> int: ...

    @property
    def place(self) -> str: ...

    def check(self, arch: str) -> None:
        """BadInput for an architecture that it cannot evaluate."""
        ...

    def evaluate(self, rung: Rung, workload: Workload, arch: str) -> Evaluation:
        """Build, verify and evaluate a candidate. CheckFailed when it is refused."""
        ...

    def compare(self, rungs: Sequence[Rung], workload: Workload, arch: str) -> list[Timed] | None:
        """Time several candidates in turns, in one run of the benchmark.

        None from an evaluator for which that would tell nothing new.
        """
        ...

    def close(self) -> None:
        """End its processes."""
        ...


class Predictor:
    """What evaluators that predict have in common, here and on servers."""

    kind, device = PREDICTED, device_of()

    def check(self, arch: str) -> None:
        stand_in(arch)

    def compare(self, rungs: Sequence[Rung], workload: Workload, arch: str) -> None:
        """Predictions would be the same again."""


class Measurer:
    """What evaluators that measure have in common, here and on servers."""

    kind = MEASURED

    def check(self, arch: str) -> None:
        """All that the compiler takes."""


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
        return time_subject(subject, self.machine)

    def compare(self, rungs: Sequence[Rung], workload: Workload, arch: str) -> list[Timed]:
        return time_together([compile_subject(rung, workload, arch) for rung in rungs], self.machine)


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
        return self.gpus.timed([compile_subject(rung, workload, arch) for rung in rungs], together=True)


def evaluator_for(machine: Machine | None) -> Evaluator:
    """GPUs measure; without one, the cost model predicts."""
    if machine is None or machine.name != "gpu":
        return LocalPredictor()
    names = cast("GpuMachine", machine).alike()
    return SeveralGpus(machine, names) if len(names) > 1 else LocalMeasurer(machine)
