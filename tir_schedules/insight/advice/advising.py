"""All advice on a launch, of what `check` has run, or of the schedules and twins of rungs; and how it is
printed."""

from __future__ import annotations

from dataclasses import replace
from typing import Sequence

from tir_schedules.check.preparing import Prepared, prepare
from tir_schedules.check.session import Checked, Written, fresh, launch_step, perform
from tir_schedules.compiler.nvcc import compile_kernel
from tir_schedules.compiler.source_text import is_ptx
from tir_schedules.console import print_line
from tir_schedules.errors import CheckFailed
from tir_schedules.insight.advice.conflicts import conflicts
from tir_schedules.insight.advice.launch import launch
from tir_schedules.insight.advice.memory import memory
from tir_schedules.insight.advice.pipeline import pipeline
from tir_schedules.insight.advice.subject import Advice, Subject, Tried, record
from tir_schedules.insight.inspection.twins import Inspection
from tir_schedules.insight.metrics.counting import Metrics, metrics_of
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.model.launch import Dim3
from tir_schedules.model.machine import Execution, Watch
from tir_schedules.model.workload import Workload
from tir_schedules.run import outcome_of

SHOWN = 6
NOTHING = "advice: nothing to gain, because no line costs more than it would ideally"
UNKNOWN = (
    "the accesses of block 0,0,0 are not known: without other blocks it does not end, or it makes too many"
)


def advise(subject: Subject) -> list[Advice]:
    """Advice, what saves most first; then reasons for which there is no remedy."""
    recording = record(subject)
    found = [*conflicts(subject, recording), *memory(subject, recording)] if recording else []
    if not recording:
        found.append(Advice("not known", None, UNKNOWN))
    return sorted([*found, *pipeline(subject), *launch(subject)], key=lambda one: -one.saved)


def print_advice(found: Sequence[Advice]) -> None:
    """A paragraph for each, up to a handful."""
    if not found:
        print_line(NOTHING)
    for one in found[:SHOWN]:
        print_line(f"{one.where}{one.reason}")
        for remedy in one.remedies:
            print_line(f"  {remedy}")
        if one.tried:
            print_line(f"  {one.tried}")
    if len(found) > SHOWN:
        print_line(f"and {len(found) - SHOWN} more, which --json has")


def advice_on_check(checked: Checked) -> list[tuple[str, list[Advice]]]:
    """Each launch's kernel and advice; nothing of a check that failed, or that ran on a GPU."""
    if not checked.prepared or not checked.outcome.ok:
        return []
    subjects = [subject_of_check(checked, at) for at in range(len(checked.steps))]
    return [(one.binary.kernel.label, advise(one)) for one in subjects if one]


def print_advice_on_checks(results: Sequence[Checked]) -> None:
    """Under the name of the kernel where there are several."""
    told = [pair for one in results for pair in advice_on_check(one)]
    for label, found in told:
        if len(told) > 1:
            print_line(f"{label}:")
        print_advice(found)


def subject_of_check(checked: Checked, at: int) -> Subject | None:
    prepared, counters = checked.prepared, checked.executions[at].counters
    if not prepared or not counters:
        return None
    source = prepared.request.source
    changeable = not is_ptx(source.text) and not source.is_python

    def watched(watch: Watch) -> Execution:
        """The launches before it, and a block of its own."""
        machine, trial, written = CpuMachine(), prepared.trials.runs[0], Written()
        arrays = fresh(trial)
        for step in prepared.steps[:at]:
            launch_step(step, trial, machine, arrays, written)
        return launch_step(prepared.steps[at], trial, machine, arrays, written, watch=watch)

    def tried(text: str, block: Dim3 | None) -> Tried:
        return check_changed(prepared, at, text, block)

    return Subject(
        prepared.steps[at].binary,
        counters,
        watched,
        source.text if changeable else "",
        tried if changeable else None,
    )


def check_changed(prepared: Prepared, at: int, text: str, block: Dim3 | None) -> Tried:
    """The same check with another source, and blocks of other extents in one launch."""
    request = prepared.request
    launches = [*request.launches]
    if block:
        launches[at] = replace(launches[at], block=block)
    again = replace(request, source=replace(request.source, text=text), launches=tuple(launches))
    try:
        done = perform(prepare(again), CpuMachine(orders=2))
    except CheckFailed:
        return Tried(False)
    if not done.outcome.ok:
        return Tried(False)
    return Tried(True, done.executions[at].counters, done.steps[at].binary.resources)


def advice_on_rung(inspection: Inspection) -> dict[str, list[Advice]]:
    """ "schedule" and "twin" -> advice on the rung's own launch."""
    workload = inspection.workload
    return {
        form: advise(subject_of_rung(inspection.own(form), workload, len(launches) == 1))
        for form, launches in inspection.kernels.items()
    }


def print_advice_on_rung(inspection: Inspection) -> None:
    """Advice on schedule and twin."""
    print_line(f"{inspection.name} on {inspection.workload}, compiled for {inspection.arch}")
    for form, found in advice_on_rung(inspection).items():
        print_line()
        print_line(f"{form}:")
        print_advice(found)


def subject_of_rung(metrics: Metrics, workload: Workload, alone: bool) -> Subject:
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
