"""Whether a record still holds: device, compilers, schedule and CUDA are as they were, and its kernel, built,
verified and timed anew, is as right and as fast."""

from __future__ import annotations

import statistics
from typing import Sequence

from tir_schedules.bench.sampling import Policy
from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.errors import BadInput, CheckFailed
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.model.kernel import Kernel
from tir_schedules.model.machine import Machine
from tir_schedules.model.rung import Rung
from tir_schedules.run import launches, outcome_of
from tir_schedules.tuning.building.small_workload import small
from tir_schedules.tuning.measure.gpu_timing import subject_of, time_subject
from tir_schedules.tuning.records.record import (
    MEASURED,
    PREDICTED,
    Record,
    device_of,
    source_hash,
    versions_now,
)
from tir_schedules.tuning.space.tunable import space_of

DECISIVE = {MEASURED: ("apache-tvm", "nvcc"), PREDICTED: ("apache-tvm", "nvcc", "tir_schedules")}
"""Kind -> the software that must have the version it had: it makes the kernel, and the prediction."""


def rebuild(record: Record, device: str | None) -> tuple[Rung, list[Kernel]]:
    """Its rung in its configuration, and the kernels that this emits now. device: where it is to be used, not
    compared when None.

    CheckFailed with the reason when it was refused, or is stale: made on another device, with other versions,
    at a point that the space does not have any more, or by a schedule that emits something else now.
    """
    if record.error:
        raise CheckFailed(f"{record} was refused: {record.error}")
    reason = what_changed(record, device)
    if reason:
        raise stale(record, reason)
    try:
        space = space_of(record.rung)
        reason = space.refusal(record.point, record.problem, record.arch)
        if reason:
            raise stale(record, reason)
        rung = space.rung_at(record.point)
        kernels = launches(lower, rung, record.problem, record.arch)
    except BadInput as error:
        raise stale(record, error) from None
    now = source_hash(*(kernel.source for kernel in kernels))
    if now != record.source:
        hashes = f"SHA-256 {now[:12]}, it had {record.source[:12] or 'none'}"
        raise stale(record, f"its schedule emits other CUDA today ({hashes})")
    return rung, kernels


def what_changed(record: Record, device: str | None) -> str:
    """The device or the version that is not the record's any more; empty when all are."""
    if device is not None and record.device != device:
        return f"it was {record.kind} on {record.device}, this is {device}"
    today = versions_now()
    for name in DECISIVE[record.kind]:
        was, now = record.versions.get(name, "unknown"), today.get(name, "missing")
        if was != now:
            return f"{name} was {was}, it is {now} here"
    return ""


def stale(record: Record, reason: object) -> CheckFailed:
    return CheckFailed(f"{record} is stale: {reason}; tune again")


AGREEMENT = 0.1
"""How far, as a share, a time measured anew may be from the one recorded."""


def validated(record: Record, machine: Machine | None = None) -> Rung:
    """Build a record's kernels anew, verify them on the CPU machine on a small workload, time them on a GPU.
    Returns its rung, in its configuration.

    machine: where it is to be used; without a GPU nothing is timed. CheckFailed with the reason when it does
    not hold: it is stale (see `rebuild`), computes the wrong thing, or its time differs by more than
    AGREEMENT.
    """
    gpu = machine if machine is not None and machine.name == "gpu" else None
    rung, kernels = rebuild(record, device_of(gpu) if gpu else None)
    reduced, workload = small(rung, record.problem)
    outcome = outcome_of(launches(lower, reduced, workload, record.arch), workload, CpuMachine())
    if not outcome.ok:
        raise CheckFailed(f"{record} is wrong on {workload}: {outcome.faults[0]}")
    if gpu:
        time_again(record, rung, kernels, gpu)
    return rung


def time_again(record: Record, rung: Rung, kernels: Sequence[Kernel], machine: Machine) -> None:
    """Time the kernels by the benchmark's policy. CheckFailed when the benchmark refuses them, or the time is
    not the recorded one."""
    binaries = [compile_kernel(kernel) for kernel in kernels]
    try:
        seconds = time_subject(subject_of(rung, record.problem, binaries), machine, Policy())
    except CheckFailed as error:
        raise CheckFailed(f"{record}: {error}") from None
    now = statistics.median(seconds)
    if abs(now / record.median - 1) > AGREEMENT:
        micros, recorded = (f"{each * 1e6:.4g} us" for each in (now, record.median))
        raise CheckFailed(f"{record} takes {micros} here, not {recorded} as recorded; tune again")
