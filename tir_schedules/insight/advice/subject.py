"""What advice is about, and what it is made of: a counted launch and ways to run it again, changed or not,
and one piece of advice with its numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Callable, Sequence

import numpy as np

from tir_schedules.compiler.source_text import shown_name
from tir_schedules.errors import BadInput
from tir_schedules.insight.metrics.counting import UNITS, occupancy_of
from tir_schedules.machines.cpu.watching import recount
from tir_schedules.model.counters import Counters
from tir_schedules.model.gpus import Occupancy
from tir_schedules.model.kernel import Binary, Resources
from tir_schedules.model.launch import Dim3
from tir_schedules.model.machine import Execution, Records, Watch

LIMIT = 1 << 17
"""Accesses of the block that differ: 70 MB of them."""

Line = tuple[str, int]
"""File and line of a source."""


@dataclass(frozen=True)
class Tried:
    """What became of a changed source. right: whether it compiles, and is as right as the kernel was."""

    right: bool
    counters: Counters | None = None
    resources: Resources | None = None


@dataclass(frozen=True)
class Subject:
    """One launch.

    counters: of the whole of it. watched: executes one block alone. source: CUDA text that can be changed, ""
    if there is none. tried: compiles, executes, verifies and counts a changed source, in blocks of other
    extents where these are given.
    """

    binary: Binary
    counters: Counters
    watched: Callable[[Watch], Execution] = field(repr=False)
    source: str = field(default="", repr=False)
    tried: Callable[[str, Dim3 | None], Tried] | None = field(default=None, repr=False)

    @property
    def file(self) -> str:
        """What messages call its source."""
        return shown_name(self.binary.kernel)

    @property
    def by_warpgroups(self) -> bool:
        """Whether it has wgmma, and so hides latency by what is in flight, not by more warps."""
        return self.counters.mix.get("wgmma", 0) > 0

    def held(self, shared: int | None = None, registers: int | None = None) -> Occupancy | None:
        """See `occupancy_of`; None where the architecture's figures are not known."""
        try:
            return occupancy_of(self.binary, shared, registers)
        except BadInput:
            return None


@dataclass(frozen=True)
class Recording:
    """All accesses that a block made. blocks: of the launch."""

    records: Records
    blocks: int
    counters: Counters

    @cached_property
    def kinds(self) -> np.ndarray:
        """Class of access of each record."""
        return np.array(
            [self.records.kinds[number] for number in self.records.table["counter"].tolist()], "U16"
        )

    @cached_property
    def lines(self) -> list[Line]:
        """Source line of each record."""
        places = {number: (at.file, at.line) for number, at in self.records.locations.items()}
        return [places[number] for number in self.records.table["counter"].tolist()]

    def scale(self, kinds: Sequence[str]) -> int:
        """What this block's costs of some classes of access are multiplied by to be the launch's: the number
        of its blocks, where they agree with the counters line by line; else 1."""
        kinds = [kind for kind in kinds if kind not in UNITS]
        table = self.records.table
        mine: dict[tuple[Line, str], int] = {}
        for line, kind, cost in zip(
            self.lines, self.kinds.tolist(), (table["cost"].astype(np.int64) * table["times"]).tolist()
        ):
            if kind in kinds:
                mine[line, kind] = mine.get((line, kind), 0) + cost * self.blocks
        counted = {
            ((line.file, line.line), kind): access.cost
            for line in self.counters.lines
            for kind, access in line.accesses.items()
            if kind in kinds
        }
        return self.blocks if mine == counted else 1

    def where(self, scale: int) -> str:
        """Words for numbers that are of one block alone."""
        return "" if scale == self.blocks else " (in block 0,0,0)"


def record(subject: Subject) -> Recording | None:
    """The accesses of the first block; None where they are too many, or where the block waits for others."""
    records = subject.watched(Watch(limit=LIMIT, every=True)).records
    if records is None or records.lost or not records.ended:
        return None
    return Recording(records, prod(subject.binary.kernel.grid), subject.counters)


def costs(table: np.ndarray) -> np.ndarray:
    """What all of each record's accesses would cost with the addresses that it has now."""
    recount(table)
    return table["cost"].astype(np.int64) * table["times"]


def active(mask: np.ndarray) -> np.ndarray:
    """Masks as rows of 32 booleans."""
    return (mask[:, None] >> np.arange(32, dtype=np.uint32) & 1).astype(bool)


SECOND_BOUND = re.compile(r"__launch_bounds__\s*\(([^(),]+(?:\([^()]*\))?[^(),]*),[^()]*\)")
AXES = {"x": "y", "y": "x"}
INDEX = re.compile(r"\b(threadIdx|blockDim)\s*\.\s*([xy])\b")


def transpose_threads(source: str, block: Dim3, row: int) -> tuple[str, Dim3] | None:
    """The source whose neighbouring threads do what threads `row` apart did: x and y change places; in a
    block of one dimension, columns of its threads do. None where it does not ask for its threads."""
    if not INDEX.search(source):
        return None
    if block[1] > 1:
        return INDEX.sub(lambda match: f"{match[1]}.{AXES[match[2]]}", source), (block[1], block[0], block[2])
    columns = block[0] // row
    index = f"(threadIdx.x % {columns} * {row} + threadIdx.x / {columns})"
    return re.sub(r"\bthreadIdx\s*\.\s*x\b", index, source), block


def without_second_bound(source: str) -> str | None:
    """The source without the least number of blocks that `__launch_bounds__` asks for; None where there is
    none."""
    changed = SECOND_BOUND.sub(r"__launch_bounds__(\1)", source)
    return changed if changed != source else None


@dataclass(frozen=True)
class Advice:
    """reason: what a line costs and why, in numbers. remedies: what costs less and its price, as a replay of
    the recorded accesses or the occupancy rules tell; empty where none was found. tried: what became of the
    first in a changed copy of the source; empty where it was not tried. saved: wavefronts or sectors (`unit`)
    of the launch. facts: the numbers, by name."""

    kind: str
    place: Line | None
    reason: str
    remedies: tuple[str, ...] = ()
    tried: str = ""
    saved: int = 0
    unit: str = ""
    facts: dict[str, object] = field(default_factory=dict)

    @property
    def where(self) -> str:
        return f"{self.place[0]}:{self.place[1]}: " if self.place and self.place[1] else ""

    def as_json(self) -> dict[str, object]:
        place = {"file": self.place[0], "line": self.place[1]} if self.place else {}
        return {
            "kind": self.kind, **place, "reason": self.reason, "remedies": self.remedies, "tried": self.tried,
            "saved": self.saved, "unit": self.unit, **self.facts,
        }  # fmt: skip


def mean(cost: int, requests: int) -> str:
    """The mean cost of a request: "4", or "3.5"."""
    return f"{cost / requests:.1f}".removesuffix(".0") if requests else "0"


def list_lines(lines: Sequence[Line], own: str) -> str:
    """ "lines 3, 5 and common.cuh:7"; own: the file that need not be named."""
    names = [str(line) if file == own else f"{file}:{line}" for file, line in sorted(set(lines))]
    text = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    return f"line{'s' if len(names) > 1 else ''} {text}"
