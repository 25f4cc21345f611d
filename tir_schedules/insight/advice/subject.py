"""A kernel that advice is about: its launch, counted, and ways to run it again."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Callable, Sequence

import numpy as np

from tir_schedules.compiler.source_text import shown_name
from tir_schedules.errors import BadInput
from tir_schedules.insight.metrics.counting import UNITS
from tir_schedules.machines.cpu.watching import recount
from tir_schedules.model.counters import Counters
from tir_schedules.model.execution import Execution, Records, Watch
from tir_schedules.model.kernel import Binary, Resources
from tir_schedules.model.launch import Dim3
from tir_schedules.model.occupancy import Occupancy, occupancy

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
    where there is none. tried: compiles, executes, verifies and counts a changed source, in blocks of other
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
    def shared(self) -> int:
        """Bytes of shared memory of a block, static and dynamic."""
        return self.binary.resources.shared + self.binary.kernel.dynamic_shared

    @property
    def by_warpgroups(self) -> bool:
        """Whether it has wgmma, and so hides latency by what is in flight, not by more warps."""
        return self.counters.mix.get("wgmma", 0) > 0

    def held(self, shared: int | None = None, registers: int | None = None) -> Occupancy | None:
        """Occupancy, with other bytes of shared memory or registers where they are given; None where the
        architecture's figures are not known."""
        kernel, resources = self.binary.kernel, self.binary.resources
        try:
            return occupancy(
                kernel.arch,
                kernel.block,
                resources.registers if registers is None else registers,
                self.shared if shared is None else shared,
            )
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
