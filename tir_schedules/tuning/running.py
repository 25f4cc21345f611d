"""What a candidate costs: seconds measured on a GPU by the benchmark's timer, or predicted from what the CPU machine counts.

A timer has
    kind, device    as records have them
    at_once         how many candidates it takes at a time, from several threads
    check(arch)     BadInput for an architecture it knows nothing about
    seconds(...)    of an emitted candidate, once it is compiled and found right; CheckFailed when it is refused
    compared(...)   of several, timed in turns in one run of the benchmark; a CheckFailed in the place of one that is refused.
                    None from a timer for which that would tell nothing new.
"""
from __future__ import annotations

import os
from dataclasses import replace
from threading import Lock
from typing import Any, Sequence

from tir_schedules.bench.sampling import Policy
from tir_schedules.bench.subjects import Subject
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.errors import CheckFailed, TirSchedulesError
from tir_schedules.tuning.building import Emitted, built
from tir_schedules.tuning.prediction import predicted_seconds, stand_in
from tir_schedules.tuning.records import MEASURED, PREDICTED, device_of

POLICY = Policy(settle_s=0.5, max_samples=9, precision=0.01, budget_s=1.0)
"""Shorter than the benchmark's: a search compares many candidates, and its fastest are timed anew."""

CORES = os.cpu_count() or 1
Timed = tuple[float, ...] | CheckFailed


class GpuLost(TirSchedulesError):
    """A kernel broke the GPU's context, so that nothing more can be said of any other in this process."""


class Predicting:
    """Without a GPU."""

    kind, device, at_once = PREDICTED, device_of(), CORES

    def check(self, arch: str) -> None:
        stand_in(arch)

    def seconds(self, kernels: Emitted) -> tuple[float, ...]:
        return (predicted_seconds(built(kernels)),)

    def compared(self, candidates: Sequence[Emitted]) -> None:
        return None


class Measuring:
    """On a GPU machine, one kernel at a time, while others are compiled and verified."""

    kind, at_once = MEASURED, CORES

    def __init__(self, machine: Any):
        self.machine, self.device, self.alone = machine, device_of(machine), Lock()

    def check(self, arch: str) -> None:
        """All that the compiler takes."""

    def seconds(self, kernels: Emitted) -> tuple[float, ...]:
        """Of the whole workload, on which it is verified again."""
        subject = subject_of(kernels, built(kernels).binary)
        with self.alone:
            if self.machine.broken:
                raise GpuLost(f"this process can use the GPU no more after {self.machine.broken}: --resume goes on without that candidate")
            return timed(subject, self.machine)

    def compared(self, candidates: Sequence[Emitted]) -> list[Timed]:
        return timed_together(list(map(compiled, candidates)), self.machine)


def subject_of(kernels: Emitted, binary: Any) -> Subject:
    """A candidate as the benchmark has it."""
    return Subject(kernels.rung.family, kernels.rung.id, "schedule", kernels.workload, (binary,))


def compiled(kernels: Emitted) -> Subject:
    return subject_of(kernels, compile_kernel(kernels.kernel))


def timed(subject: Subject, machine: Any, policy: Policy = POLICY) -> tuple[float, ...]:
    """Samples in seconds of a subject on a GPU machine, which verifies it before and after. CheckFailed when it refuses it."""
    (found,) = timed_together([subject], machine, policy)
    return sure(found)


def sure(found: Timed) -> tuple[float, ...]:
    """Seconds, or the refusal raised."""
    if isinstance(found, CheckFailed):
        raise found
    return found


def timed_together(subjects: Sequence[Subject], machine: Any, policy: Policy = Policy()) -> list[Timed]:
    """The same for several subjects of one workload, whose samples are taken in turns; a CheckFailed in the place of one it refuses."""
    from tir_schedules.bench.clocks import open_monitor
    from tir_schedules.bench.measure import Bench
    from tir_schedules.bench.vendor import Vendors

    bench = Bench(machine, policy, lambda what: None, Vendors(machine, None), open_monitor(machine.bus_id))
    names = [str(number) for number in range(len(subjects))]
    rows, refused = bench.measure_workload([replace(subject, name=name) for name, subject in zip(names, subjects)])
    found: dict[str, Timed] = {row["name"]: CheckFailed(row["reason"]) for row in refused}
    found |= {row["name"]: tuple(sample / 1e6 for sample in row["samples_us"]) for row in rows}
    return [found[name] for name in names]


def timer_for(machine: Any) -> Any:
    """The timer of a machine: a GPU measures, without one there are predictions."""
    return Measuring(machine) if machine is not None and machine.name == "gpu" else Predicting()
