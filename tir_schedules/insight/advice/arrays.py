"""The arrays of a block in shared memory: as the PTX declares them, or as addresses tell them apart."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod

import numpy as np

from tir_schedules.check.expressions import whole
from tir_schedules.errors import BadInput
from tir_schedules.insight.advice.subject import Recording, Subject, active
from tir_schedules.insight.metrics.counting import SHARED
from tir_schedules.machines.cpu.abi import Counting
from tir_schedules.machines.cpu.extents import source_name
from tir_schedules.machines.cpu.library import the_library
from tir_schedules.machines.cpu.machine import linked

ROW_BYTES = 16
"""Of an 8x8 matrix of ldmatrix; as many bytes its address is aligned to."""

ELEMENTS = {
    "float": 4, "int": 4, "unsigned": 4, "unsigned int": 4, "uint": 4, "uint32_t": 4, "int32_t": 4,
    "double": 8, "long long": 8, "half": 2, "__half": 2, "__nv_bfloat16": 2, "nv_bfloat16": 2, "short": 2,
    "char": 1, "unsigned char": 1, "uchar": 1, "uint8_t": 1, "int8_t": 1,
}  # fmt: skip
"""Bytes of the types of elements."""

DECLARED = re.compile(r"__shared__([^;{}()]*(?:\([^)]*\)[^;{}()]*)*);")
EXTENTS = r"(?<![\w.]){name}((?:\s*\[[^\[\]]*\])+)"
CONSTANT = re.compile(
    r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+([^\n]+)$"
    r"|\bconst(?:expr)?\s+(?:unsigned\s+)?int\s+(\w+)\s*=([^;,]+);",
    re.M,
)
DIVISION = re.compile(r"(?<!/)/(?!/)")
QUALIFIERS = re.compile(r"\b(?:__align__|alignas)\s*\([^)]*\)|\b(?:volatile|const|static|__restrict__)\b")


@dataclass(frozen=True)
class Declaration:
    """Of an array in CUDA. extents: as they are written. end: where in the source the last extent ends.
    values: the extents, where the source says what they are."""

    element: int
    type: str
    extents: tuple[str, ...]
    end: int
    values: tuple[int, ...] = ()

    def row(self, size: int) -> int | None:
        """Bytes of a row. None where that is not known, or there are no rows. size: bytes of the array."""
        whole = prod(self.values) * self.element == size
        return self.values[-1] * self.element if len(self.values) > 1 and whole else None


@dataclass(frozen=True)
class SharedArray:
    """chosen: which records touch it. start, size: bytes. unit: what addresses in it must be aligned to.
    element: its bytes, where they are known; type: what the source calls it."""

    name: str
    chosen: np.ndarray
    start: int
    size: int
    unit: int
    dynamic: bool
    declaration: Declaration | None = None

    @property
    def shown(self) -> str:
        if not self.dynamic:
            return self.name
        return f"{self.name or 'dynamic shared memory'}, bytes {self.start} to {self.start + self.size - 1}"


def arrays_of(subject: Subject, recording: Recording) -> list[SharedArray]:
    """Those whose accesses are known. One whose lanes touch other arrays in the same access is left out."""
    table = recording.records.table
    chosen = np.flatnonzero(np.isin(recording.kinds, SHARED))
    if not len(chosen):
        return []
    low, high = bounds(table[chosen])
    kernel = linked(the_library(), subject.binary.ptx, subject.binary.kernel.entry).lowered.kernel
    shared = [variable for variable in kernel.variables.values() if variable.space == "shared"]
    static = [variable for variable in shared if variable.size]
    end = max((variable.offset + variable.size for variable in static), default=0)
    found, taken = [], np.zeros(len(chosen), bool)
    for variable in static:
        begin, stop = variable.offset, variable.offset + variable.size
        touching, inside = (low < stop) & (high > begin), (low >= begin) & (high <= stop)
        taken |= touching
        if touching.any() and (touching == inside).all():
            name = source_name(variable.name)
            part = chosen[inside]
            own = [line for file, line in map(recording.lines.__getitem__, part) if file == subject.file]
            declaration = declared(subject.source, name, min(own, default=-1))
            found.append(
                SharedArray(name, part, begin, variable.size, unit_of(table[part]), False, declaration)
            )
    names = [source_name(variable.name) for variable in shared if not variable.size]
    left = ~taken & (low >= end)
    for part, begin, stop in clusters(table["counter"][chosen[left]], low[left], high[left]):
        those = chosen[left][part]
        unit = unit_of(table[those])
        begin = begin // unit * unit
        found.append(SharedArray(names[0] if len(names) == 1 else "", those, begin, stop - begin, unit, True))
    return found


def bounds(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First byte that each record touches, and the one behind its last."""
    lanes, address = active(table["mask"]), table["address"].astype(np.int64)
    low = np.where(lanes, address, np.iinfo(np.int64).max).min(1)
    return low, np.where(lanes, address, -1).max(1) + table["width"]


def unit_of(table: np.ndarray) -> int:
    """What all addresses must be aligned to: the widest access of a lane."""
    rows = table["counting"] == Counting.ROWS_COUNT
    return int(np.where(rows, ROW_BYTES, table["width"]).max())


def clusters(counters: np.ndarray, low: np.ndarray, high: np.ndarray) -> list[tuple[np.ndarray, int, int]]:
    """Records whose instructions touch overlapping bytes, and those bytes: what they share is one array."""
    spans = []
    for counter in np.unique(counters):
        mine = counters == counter
        spans.append((int(low[mine].min()), int(high[mine].max()), int(counter)))
    merged: list[tuple[int, int, list[int]]] = []
    for begin, stop, counter in sorted(spans):
        if merged and begin < merged[-1][1]:
            first, last, members = merged[-1]
            merged[-1] = (first, max(last, stop), [*members, counter])
        else:
            merged.append((begin, stop, [counter]))
    return [(np.flatnonzero(np.isin(counters, members)), begin, stop) for begin, stop, members in merged]


def declared(source: str, name: str, first: int) -> Declaration | None:
    """The declaration of a shared array; None where it is not found. first: the first line that uses it: of
    several arrays of that name the last before it is meant; -1: of all."""
    found = None
    before = "".join(source.splitlines(keepends=True)[: first if first >= 0 else None])
    for statement in DECLARED.finditer(before):
        for match in re.finditer(EXTENTS.format(name=re.escape(name)), statement[1]):
            words = QUALIFIERS.sub(" ", re.split(r"\[|,", statement[1], maxsplit=1)[0]).split()
            type_, end = " ".join(words[:-1]), statement.start(1) + match.end() - 1
            extents = tuple(text.strip() for text in re.findall(r"\[([^\[\]]*)\]", match[1]))
            known = type_ in ELEMENTS and all(extents)
            values = values_of(extents, before)
            found = Declaration(ELEMENTS[type_], type_, extents, end, values) if known else None
    return found


def values_of(extents: tuple[str, ...], source: str) -> tuple[int, ...]:
    """Extents as numbers, by the macros and constants of the source; none where one is not known."""
    names: dict[str, int] = {}
    try:
        for macro, defined, constant, value in CONSTANT.findall(source):
            text = (defined or value).partition("//")[0].strip()
            try:
                names[macro or constant] = whole(DIVISION.sub("//", text), names, "a constant")
            except BadInput:
                names.pop(macro or constant, None)
        return tuple(whole(DIVISION.sub("//", text), names, "an extent") for text in extents)
    except BadInput:
        return ()
