"""Advice on the schedules and twins of rungs."""

from __future__ import annotations

from dataclasses import replace

from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.console import print_line
from tir_schedules.errors import CheckFailed
from tir_schedules.insight.advice.advising import advise, print_advice
from tir_schedules.insight.advice.items import Advice
from tir_schedules.insight.advice.subject import Subject, Tried
from tir_schedules.insight.inspection.twins import Inspection
from tir_schedules.insight.metrics.counting import Metrics, metrics_of
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.model.execution import Execution, Watch
from tir_schedules.model.launch import Dim3
from tir_schedules.model.workload import Workload
from tir_schedules.run import outcome_of


def advice_on(inspection: Inspection) -> dict[str, list[Advice]]:
    """ "schedule" and "twin" -> advice on the rung's own launch."""
    workload = inspection.workload
    return {
        form: advise(subject_of(inspection.own(form), workload, len(launches) == 1))
        for form, launches in inspection.kernels.items()
    }


def print_advised(inspection: Inspection) -> None:
    """Advice on schedule and twin."""
    print_line(f"{inspection.name} on {inspection.workload}, compiled for {inspection.arch}")
    for form, found in advice_on(inspection).items():
        print_line()
        print_line(f"{form}:")
        print_advice(found)


def subject_of(metrics: Metrics, workload: Workload, alone: bool) -> Subject:
    """alone: whether it is the workload's only launch."""
    kernel = metrics.binary.kernel

    def watched(watch: Watch) -> Execution:
        arguments = kernel.prepared(workload, workload.arguments())
        return CpuMachine().run(metrics.binary, arguments, workload.outputs, watch=watch)

    def tried(text: str, block: Dim3 | None) -> Tried:
        changed = replace(kernel, source=text, block=block or kernel.block, own=False)
        try:
            if not outcome_of([changed], workload, CpuMachine(orders=2)).ok:
                return Tried(False)
            (made,) = metrics_of([compile_kernel(changed)], workload)
        except CheckFailed:
            return Tried(False)
        return Tried(True, made.counters, made.binary.resources)

    return Subject(metrics.binary, metrics.counters, watched, kernel.source, tried if alone else None)
