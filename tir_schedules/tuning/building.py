"""Builds candidates: lowered by the project's own passes, compiled by nvcc, verified on a small shape by the CPU machine."""
from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Sequence

from tvm.ir.utils import derived_object
from tvm.s_tir.meta_schedule.builder import BuilderResult, PyBuilder

from tir_schedules.compiler.lower import lower
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.errors import CheckFailed
from tir_schedules.insight.metrics import Metrics, execute, shared_bytes
from tir_schedules.insight.occupancy import occupancy
from tir_schedules.kernel import Binary, Kernel
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.rung import Rung
from tir_schedules.tuning.metaschedule import parsed_once, point_in
from tir_schedules.tuning.records import source_hash
from tir_schedules.tuning.small import small
from tir_schedules.tuning.space import Point, key
from tir_schedules.tuning.trials import Trials
from tir_schedules.verify import compare_with_truth


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
    small_binary = compile_kernel(kernels.small_kernel)
    counted = verified(small_binary, kernels.small)
    return Built(kernels, compile_kernel(kernels.kernel), counted)


def verified(binary: Binary, workload: Any) -> Metrics:
    """What the CPU machine counts of a kernel. CheckFailed when it has findings or computes something else than the truth."""
    (execution,), arguments = execute(CpuMachine(), workload, [binary], count=True)
    if execution.findings:
        raise CheckFailed(str(execution.findings[0]))
    mismatch = compare_with_truth(workload, arguments, arguments)
    if mismatch:
        raise CheckFailed(f"{binary.kernel.label}: wrong on {workload}: {mismatch}")
    kernel = binary.kernel
    held = occupancy(kernel.arch, kernel.block, binary.resources.registers, shared_bytes(binary))
    return Metrics(binary, held, execution.counters)


@derived_object
class Builder(PyBuilder):
    """MetaSchedule's builder. What it hands on as the path of an artifact is the key of a point in `built`."""

    def __init__(self, trials: Trials):
        super().__init__()
        self.trials = trials
        self.built: dict[str, Built] = {}

    def build(self, build_inputs: Sequence[Any]) -> list[BuilderResult]:
        """Results come in the order of the inputs; TVM lowers here, nvcc and the CPU machine work in other threads."""
        points = [point_in(build_input.mod) for build_input in build_inputs]
        with ThreadPoolExecutor(max_workers=max(os.cpu_count() or 1, self.trials.timer.at_once)) as pool:
            pending = [self.start(pool, point) for point in points]
            for point, future in zip(points, pending):
                found = future and self.trials.guarded(future.result)
                if found:
                    self.built[key(point)] = found
        return [self.result(key(point)) for point in points]

    def start(self, pool: ThreadPoolExecutor, point: Point) -> Future | None:
        """What will be built, or None when the schedule is refused."""
        trials = self.trials
        kernels = trials.attempt(point, lambda: emitted(trials.space.rung_at(point), trials.workload, trials.arch))
        if kernels is None:
            return None
        return pool.submit(trials.attempt, point, lambda: trials.timer.built(kernels), kernels.source)

    def result(self, name: str) -> BuilderResult:
        return BuilderResult(name, None) if name in self.built else BuilderResult(None, "refused, see the record")
