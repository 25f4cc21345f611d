"""A subject bound to arrays on the GPU: ready to be enqueued, and to be judged by what it leaves in its
outputs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from tir_schedules.errors import CheckFailed
from tir_schedules.machines.gpu import Call, GpuMachine
from tir_schedules.model.verify import Check
from tir_schedules.model.workload import Arguments, Workload
from tir_schedules.subjects.subject import Subject
from tir_schedules.workloads.drawing import EXACT, Draws
from tir_schedules.workloads.reduction import POISON
from tir_schedules.workloads.rounding import MANTISSA

CACHES = 2
"""Buffers together are larger than the L2 cache this many times."""

FEWEST_SETS, MOST_SETS = 2, 1024


@dataclass(frozen=True)
class BoundSubject:
    """A subject with its arrays: one GEMM, or a whole reduction.

    enqueue(stream): all its launches. outputs: arrays on the GPU, by name. kept: what else must stay in
    memory. overlaps: whether the first launch begins before the one ahead of it has ended.
    """

    enqueue: Call
    outputs: Arguments
    kept: Any = None
    overlaps: bool = False


class Vendor(Protocol):
    """NVIDIA's libraries, see vendor.Vendors."""

    @property
    def notes(self) -> list[str]: ...

    def candidates(self, subject: Subject) -> list[Subject]: ...

    def versions(self) -> dict[str, str]: ...

    def bind(self, subject: Subject, arguments: Arguments) -> BoundSubject: ...


def bind(machine: GpuMachine, vendors: Vendor | None, subject: Subject, arguments: Arguments) -> BoundSubject:
    """A subject on arguments that are on the GPU. vendors: binds what is a library's."""
    if subject.form == "vendor":
        assert vendors
        return vendors.bind(subject, arguments)
    launches = []
    for binary in subject.binaries:
        arguments = binary.kernel.prepared(subject.workload, arguments)
        machine.load(binary)
        launches.append((binary, arguments))

    def enqueue(stream: Any) -> None:
        for place, (binary, given) in enumerate(launches):
            machine.enqueue(binary, given, stream, follows=place > 0)

    outputs = {name: arguments[name] for name in subject.workload.outputs}
    return BoundSubject(enqueue, outputs, overlaps=machine.overlaps(*launches[0]))


def judged_by(subject: Subject, check: Check) -> Check | None:
    """The check for a subject, or None for a check that is not for it.

    cuBLAS may add parts of K in C's format ("reduced precision reductions", which its default math mode
    allows and frameworks leave on). Its users get these results at this speed, so they are what a kernel has
    to beat. Exact inputs are for sums in the accumulators' format: in C's, parts of them overflow. Reals may
    be off by a unit in the last place of the sum of magnitudes more, because no part exceeds that sum.
    """
    workload: Any = check.workload  # a HalfGemm, if it rounds
    if subject.form != "vendor" or not getattr(workload, "rounds", False):
        return check
    if check.kind == EXACT:
        return None
    parts = 2.0 ** (1 - MANTISSA[workload.result]) * workload.magnitudes(check.inputs)
    return replace(check, allowed={"C": check.allowed["C"] + parts})


def verify(machine: GpuMachine, vendors: Vendor, subject: Subject, check: Check) -> float:
    """Run a subject with a check's inputs, which are on the GPU, and outputs poisoned beforehand; returns
    seconds.

    CheckFailed names the worst element that is wrong.
    """
    product = bind(machine, vendors, subject, check.inputs)
    for array in (*product.outputs.values(), *(check.inputs[name] for name in check.workload.workspaces)):
        array.fill(POISON.get(str(array.dtype), np.nan))
    seconds = machine.seconds(product.enqueue)
    mismatch = check.mismatch(product.outputs)
    if mismatch:
        raise CheckFailed(f"does not verify: {mismatch}")
    return seconds


def timing_buffers(machine: GpuMachine, workload: Workload) -> list[Arguments]:
    """Sets of arguments to take turns with: reals uniform in [-1, 1), whatever the workload verifies with, or
    integers.

    Together they are CACHES times as large as the L2 cache, so that no set is still there when its turn comes
    again. There are at most MOST_SETS: sets of very small arrays may stay in it.
    """
    arguments = workload.arguments(0, machine.xp)
    draws = Draws(1, machine.xp)
    for name in workload.inputs:
        if arguments[name].dtype.kind != "i":
            arguments[name] = draws.uniform(arguments[name].shape, arguments[name].dtype)
    arrays = [name for name, value in arguments.items() if not isinstance(value, int)]
    size = sum(arguments[name].nbytes for name in arrays if name not in workload.workspaces)
    sets = min(MOST_SETS, max(FEWEST_SETS, math.ceil(CACHES * machine.l2_bytes / size)))
    copies = [arguments | {name: arguments[name].copy() for name in arrays} for _ in range(sets - 1)]
    return [arguments, *copies]
