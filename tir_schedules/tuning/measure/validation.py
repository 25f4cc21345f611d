"""Whether a record is true of this computer: its kernel is built, verified and timed anew."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, replace

from tir_schedules.bench.sampling import Policy
from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.errors import CheckFailed
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.model.machine import Machine
from tir_schedules.model.rung import Rung
from tir_schedules.model.workload import Workload
from tir_schedules.run import launches, outcome_of
from tir_schedules.tuning.building.small_workload import small
from tir_schedules.tuning.building.staleness import Rebuilt, rebuild
from tir_schedules.tuning.measure.gpu_timing import subject_of, timed
from tir_schedules.tuning.records.record import Record, device_of
from tir_schedules.verdicts import Outcome

AGREEMENT = 0.1
"""How far, as a share, a time measured anew may be from the one recorded."""


@dataclass(frozen=True)
class Validated:
    """A record that was found to hold. rung: in its configuration.

    outcome: of its kernels on `workload`, a small one, on the CPU machine. seconds: samples on the record's
    own workload, measured anew; none without a GPU.
    """

    record: Record
    rung: Rung
    workload: Workload
    outcome: Outcome
    seconds: tuple[float, ...] = ()


def validated(record: Record, machine: Machine | None = None) -> Validated:
    """Build a record's kernels anew, verify them on the CPU machine on a small workload, time them on a GPU.

    machine: where it is to be used; without a GPU nothing is timed. CheckFailed with the reason when it does
    not hold: it is stale (see `rebuild`), computes the wrong thing, or its time differs by more than
    AGREEMENT.
    """
    gpu = machine if machine is not None and machine.name == "gpu" else None
    again = rebuild(record, device_of(gpu) if gpu else None)
    reduced, workload = small(again.rung, record.problem)
    outcome = outcome_of(launches(lower, reduced, workload, record.arch), workload, CpuMachine())
    if not outcome.ok:
        raise CheckFailed(f"{record} is wrong on {workload}: {outcome.faults[0]}")
    found = Validated(record, again.rung, workload, outcome)
    return replace(found, seconds=timed_again(record, again, gpu)) if gpu else found


def timed_again(record: Record, again: Rebuilt, machine: Machine) -> tuple[float, ...]:
    """Samples in seconds, with the benchmark's policy.

    CheckFailed when the benchmark refuses the kernels, or the time is not the recorded one.
    """
    binaries = [compile_kernel(kernel) for kernel in again.kernels]
    try:
        seconds = timed(subject_of(again.rung, record.problem, binaries), machine, Policy())
    except CheckFailed as error:
        raise CheckFailed(f"{record}: {error}") from None
    now = statistics.median(seconds)
    if abs(now / record.median - 1) > AGREEMENT:
        micros, recorded = (f"{each * 1e6:.4g} us" for each in (now, record.median))
        raise CheckFailed(f"{record} takes {micros} here, not {recorded} as recorded; tune again")
    return seconds
