"""What a candidate costs: its evaluator measures seconds on GPUs, or predicts them without one, on this
computer or on others."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Iterator, Protocol, Sequence, cast

from tir_schedules.model.machine import Machine
from tir_schedules.model.rung import Rung
from tir_schedules.model.workload import Workload
from tir_schedules.subjects.subject import Subject
from tir_schedules.tuning.building.hosts import Host, Hosts
from tir_schedules.tuning.building.pool import Lost, Place
from tir_schedules.tuning.building.workers import Workers, builders_for
from tir_schedules.tuning.cost.predictor import predicted_seconds, stand_in
from tir_schedules.tuning.measure.gpu_timing import (
    Timed,
    compile_subject,
    policy_for,
    seconds_of,
    subject_of,
    time_together,
)
from tir_schedules.tuning.measure.gpus import Gpus
from tir_schedules.tuning.records.record import MEASURED, PREDICTED, device_of
from tir_schedules.tuning.records.timesheet import AWAITING_GPU, TIMED, Timesheet

if TYPE_CHECKING:
    from tir_schedules.machines.gpu import GpuMachine

VISIBLE = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True)
class Evaluation:
    """seconds: samples, or one prediction. source: hash of the CUDA they are of."""

    seconds: tuple[float, ...]
    source: str


class Evaluator(Protocol):
    """kind, device: as records have them. spent: where the time of candidates went.

    builders: processes that build. places: GPUs that take one candidate each at a time, 0 where builders do
    all.
    """

    kind: str
    device: str
    spent: Timesheet
    builders: int
    places: int

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
    """Without a GPU: here, or where candidates are built on other computers."""

    kind, device, places = PREDICTED, device_of(), 0

    def __init__(self, hosts: Sequence[Host] = ()) -> None:
        self.spent, self.builders = Timesheet(), len(hosts) or builders_for()
        self.workers = Workers(self.builders, self.spent, hosts)

    def check(self, arch: str) -> None:
        stand_in(arch)

    def close(self) -> None:
        self.workers.close()

    def evaluate(self, rung: Rung, workload: Workload, arch: str) -> Evaluation:
        candidate = self.workers.build(rung, workload, arch)
        return Evaluation((predicted_seconds(candidate),), candidate.source)

    def compare(self, rungs: Sequence[Rung], workload: Workload, arch: str) -> None:
        """Predictions would be the same again."""


class Measurer:
    """Candidates are built here, several at a time, and timed on GPUs. device: their name."""

    kind = MEASURED

    def __init__(self, device: str, places: int) -> None:
        self.device, self.places = device, places
        self.spent, self.builders = Timesheet(), builders_for(places)
        self.workers = Workers(self.builders, self.spent)

    def check(self, arch: str) -> None:
        """All that the compiler takes."""

    def close(self) -> None:
        self.workers.close()

    def evaluate(self, rung: Rung, workload: Workload, arch: str) -> Evaluation:
        """Of the whole workload, on which it is verified again."""
        candidate = self.workers.build(rung, workload, arch)
        (found,) = self.timed([subject_of(rung, workload, candidate.binaries)], together=False)
        return Evaluation(seconds_of(found), candidate.source)

    def compare(self, rungs: Sequence[Rung], workload: Workload, arch: str) -> list[Timed]:
        """By one of the GPUs."""
        return self.timed([compile_subject(rung, workload, arch) for rung in rungs], together=True)

    def timed(self, subjects: Sequence[Subject], together: bool) -> list[Timed]:
        """Samples of each. together: whether they are to be compared."""
        raise NotImplementedError


class OneGpu(Measurer):
    """On this process's GPU, one candidate at a time."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(device_of(machine), 1)
        self.machine, self.alone = machine, Lock()

    def timed(self, subjects: Sequence[Subject], together: bool) -> list[Timed]:
        with self.spent.during(AWAITING_GPU):
            self.alone.acquire()
        try:
            broken = cast("GpuMachine", self.machine).broken
            if broken:
                without = "--resume goes on without that candidate"
                raise Lost(f"this process can use the GPU no more after {broken}: {without}")
            with self.spent.during(TIMED):
                return time_together(subjects, self.machine, policy_for(together))
        finally:
            self.alone.release()


class SeveralGpus(Measurer):
    """Each has a process of its own, so that a kernel that hangs or breaks the GPU's context takes that
    process with it and nothing else."""

    def __init__(self, device: str, places: Sequence[Place]) -> None:
        super().__init__(device, len(places))
        self.gpus = Gpus(places, self.spent)

    def close(self) -> None:
        super().close()
        self.gpus.close()

    def timed(self, subjects: Sequence[Subject], together: bool) -> list[Timed]:
        return self.gpus.timed(subjects, together)


def evaluator_for(machine: Machine | Hosts | None) -> Evaluator:
    """GPUs measure; without one, the cost model predicts."""
    if isinstance(machine, Hosts):
        if machine.name == "gpu":
            return SeveralGpus(machine.device_name, [*gpu_places(machine)])
        return Predictor([host for host, about in machine.found.items() for _ in range(about.cores)])
    if machine is None or machine.name != "gpu":
        return Predictor()
    names = cast("GpuMachine", machine).alike()
    if len(names) == 1:
        return OneGpu(machine)
    return SeveralGpus(device_of(machine), [Place({VISIBLE: name}) for name in names])


def gpu_places(hosts: Hosts) -> Iterator[Place]:
    """One for each GPU."""
    for host, about in hosts.found.items():
        yield from (Place({VISIBLE: name}, host) for name in about.gpus)
