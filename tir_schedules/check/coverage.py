"""Source lines that no lane executed, and sizes with which some lane does."""

from __future__ import annotations

from dataclasses import replace
from typing import Sequence

from tir_schedules.check.preparing import Prepared, prepare
from tir_schedules.check.session import Checked, Places, launch_all, unreached_by
from tir_schedules.errors import BadInput, CheckFailed
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.model.findings import Location

TRIED = 4
"""Sizes that are made smaller by 1, to see which lines are executed then."""

BUDGET = 1 << 20
"""Instructions a warp may execute meanwhile."""

SHOWN = 8


def describe_unexecuted(checked: Checked) -> str:
    """Lines that no lane executed, the first with its text, and a size that reaches one; "" where there are
    none."""
    lines = checked.outcome.unexecuted
    if not lines:
        return ""
    first, others = lines[0], [str(line.line) for line in lines[1:SHOWN]]
    also = f", nor line{'s' * (len(others) > 1)} {', '.join(others)}" if others else ""
    more = f" and {len(lines) - SHOWN} more" if len(lines) > SHOWN else ""
    size = reaching_size(checked.prepared, lines) if checked.prepared else ""
    reached = f"; --let {size} reaches {'some of them' if others else 'it'}" if size else ""
    return f"no lane executes {first.place}{also}{more}: {first.text.strip()}{reached}"


def reaching_size(prepared: Prepared, lines: Sequence[Location]) -> str:
    """`n=999`, with which a lane executes the most of these lines; "" where none is found."""
    request = prepared.request
    places: Places = {(line.file, line.line): line for line in lines}
    sizes = [(name, value) for name, value in request.sizes.items() if isinstance(value, int) and value > 1]
    left = {}
    for name, value in sizes[:TRIED] if not (request.usual or request.triton) else ():
        smaller = replace(request, sizes={**request.sizes, name: value - 1}, tolerance=1.0, finite=True)
        try:
            again = prepare(smaller)
            done, *_ = launch_all(again.steps, again.trials[0], CpuMachine(budget=BUDGET), True)
        except (BadInput, CheckFailed):
            continue
        left[f"{name}={value - 1}"] = len(unreached_by(done).keys() & places.keys())
    best = min(left, key=lambda size: left[size], default="")
    return best if best and left[best] < len(places) else ""
