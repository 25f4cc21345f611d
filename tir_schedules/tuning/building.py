"""Candidates are lowered by the project's own passes, compiled by nvcc, and verified on a small shape by the CPU machine."""
from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.insight.metrics import Metrics
from tir_schedules.kernel import Binary, Kernel
from tir_schedules.rung import Rung
from tir_schedules.tuning.metaschedule import parsed_once
from tir_schedules.tuning.records import source_hash
from tir_schedules.tuning.small import small
from tir_schedules.tuning.verifying import verified_apart


@dataclass(frozen=True)
class Emitted:
    """A rung's kernel for a workload, and the one for a small workload that it is verified on."""

    rung: Rung
    workload: Any
    kernel: Kernel
    small: Any
    small_kernel: Kernel

    @property
    def source(self) -> str:
        """Hash of the CUDA emitted for the workload."""
        return source_hash(self.kernel.source)


@dataclass(frozen=True)
class Built:
    """The same, compiled and found right. counted: metrics of the small launch."""

    emitted: Emitted
    binary: Binary
    counted: Metrics


def emitted(rung: Rung, workload: Any, arch: str) -> Emitted:
    """Not for several threads: TVM is not. CheckFailed as from `lower`."""
    part = small(workload, rung.config)
    quick = parsed_once(rung)
    return Emitted(rung, workload, lower(quick, workload, arch), part, lower(quick, part, arch))


def built(kernels: Emitted) -> Built:
    """Compile both kernels and verify the small one. CheckFailed when nvcc refuses either, or the CPU machine finds a fault or a wrong
    result."""
    with ThreadPoolExecutor(1) as beside:
        binary = beside.submit(compile_kernel, kernels.kernel)
        counted = verified_apart(kernels.small_kernel, kernels.small)
        return Built(kernels, binary.result(), counted)
