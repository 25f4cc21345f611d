"""Candidates timed on a GPU of this computer by the benchmark, which verifies them before and after."""

from __future__ import annotations

import fcntl
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Iterator, Sequence, cast

from tir_schedules.bench.sampling import Policy
from tir_schedules.compiler.cache import default_root
from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.errors import CheckFailed
from tir_schedules.model.kernel import Binary
from tir_schedules.model.machine import Machine
from tir_schedules.model.rung import Rung
from tir_schedules.model.workload import Workload
from tir_schedules.run import launches
from tir_schedules.subjects.subject import Subject
from tir_schedules.tuning.building.candidate import parsed_once

if TYPE_CHECKING:
    from tir_schedules.machines.gpu import GpuMachine

POLICY = Policy(settle_s=0.5, max_samples=9, precision=0.01, budget_s=1.0)
"""Shorter than the benchmark's: a search compares many candidates, and times the fastest again."""

Timed = tuple[float, ...] | CheckFailed
"""Samples in seconds, or why there are none."""


def subject_of(rung: Rung, workload: Workload, binaries: Sequence[Binary]) -> Subject:
    """A candidate as the benchmark has it."""
    return Subject(rung.family, rung.id, "schedule", workload, tuple(binaries))


def compile_subject(rung: Rung, workload: Workload, arch: str) -> Subject:
    """A rung that was built before as the benchmark has it: what nvcc made is in the cache."""
    kernels = launches(lower, parsed_once(rung), workload, arch)
    return subject_of(rung, workload, [compile_kernel(kernel) for kernel in kernels])


def time_subject(subject: Subject, machine: Machine, policy: Policy = POLICY) -> tuple[float, ...]:
    """Samples in seconds of a subject on a GPU. CheckFailed when the benchmark refuses it."""
    (found,) = time_together([subject], machine, policy)
    return seconds_of(found)


def policy_for(together: bool) -> Policy:
    """How to sample subjects that are to be compared, as thoroughly as the benchmark does, or one alone."""
    return Policy() if together else POLICY


def time_together(subjects: Sequence[Subject], machine: Machine, policy: Policy) -> list[Timed]:
    """Samples of each of several subjects of one workload, taken in turns."""
    from tir_schedules.bench.clocks import Cycles, open_monitor
    from tir_schedules.bench.measure import Bench
    from tir_schedules.bench.vendor import Vendors

    gpu = cast("GpuMachine", machine)
    names = [str(number) for number in range(len(subjects))]
    numbered = [replace(subject, name=name) for name, subject in zip(names, subjects)]
    with turn_on(gpu.bus_id):
        monitor = open_monitor(gpu.bus_id)
        bench = Bench(gpu, policy, lambda what: None, Vendors(gpu, None), monitor, Cycles(gpu))
        rows, refused = bench.measure_workload(numbered)
    found: dict[str, Timed] = {row["name"]: CheckFailed(row["reason"]) for row in refused}
    found |= {row["name"]: tuple(sample / 1e6 for sample in row["samples_us"]) for row in rows}
    return [found[name] for name in names]


@contextmanager
def turn_on(gpu: str) -> Iterator[None]:
    """Meanwhile this user's other searches wait for a GPU, by its bus id. A lock ends with its process."""
    folder = default_root()
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / f"{gpu.replace(':', '-')}.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def seconds_of(found: Timed) -> tuple[float, ...]:
    """The samples; CheckFailed where there are none."""
    if isinstance(found, CheckFailed):
        raise found
    return found
