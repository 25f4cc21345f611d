"""A candidate: lowered by the project's own passes, compiled by nvcc, verified on a small workload by the CPU
machine."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Sequence

from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.errors import CheckFailed
from tir_schedules.insight.metrics.counting import Metrics, execute_and_count
from tir_schedules.model.kernel import Binary, Kernel
from tir_schedules.model.rung import Rung
from tir_schedules.model.verify import shared_checks
from tir_schedules.model.workload import Workload
from tir_schedules.run import launches
from tir_schedules.tuning.building.small_workload import small
from tir_schedules.tuning.records.record import source_hash
from tir_schedules.tuning.records.timesheet import BUILDING, VERIFYING, Timesheet

if TYPE_CHECKING:
    from tvm.tirx import PrimFunc


class Unbuilt(CheckFailed):
    """A candidate was not built for a reason that may be this computer's, and so says nothing of it."""


@dataclass(frozen=True)
class Candidate:
    """A rung that was compiled for a workload, a binary for each launch, and found right on a small one.

    metrics: of each launch on the small one.
    """

    rung: Rung
    workload: Workload
    binaries: tuple[Binary, ...]
    small: Workload
    metrics: tuple[Metrics, ...]

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """Kernels of all launches for the workload."""
        return tuple(binary.kernel for binary in self.binaries)

    @property
    def own(self) -> int:
        """Which of the launches is the rung's own: others may copy matrices before it, or add up after it."""
        return [kernel.entry for kernel in self.kernels].index(self.rung.entry)

    @property
    def source(self) -> str:
        """Hash of the CUDA emitted for the workload."""
        return source_hash(*(kernel.source for kernel in self.kernels))


def build(rung: Rung, workload: Workload, arch: str, spent: Timesheet | None = None) -> Candidate:
    """Not for several threads: TVM is not; see workers.py. nvcc compiles the kernels for the workload while
    those for the small one are compiled and verified.

    spent: where the time is added. CheckFailed when the schedule is not sound, nvcc refuses it, or the CPU
    machine finds a fault or a wrong result.
    """
    spent = spent or Timesheet()
    with ThreadPoolExecutor(1) as beside:
        with spent.during(BUILDING):
            reduced, part = small(rung, workload)
            kernels, small_kernels = (
                launches(lower, parsed_once(one), size, arch)
                for one, size in ((rung, workload), (reduced, part))
            )
            whole = beside.submit(lambda: tuple(map(compile_kernel, kernels)))
            compiled = [compile_kernel(kernel) for kernel in small_kernels]
        with spent.during(VERIFYING):
            metrics = verify(compiled, part)
        with spent.during(BUILDING):
            return Candidate(rung, workload, whole.result(), part, metrics)


def verify(binaries: Sequence[Binary], workload: Workload) -> tuple[Metrics, ...]:
    """Metrics of each launch, on the CPU machine. CheckFailed when one has findings, or the last one leaves
    something else than the truth of any check."""
    found: list[Metrics] = []
    for check in shared_checks(workload):
        found, arguments = execute_and_count(binaries, workload, check.arguments())
        for metrics in found:
            if metrics.findings:
                raise CheckFailed(str(metrics.findings[0]))
        mismatch = check.mismatch(arguments)
        if mismatch:
            raise CheckFailed(f"{binaries[-1].kernel.label}: wrong on {workload}: {mismatch}")
    return tuple(found)


@lru_cache(maxsize=64)
def parsed(workload: Workload, entry: str) -> PrimFunc:
    return workload.prim_func(entry)


def parsed_once(rung: Rung) -> Rung:
    """The rung with its algorithm kept for each workload: TVM takes longer to parse it than to schedule it.

    One whose algorithm depends on its configuration stays as it is. A rung of this package stays one, and its
    kernels are compiled the quick way: see emitted.is_ours.
    """
    return rung if rung.prim_func else replace(rung, prim_func=kept_algorithm)


def kept_algorithm(workload: Workload, config: object, entry: str) -> PrimFunc:
    return parsed(workload, entry)
