"""Requests to shared memory of a file's kernels, by array and line, as `layout` draws them."""

from __future__ import annotations

import re
from typing import Iterator, Sequence

from tir_schedules.check.preparing import Prepared, Step
from tir_schedules.check.session import Written, fresh, launch
from tir_schedules.errors import BadInput, nearest, shown
from tir_schedules.insight.banks.requests import Pattern, array_at, arrays_of, grouped
from tir_schedules.machines.choice import choose
from tir_schedules.machines.cpu.extents import source_name
from tir_schedules.machines.cpu.library import the_library
from tir_schedules.machines.cpu.machine import linked
from tir_schedules.model.execution import Execution, Request, Watch
from tir_schedules.model.kernel import Binary
from tir_schedules.model.launch import Dim3

LINE = re.compile(r"(?:(.*):)?(\d+)", re.S)
"""How a line is named: its number, or FILE:NUMBER."""


def watched(ready: Prepared, block: Dim3, warp: int) -> Iterator[tuple[Step, Execution]]:
    """Each launch with what one warp of it asks of shared memory, on the first inputs. Only the warp's block
    is executed; what a later launch takes from it comes from a whole run."""
    machine, trial = choose("cpu", 1), ready.trials[0]
    arrays, written = fresh(trial), Written()
    for number, step in enumerate(ready.steps, 1):
        own = {name: array.copy() for name, array in arrays.items()}
        yield step, launch(step, trial, machine, own, {**written}, watch=Watch(block, warp))
        if number < len(ready.steps):
            launch(step, trial, machine, arrays, written)


def patterns_in(binary: Binary, requests: Sequence[Request]) -> list[Pattern]:
    """By array and line, in the order in which they first occur."""
    arrays, dynamic = arrays_of(binary), dynamic_name(binary)
    return grouped(((one, "", array_at(arrays, one) or dynamic) for one in requests), by_line=True)


def dynamic_name(binary: Binary) -> str:
    """What the source calls its dynamic shared memory; empty where it has none, or several names for it."""
    variables = linked(the_library(), binary.ptx, binary.kernel.entry).lowered.kernel.variables.values()
    names = {source_name(one.name) for one in variables if one.space == "shared" and one.extern}
    return names.pop() if len(names) == 1 else ""


def chosen(patterns: Sequence[Pattern], what: str) -> list[Pattern]:
    """Those of an array or a line. BadInput where there are none, with those there are."""
    found = [pattern for pattern in patterns if what in (pattern.variable, pattern.name)]
    line = None if found else LINE.fullmatch(what)
    if line:
        found = [one for one in patterns if one.locations[0].line == int(line[2])]
    if found:
        return found
    names = list(dict.fromkeys(pattern.name for pattern in patterns))
    lines = sorted({one.locations[0].line for one in patterns})
    raise BadInput(
        f"this warp touches no shared array or line {shown(what)}{nearest(what, names)}; it touches"
        f" {', '.join(names)} in lines {', '.join(map(str, lines))}"
    )
