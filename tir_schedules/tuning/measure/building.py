"""Candidates are lowered by the project's own passes, compiled by nvcc, and verified on a small workload by
the CPU machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Sequence

from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.errors import CheckFailed
from tir_schedules.insight.metrics.metrics import Metrics, counted
from tir_schedules.model.kernel import Binary, Kernel
from tir_schedules.model.rung import Rung
from tir_schedules.model.verify import shared_checks
from tir_schedules.run import launches
from tir_schedules.tuning.records.records import source_hash
from tir_schedules.tuning.search.metaschedule import parsed_once
from tir_schedules.tuning.space.small import small


class Unbuilt(CheckFailed):
    """A candidate was not built for a reason that may be this computer's, and so says nothing of it."""


@dataclass(frozen=True)
class Built:
    """A rung compiled for a workload, a binary for each launch, and found right on a small one. counted:
    metrics of its launches."""

    rung: Rung
    workload: Any
    binaries: tuple[Binary, ...]
    small: Any
    counted: tuple[Metrics, ...]

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """Of all launches for the workload."""
        return tuple(binary.kernel for binary in self.binaries)

    @property
    def source(self) -> str:
        """Hash of the CUDA emitted for the workload."""
        return source_hash(*(kernel.source for kernel in self.kernels))


def built(rung: Rung, workload: Any, arch: str) -> Built:
    """Not for several threads: TVM is not; see workers.py.

    CheckFailed when the schedule is not sound, nvcc refuses it, or the CPU machine finds a fault or a wrong
    result.
    """
    reduced, part = small(rung, workload)
    kernels, small_kernels = (
        launches(lower, parsed_once(one), size, arch) for one, size in ((rung, workload), (reduced, part))
    )
    seen = verified(small_kernels, part)
    return Built(rung, workload, tuple(map(compile_kernel, kernels)), part, seen)


def verified(kernels: Sequence[Kernel], workload: Any) -> tuple[Metrics, ...]:
    """What the CPU machine counts of each launch. CheckFailed when nvcc refuses a kernel, when one has
    findings, or the last one leaves something else than the truth of any check."""
    binaries = [compile_kernel(kernel) for kernel in kernels]
    for check in shared_checks(workload):
        found, arguments = counted(binaries, workload, check.arguments())
        for metrics in found:
            if metrics.findings:
                raise CheckFailed(str(metrics.findings[0]))
        mismatch = check.mismatch(arguments)
        if mismatch:
            raise CheckFailed(f"{kernels[-1].label}: wrong on {workload}: {mismatch}")
    return tuple(found)
