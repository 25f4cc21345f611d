"""Candidates are lowered by the project's own passes, compiled by nvcc, and verified on a small workload by the CPU machine."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.errors import CheckFailed
from tir_schedules.insight.metrics import Metrics, execute, shared_bytes
from tir_schedules.insight.occupancy import occupancy
from tir_schedules.kernel import Binary, Kernel
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.rung import Rung
from tir_schedules.tuning.metaschedule import parsed_once
from tir_schedules.tuning.records import source_hash
from tir_schedules.tuning.small import small
from tir_schedules.verify import compare_with_truth


@dataclass(frozen=True)
class Built:
    """A rung's kernel for a workload, found right on a small one. binary: its compilation, None where that was not asked for.

    counted: metrics of the launch on the small workload.
    """

    rung: Rung
    workload: Any
    kernel: Kernel
    binary: Binary | None
    small: Any
    counted: Metrics

    @property
    def source(self) -> str:
        """Hash of the CUDA emitted for the workload."""
        return source_hash(self.kernel.source)


def built(rung: Rung, workload: Any, arch: str, whole: bool = True) -> Built:
    """whole: also compile for the workload itself. Not for several threads: TVM is not; see workers.py.

    CheckFailed when the schedule is not sound, nvcc refuses it, or the CPU machine finds a fault or a wrong result.
    """
    part, quick = small(workload, rung.config), parsed_once(rung)
    kernel, small_kernel = lower(quick, workload, arch), lower(quick, part, arch)
    counted = verified(small_kernel, part)
    return Built(rung, workload, kernel, compile_kernel(kernel) if whole else None, part, counted)


def verified(kernel: Kernel, workload: Any) -> Metrics:
    """What the CPU machine counts of a kernel. CheckFailed when nvcc refuses it, when it has findings, or computes something else than
    the truth."""
    binary = compile_kernel(kernel)
    (execution,), arguments = execute(CpuMachine(), workload, [binary], count=True)
    if execution.findings:
        raise CheckFailed(str(execution.findings[0]))
    mismatch = compare_with_truth(workload, arguments, arguments)
    if mismatch:
        raise CheckFailed(f"{kernel.label}: wrong on {workload}: {mismatch}")
    held = occupancy(kernel.arch, kernel.block, binary.resources.registers, shared_bytes(binary))
    return Metrics(binary, held, execution.counters)
