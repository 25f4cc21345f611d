"""One launch in several orders of blocks and warps: what all of them showed."""

from __future__ import annotations

from dataclasses import replace
from typing import Iterable

import numpy as np

from tir_schedules.machines.cpu.findings import ROUNDED
from tir_schedules.machines.cpu.invocation import EXPONENTS, Launch
from tir_schedules.model.findings import KINDS, Finding, Location
from tir_schedules.model.machine import Execution
from tir_schedules.model.workload import Arguments

ROUNDING = 1 << 10
"""How many units of the last place sums may differ by whose addends come in any order: units of the largest
value that the sum has had."""

MOST = 1 / 8
"""What part of that value at most: a unit of a half or bfloat16 is large."""

SAME = 1 << 6
"""How many those may differ by that several threads have stored, each with its own rounding."""


def largest_of(launch: Launch) -> dict[str, np.ndarray]:
    """Room for the largest magnitude that is stored in each element: of outputs that the kernel may add up in
    any order."""
    if not launch.kernel.lowered.any_order:
        return {}
    arrays = {name: launch.arguments[name] for name in launch.outputs}
    return {name: np.zeros(array.size) for name, array in arrays.items() if array.dtype.name in EXPONENTS}


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
    """The finding that two orders left other values in an output. Sums whose addends come in any order may
    differ by rounding, and so may what several threads have stored."""
    one = launch.arguments[name]
    same = (one == other) | ((one != one) & (other != other))
    rounded = any(note.kind == "same_value" and ROUNDED in note.message for note in execution.notes)
    if not same.all() and one.dtype.name in EXPONENTS and (name in launch.largest or rounded):
        a, b = one.astype(float), other.astype(float)
        size, part = np.maximum(np.abs(a), np.abs(b)), SAME * unit_of(one.dtype)
        if name in launch.largest:
            size = np.maximum(size, launch.largest[name].reshape(size.shape))
            part = min(ROUNDING * unit_of(one.dtype), MOST)
        with np.errstate(invalid="ignore"):
            same |= (np.abs(a - b) <= part * size) & np.isfinite(size)
    if same.all():
        return None
    index = int(np.argmin(same.ravel()))
    values = f"{one.ravel()[index]} or {other.ravel()[index]}"
    message = f"{name}[{index}] is {values}, as blocks and warps take turns in one order or another"
    location = execution.writer(name, index) or Location(0)
    label = launch.binary.kernel.label
    return Finding("order_dependent", message, label, location, (0, 0, 0), 0, 0, brief=message)


def unit_of(dtype: np.dtype) -> float:
    """The unit of the last place of 1."""
    return 2.0 ** (EXPONENTS[dtype.name] + 1 - 8 * dtype.itemsize)
