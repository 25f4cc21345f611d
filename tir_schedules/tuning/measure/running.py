"""What a candidate costs: seconds measured on a GPU by the benchmark's timer, or predicted from what the CPU
machine counts.

A timer has
    kind, device    as records have them
    at_once         how many candidates it takes at a time, from several threads
    check(arch)     BadInput for an architecture it knows nothing about
    cost(...)       of a rung, the candidate, once it is built and found right; CheckFailed when it is refused
    compared(...)   of several, timed in turns in one run of the benchmark; a CheckFailed in the place of one
    that is refused.
                    None from a timer for which that would tell nothing new.
    close()         ends its processes
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, Sequence

from tir_schedules.bench.sampling import Policy
from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.errors import CheckFailed, TirSchedulesError
from tir_schedules.model.kernel import Binary
from tir_schedules.model.rung import Rung
from tir_schedules.run import launches
from tir_schedules.subjects.subject import Subject
from tir_schedules.tuning.cost.prediction import predicted_seconds, stand_in
from tir_schedules.tuning.measure.workers import Workers, at_once
from tir_schedules.tuning.records.records import MEASURED, PREDICTED, device_of

POLICY = Policy(settle_s=0.5, max_samples=9, precision=0.01, budget_s=1.0)
"""Shorter than the benchmark's: a search compares many candidates, and its fastest are timed anew."""

Timed = tuple[float, ...] | CheckFailed


@dataclass(frozen=True)
class Cost:
    """seconds: samples, or one prediction. source: hash of the CUDA they are of."""

    seconds: tuple[float, ...]
    source: str


class GpuLost(TirSchedulesError):
    """A kernel broke the GPU's context, so that nothing more can be said of any other in this process."""


class Predictions:
    """What timers without a GPU have in common."""

    kind, device = PREDICTED, device_of()

    def check(self, arch: str) -> None:
        stand_in(arch)

    def compared(self, rungs: Sequence[Rung], workload: Any, arch: str) -> None:
        return None


class Predicting(Predictions):
    """Without a GPU."""

    at_once = at_once()

    def __init__(self) -> None:
        self.workers = Workers()
        self.close = self.workers.close

    def cost(self, rung: Rung, workload: Any, arch: str) -> Cost:
        found = self.workers.built(rung, workload, arch)
        return Cost((predicted_seconds(found),), found.source)


class Measuring:
    """On a GPU machine, one kernel at a time, while others are built."""

    kind, at_once = MEASURED, at_once()

    def __init__(self, machine: Any):
        self.machine, self.device, self.alone = machine, device_of(machine), Lock()
        self.workers = Workers()
        self.close = self.workers.close

    def check(self, arch: str) -> None:
        """All that the compiler takes."""

    def cost(self, rung: Rung, workload: Any, arch: str) -> Cost:
        """Of the whole workload, on which it is verified again."""
        found = self.workers.built(rung, workload, arch)
        with self.alone:
            if self.machine.broken:
                raise GpuLost(
                    f"this process can use the GPU no more after {self.machine.broken}: --resume goes on"
                    " without that candidate"
                )
            return Cost(timed(subject_of(rung, workload, found.binaries), self.machine), found.source)

    def compared(self, rungs: Sequence[Rung], workload: Any, arch: str) -> list[Timed]:
        return timed_together([compiled(rung, workload, arch) for rung in rungs], self.machine)


def subject_of(rung: Rung, workload: Any, binaries: Sequence[Binary]) -> Subject:
    """A candidate as the benchmark has it."""
    return Subject(rung.family, rung.id, "schedule", workload, tuple(binaries))


def compiled(rung: Rung, workload: Any, arch: str) -> Subject:
    """The same of a rung that has been built before, so that nvcc's answer is in the cache."""
    return subject_of(
        rung, workload, [compile_kernel(kernel) for kernel in launches(lower, rung, workload, arch)]
    )


def timed(subject: Subject, machine: Any, policy: Policy = POLICY) -> tuple[float, ...]:
    """Samples in seconds of a subject on a GPU machine, which verifies it before and after. CheckFailed when
    it refuses it."""
    (found,) = timed_together([subject], machine, policy)
    return sure(found)


def sure(found: Timed) -> tuple[float, ...]:
    """Seconds, or the refusal raised."""
    if isinstance(found, CheckFailed):
        raise found
    return found


def timed_together(subjects: Sequence[Subject], machine: Any, policy: Policy = Policy()) -> list[Timed]:
    """The same for several subjects of one workload, whose samples are taken in turns; a CheckFailed in the
    place of one it refuses."""
    from tir_schedules.bench.clocks import open_monitor
    from tir_schedules.bench.measure import Bench
    from tir_schedules.bench.vendor import Vendors

    bench = Bench(machine, policy, lambda what: None, Vendors(machine, None), open_monitor(machine.bus_id))
    names = [str(number) for number in range(len(subjects))]
    rows, refused = bench.measure_workload(
        [replace(subject, name=name) for name, subject in zip(names, subjects)]
    )
    found: dict[str, Timed] = {row["name"]: CheckFailed(row["reason"]) for row in refused}
    found |= {row["name"]: tuple(sample / 1e6 for sample in row["samples_us"]) for row in rows}
    return [found[name] for name in names]


def timer_for(machine: Any) -> Any:
    """The timer of a machine: a GPU measures, without one there are predictions."""
    return Measuring(machine) if machine is not None and machine.name == "gpu" else Predicting()
