# pyright: strict
"""Whether a result needs a mechanism: its kernel is run again with what the mechanism delivers thrown away.

A kernel may execute `ldmatrix` or a product and ignore what it gives. So the PTX is changed: a load gives
zeros, a product adds nothing, a copy does not happen. Each element of the result that was not zero has to
change.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Callable, Iterator, Sequence

import numpy as np

from tir_schedules.check.preparing import Step
from tir_schedules.check.session import Checked, launch_all
from tir_schedules.errors import CheckFailed
from tir_schedules.machines.cpu import CpuMachine

SPACES = r"(?!\S*\.(?:global|param|local|const))"
OPERAND = r"(\{[^}]*\}|[^\s,{]+)"
GUARD = r"(?P<guard>@!?%\w+\s+)?"


def form(opcode: str, operands: int, rest: str = "") -> re.Pattern[str]:
    """An instruction with its guard and its first operands as groups 2, 3, ..."""
    commas = r"\s*,\s*".join([OPERAND] * operands)
    return re.compile(rf"{GUARD}\b{opcode}\s+{commas}{rest}[^;]*;")


SHARED = form(rf"(?:ld{SPACES}\.[\w.:]+|ldmatrix\.[\w.:]+)", 1, r"\s*,\s*\[")
LDMATRIX = form(r"ldmatrix\.[\w.:]+", 1)
SHUFFLE = form(r"shfl\.[\w.:]+", 1)
MMA = form(r"w?mma\.(?!load|store)[\w.:]*(?:sync)[\w.:]*", 4)
WGMMA = re.compile(r"\bwgmma\.mma_async[^;]*;")
ASYNC = re.compile(rf"{GUARD}\bcp\.async\.c[ag]\.[^;]*;")


def width_of(ptx: str, register: str) -> str:
    """Bits of a register, from the declaration of its prefix."""
    prefix = register.rstrip("0123456789")
    match = re.search(rf"\.reg \.[a-z]+(\d+)\s+{re.escape(prefix)}<", ptx)
    return match[1] if match else "32"


def names_in(operand: str) -> list[str]:
    """Registers of an operand: one, a vector in braces, or `%r1|%p1`, whose second is a predicate."""
    return [name.strip().partition("|")[0] for name in operand.strip("{}").split(",")]


def moves(ptx: str, guard: str | None, pairs: Sequence[tuple[str, str]]) -> str:
    return "".join(
        f" {guard or ''}mov.b{width_of(ptx, to)} {to}, {value};"
        for to, value in pairs
        if to != value and to != "_"
    )


def zeroed(ptx: str) -> Callable[[re.Match[str]], str]:
    """An instruction, and zeros in place of what it gives."""
    return lambda one: one[0] + moves(ptx, one["guard"], [(name, "0") for name in names_in(one[2])])


def unadded(ptx: str) -> Callable[[re.Match[str]], str]:
    """D = C in place of D = A B + C."""
    return lambda one: moves(ptx, one["guard"], [*zip(names_in(one[2]), names_in(one[5]))]) or ";"


Change = Callable[[str], str]
NEEDS: dict[str, tuple[str, Change]] = {
    "shared memory": ("what is loaded from shared memory", lambda ptx: SHARED.sub(zeroed(ptx), ptx)),
    "ldmatrix": ("what ldmatrix loads", lambda ptx: LDMATRIX.sub(zeroed(ptx), ptx)),
    "shuffles": ("what shuffles hand over", lambda ptx: SHUFFLE.sub(zeroed(ptx), ptx)),
    "mma": ("what mma computes", lambda ptx: MMA.sub(unadded(ptx), ptx)),
    "wgmma": ("what wgmma computes", lambda ptx: WGMMA.sub("", ptx)),
    "cp.async": ("what cp.async copies", lambda ptx: ASYNC.sub("", ptx)),
}
"""Mechanisms by name: what they deliver, in words, and PTX in which it is thrown away."""


def unneeded(what: str, checked: Checked, machine: CpuMachine) -> Iterator[str]:
    """A line for each array of a result that has elements that are the same without a mechanism."""
    delivered, change = NEEDS[what]
    prepared = checked.prepared
    assert prepared is not None, "it has run"
    trial = prepared.trials.runs[0]
    steps = [changed(step, change) for step in prepared.steps]
    try:
        _, arrays, _ = launch_all(steps, trial, machine, False)
    except CheckFailed:  # it cannot run without the mechanism
        return
    judged = dict.fromkeys(key.partition("[")[0] for key in trial.truths)
    for name in (name for name in judged if name in checked.outputs):
        before, after = checked.outputs[name], arrays[name]
        told = before.astype(float) != 0
        left = int(np.count_nonzero(told & (before == after)))
        if left:
            yield f"{left:,} of {int(told.sum()):,} elements of {name} are the same without {delivered}"


def changed(step: Step, change: Change) -> Step:
    return replace(step, binary=replace(step.binary, ptx=change(step.binary.ptx)))
