"""One launch in several orders of blocks and warps: what all of them showed."""

from __future__ import annotations

from dataclasses import replace
from typing import Iterable

import numpy as np

from tir_schedules.machines.cpu.invocation import Launch
from tir_schedules.model.findings import KINDS, Finding, Location
from tir_schedules.model.machine import Execution
from tir_schedules.model.workload import Arguments

ROUNDING = 1 << 10
"""How many units of the last place sums may differ by whose addends come in any order."""


def combined(first: Execution, others: Iterable[tuple[Execution, Arguments]], launch: Launch) -> Execution:
    """What one launch in several orders showed: the findings of all, each kind and place once; and whether
    they left other values.

    others: each with its arguments, outputs written. Of one at a time, as they are large.
    """
    findings, notes, differences = [*first.findings], [*first.notes], []
    seen = {places(finding) for finding in findings + notes}
    seconds = first.seconds
    for execution, left in others:
        seconds += execution.seconds
        for kept, more in ((findings, execution.findings), (notes, execution.notes)):
            kept += [finding for finding in more if places(finding) not in seen]
            seen.update(map(places, more))
        differences += filter(None, (depends(name, left[name], launch, first) for name in launch.outputs))
    order = list(KINDS)
    findings = sorted([*findings, *differences[:1]], key=lambda finding: order.index(finding.kind))
    return replace(first, findings=tuple(findings), notes=tuple(notes), seconds=seconds)


def places(finding: Finding) -> tuple[object, ...]:
    """What tells a finding from others: its kind, and the lines it is about."""
    lines = (finding.location, finding.other) if finding.other else (finding.location,)
    return finding.kind, frozenset(line.place or line.ptx_line for line in lines)


def depends(name: str, other: np.ndarray, launch: Launch, execution: Execution) -> Finding | None:
    """The finding that two orders left other values in an output. Sums that a kernel adds up atomically may
    differ by rounding."""
    one = launch.arguments[name]
    same = (one == other) | ((one != one) & (other != other))
    if launch.kernel.lowered.float_atomics and one.dtype.kind == "f":
        largest = max(float(np.max(np.abs(a), initial=0, where=np.isfinite(a))) for a in (one, other))
        rounding = ROUNDING * float(np.finfo(one.dtype).eps) * largest
        same |= np.abs(one.astype(float) - other.astype(float)) <= rounding
    if same.all():
        return None
    index = int(np.argmin(same.ravel()))
    values = f"{one.ravel()[index]} or {other.ravel()[index]}"
    message = f"{name}[{index}] is {values}, as blocks and warps take turns in one order or another"
    location = execution.writer(name, index) or Location(0)
    label = launch.binary.kernel.label
    return Finding("order_dependent", message, label, location, (0, 0, 0), 0, 0, brief=message)
