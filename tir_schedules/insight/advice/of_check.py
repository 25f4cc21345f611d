"""Advice on what `check` has run."""

from __future__ import annotations

from dataclasses import replace
from typing import Sequence

from tir_schedules.check.preparing import Prepared, prepare
from tir_schedules.check.session import Checked, Written, fresh, launch, perform
from tir_schedules.compiler.source_text import is_ptx
from tir_schedules.console import print_line
from tir_schedules.errors import CheckFailed
from tir_schedules.insight.advice.advising import advise, print_advice
from tir_schedules.insight.advice.items import Advice
from tir_schedules.insight.advice.subject import Subject, Tried
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.model.execution import Execution, Watch
from tir_schedules.model.launch import Dim3


def advice_on(checked: Checked) -> list[tuple[str, list[Advice]]]:
    """Each launch's kernel and advice; nothing of a check that failed, or that ran on a GPU."""
    if not checked.prepared or not checked.outcome.ok:
        return []
    subjects = [subject_of(checked, at) for at in range(len(checked.steps))]
    return [(one.binary.kernel.label, advise(one)) for one in subjects if one]


def print_all_advice(results: Sequence[Checked]) -> None:
    """Under the name of the kernel where there are several."""
    told = [pair for one in results for pair in advice_on(one)]
    for label, found in told:
        if len(told) > 1:
            print_line(f"{label}:")
        print_advice(found)


def subject_of(checked: Checked, at: int) -> Subject | None:
    prepared, counters = checked.prepared, checked.executions[at].counters
    if not prepared or not counters:
        return None
    source = prepared.request.source
    changeable = not is_ptx(source.text) and not source.file.endswith(".py")

    def watched(watch: Watch) -> Execution:
        """The launches before it, and a block of its own."""
        machine, trial, written = CpuMachine(), prepared.trials[0], Written()
        arrays = fresh(trial)
        for step in prepared.steps[:at]:
            launch(step, trial, machine, arrays, written)
        return launch(prepared.steps[at], trial, machine, arrays, written, watch=watch)

    def tried(text: str, block: Dim3 | None) -> Tried:
        return changed(prepared, at, text, block)

    return Subject(
        prepared.steps[at].binary,
        counters,
        watched,
        source.text if changeable else "",
        tried if changeable else None,
    )


def changed(prepared: Prepared, at: int, text: str, block: Dim3 | None) -> Tried:
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
