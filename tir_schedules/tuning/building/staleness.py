"""Whether a record is still about what it was: the device, the compilers, the schedule and its CUDA."""

from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.compiler.lower import lower
from tir_schedules.errors import BadInput, CheckFailed
from tir_schedules.model.kernel import Kernel
from tir_schedules.model.rung import Rung
from tir_schedules.run import launches
from tir_schedules.tuning.records.record import MEASURED, PREDICTED, Record, source_hash, versions_now
from tir_schedules.tuning.space.tunable import space_of

DECISIVE = {MEASURED: ("apache-tvm", "nvcc"), PREDICTED: ("apache-tvm", "nvcc", "tir_schedules")}
"""Kind -> the software that must have the version it had: it makes the kernel, and the prediction."""


@dataclass(frozen=True)
class Rebuilt:
    """The rung in the configuration of a record, and the kernels of its launches, as emitted today."""

    rung: Rung
    kernels: tuple[Kernel, ...]


def rebuild(record: Record, device: str | None = None) -> Rebuilt:
    """Emit a record's kernels again. device: where it is to be used, not compared when None.

    CheckFailed with the reason when it was refused, or is stale: made on another device, with other versions,
    at a point that the space does not have any more, or by a schedule that emits something else now.
    """
    if record.error:
        raise CheckFailed(f"{record} was refused: {record.error}")
    reason = changed(record, device)
    if reason:
        raise stale(record, reason)
    try:
        space = space_of(record.rung)
        reason = space.refusal(record.point, record.problem, record.arch)
        if reason:
            raise stale(record, reason)
        rung = space.rung_at(record.point)
        kernels = tuple(launches(lower, rung, record.problem, record.arch))
    except BadInput as error:
        raise stale(record, error) from None
    now = source_hash(*(kernel.source for kernel in kernels))
    if now != record.source:
        hashes = f"SHA-256 {now[:12]}, it had {record.source[:12] or 'none'}"
        raise stale(record, f"its schedule emits other CUDA today ({hashes})")
    return Rebuilt(rung, kernels)


def changed(record: Record, device: str | None) -> str:
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


def why_stale(record: Record, device: str | None = None) -> str:
    """Why a record does not hold any more, in one line; empty when it does.

    Emits the kernels, but neither compiles nor runs them.
    """
    try:
        rebuild(record, device)
    except CheckFailed as error:
        return str(error)
    return ""
