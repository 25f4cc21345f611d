"""Bank conflicts of an array in shared memory: how far padding or an XOR swizzle takes them away, by
replaying all accesses to it.

Arrays are as the PTX declares them, or as addresses tell them apart. Other layouts of one are rows further
apart, or swizzled; what the recorded accesses would cost in them is counted.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from math import prod
from typing import Iterable, Iterator, Sequence

import numpy as np

from tir_schedules.check.expressions import whole
from tir_schedules.errors import BadInput
from tir_schedules.insight.advice.subject import (
    Advice,
    Line,
    Recording,
    Subject,
    active,
    costs,
    list_lines,
    mean,
)
from tir_schedules.insight.banks.requests import shared_variables
from tir_schedules.insight.banks.wavefronts import LINE
from tir_schedules.insight.metrics.counting import SHARED, total
from tir_schedules.insight.metrics.formats import plural
from tir_schedules.machines.cpu.abi import Counting
from tir_schedules.machines.cpu.extents import source_name
from tir_schedules.model.gpus import STATIC_SHARED

LEAST_GAIN = 0.25
"""Share of the wavefronts beyond the ideal ones. A change that saves less is not a remedy."""

SHOWN = 3
"""Lines that are named, of one array."""

VERBS = {
    "shared_load": "loads", "shared_store": "stores", "ldmatrix": "loads", "shared_cp_async": "copies",
    "shared_atomic": "atomics", "wgmma": "products",
}  # fmt: skip


@dataclass(frozen=True)
class Replay:
    """cost: wavefronts of each record in a layout. more: bytes of shared memory. blocks: of an SM, None where
    that is not known."""

    layout: Layout
    cost: np.ndarray
    more: int
    blocks: int | None

    @property
    def total(self) -> int:
        return int(self.cost.sum())


def conflicts(subject: Subject, recording: Recording) -> Iterator[Advice]:
    """Advice for each array whose accesses take more wavefronts than without conflicts."""
    scale = recording.scale(SHARED)
    for array in arrays_of(subject, recording):
        table = recording.records.table[array.chosen]
        now, ideal = (table[name].astype(np.int64) * table["times"] for name in ("cost", "ideal"))
        if now.sum() <= ideal.sum():
            continue
        wmma = [number for number in set(table["counter"].tolist()) if is_wmma(subject, recording, number)]
        fragments = table[np.array([number in wmma for number in table["counter"].tolist()], bool)]
        found: list[Replay] = []
        for rows in (declared_rows(array), possible_rows(array, table)):
            for layouts in (paddings, swizzles) if not found else ():
                those = [
                    one
                    for one in layouts(array, table, rows)
                    if keeps_rows(fragments, array, one)
                    and (one.pitch >= one.row or scale == recording.blocks)
                ]
                one = best(subject, array, table, those)
                least = LEAST_GAIN * (now.sum() - ideal.sum())
                found += [one] if one and now.sum() - one.total >= least else []
        found.sort(key=lambda one: (one.total, -(one.blocks or 0)))
        yield advice(subject, recording, array, found, scale)


def best(subject: Subject, array: SharedArray, table: np.ndarray, layouts: Iterable[Layout]) -> Replay | None:
    """The layout with the fewest wavefronts, of those the one that takes the least memory."""
    found: Replay | None = None
    for layout in layouts:
        more = layout.more(array.size)
        held = subject.held(subject.binary.shared_bytes + more)
        static = subject.binary.resources.shared + (0 if array.dynamic else more)
        if static > max(STATIC_SHARED, subject.binary.resources.shared) or (held and not held.blocks):
            continue
        one = Replay(layout, replay(table, array, layout), more, held.blocks if held else None)
        if found is None or (one.total, one.more) < (found.total, found.more):
            found = one
    return found


def is_wmma(subject: Subject, recording: Recording, counter: int) -> bool:
    """Whether it is an instruction that takes rows at one distance."""
    ptx_line = recording.records.locations[counter].ptx_line
    return "wmma." in subject.binary.ptx.split("\n", ptx_line)[ptx_line - 1]


def advice(
    subject: Subject, recording: Recording, array: SharedArray, found: Sequence[Replay], scale: int
) -> Advice:
    table = recording.records.table[array.chosen]
    now, ideal = (table[name].astype(np.int64) * table["times"] for name in ("cost", "ideal"))
    lines = [recording.lines[at] for at in array.chosen.tolist()]
    kinds = [VERBS[str(recording.kinds[at])] for at in array.chosen.tolist()]
    before, after = group_by_line(lines, kinds, now, table, ideal), []
    for one in found:
        after.append(group_by_line(lines, kinds, one.cost, table, ideal))
    worst = max(before, key=lambda key: before[key][0] - before[key][1])
    own = worst[0][0]
    parts = [
        f"{kind} on {list_lines([line], own)} take {mean(cost, requests)} per request,"
        f" {mean(least, requests)} would do"
        for (line, kind), (cost, least, requests) in before.items()
        if cost > least
    ]
    costs = f"{now.sum() * scale:,} wavefronts where {ideal.sum() * scale:,} would do"
    where = recording.where(scale)
    more = f"; and {len(parts) - SHOWN} more" if len(parts) > SHOWN else ""
    reason = f"{array.shown}: {costs}{where}: {'; '.join(parts[:SHOWN])}{more}"
    remedies = tuple(
        remedy(subject, array, one, changes, before, scale, own) for one, changes in zip(found, after)
    )
    saved = int(now.sum() - found[0].total) * scale if found else 0
    facts: dict[str, object] = {
        "array": array.name, "bytes": array.size, "before": int(now.sum()) * scale,
        "ideal": int(ideal.sum()) * scale, "layouts": [facts_of(one, scale) for one in found],
        "lines": {f"{line[0]}:{line[1]} {kind}": cells for (line, kind), cells in before.items()},
    }  # fmt: skip
    of_array = int(now.sum()) * scale if scale == recording.blocks else None
    tried = try_padding(subject, array, found, of_array)
    return Advice("bank conflicts", worst[0], reason, remedies, tried, saved, "wavefronts", facts)


Costs = dict[tuple[Line, str], tuple[int, int, int]]
"""Line and kind of access -> wavefronts, ideal ones, requests."""


def group_by_line(
    lines: Sequence[Line], kinds: Sequence[str], cost: np.ndarray, table: np.ndarray, ideal: np.ndarray
) -> Costs:
    found: Costs = {}
    for key, *cells in zip(zip(lines, kinds), cost.tolist(), ideal.tolist(), table["times"].tolist()):
        one, two, three = found.get(key, (0, 0, 0))
        found[key] = (one + cells[0], two + cells[1], three + cells[2])
    return found


def remedy(
    subject: Subject, array: SharedArray, one: Replay, after: Costs, before: Costs, scale: int, own: str
) -> str:
    """ "pad rows of 32 floats by 1: 64 wavefronts; 128 bytes more shared memory, still 2 blocks per SM"."""
    changes = [
        f"{kind} on {list_lines([line], own)}: {mean(before[line, kind][0], requests)}"
        f" -> {mean(cost, requests)}"
        for (line, kind), (cost, _, requests) in after.items()
        if cost != before[line, kind][0]
    ][:SHOWN]
    told = f"{what(array, one.layout)}: {one.total * scale:,} wavefronts ({', '.join(changes)} per request)"
    return f"{told}; {price(subject, one)}"


def what(array: SharedArray, layout: Layout) -> str:
    """The layout, in elements where their type is known."""
    if layout.piece:
        alike = f"row / {layout.alike}" if layout.alike > 1 else "row"
        return (
            f"XOR swizzle, pieces of {layout.piece} bytes in rows of {layout.row}: piece ^ {alike} %"
            f" {layout.pieces}"
        )
    size, noun = (array.declaration.element, array.declaration.type) if array.declaration else (1, "byte")
    size, noun = (size, noun) if layout.row % size == 0 and layout.pitch % size == 0 else (1, "byte")
    row, by = layout.row // size, (layout.pitch - layout.row) // size
    if by > 0 and layout.row not in declared_rows(array):
        return f"leave {plural(by, noun)} free after every {row}"
    return f"{'pad' if by > 0 else 'cut'} rows of {plural(row, noun)} by {abs(by)}"


def price(subject: Subject, one: Replay) -> str:
    bytes_ = f"{plural(abs(one.more), 'byte')} {'more' if one.more >= 0 else 'less'} shared memory"
    bytes_ = bytes_ if one.more else "no more shared memory"
    held = subject.held()
    if one.blocks is None or not held:
        return bytes_
    blocks = f"{plural(one.blocks, 'block')} per SM"
    return (
        f"{bytes_}, still {blocks}" if one.blocks == held.blocks else f"{bytes_}, {blocks}, not {held.blocks}"
    )


def facts_of(one: Replay, scale: int) -> dict[str, object]:
    layout = one.layout
    kind = "swizzle" if layout.piece else "padding"
    return {
        "layout": kind, "row": layout.row, "pitch": layout.pitch, "piece": layout.piece,
        "alike": layout.alike, "wavefronts": one.total * scale, "more_bytes": one.more,
        "blocks_per_sm": one.blocks,
    }  # fmt: skip


def try_padding(subject: Subject, array: SharedArray, found: Sequence[Replay], before: int | None) -> str:
    """What became of the padding in a copy of the source, where that declares rows. before: wavefronts of the
    array in the launch; None: those of all arrays are told."""
    one = next((one for one in found if not one.layout.piece), None)
    declaration = array.declaration
    if not one or not declaration or len(declaration.extents) < 2 or not subject.tried:
        return ""
    by, rest = divmod(one.layout.pitch - one.layout.row, declaration.element)
    if rest:
        return ""
    last = declaration.extents[-1]
    padded = str(int(last) + by) if last.isdigit() else f"({last}) + {by}"
    end = declaration.end
    opening = subject.source.rindex("[", 0, end)
    made = subject.tried(f"{subject.source[:opening]}[{padded}]{subject.source[end + 1 :]}", None)
    if not made.right or not made.counters:
        return ""
    was, now = (total(counters.accesses, SHARED).cost for counters in (subject.counters, made.counters))
    if now >= was:
        return ""
    before = was if before is None else before
    shown = re.sub(r"\s+", " ", f"{array.name}[{']['.join((*declaration.extents[:-1], padded))}]")
    return f"tried {shown}: right, {before + now - was:,} wavefronts in place of {before:,}"


ROW_BYTES = 16
"""Bytes of a row of an 8x8 matrix of ldmatrix, and the alignment of its address."""

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
    """The declaration of an array in CUDA. extents: as they are written. end: where in the source the last
    extent ends. values: the extents, if the source says what they are."""

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
    shared = shared_variables(subject.binary)
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
            declaration = find_declaration(subject.source, name, min(own, default=-1))
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


def find_declaration(source: str, name: str, first: int) -> Declaration | None:
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


PADDINGS = (0, 1, 2, 4, 8)
"""Paddings of a row, in units of the alignment that its accesses need."""

STRIDES = 6
"""Distances of lanes that are tried as rows, the commonest first."""

ROWS_OF_MATRICES = [*range(8), *range(16, 24)]
"""Lanes that name the rows of a fragment, one below the other: of matrices as ldmatrix reads them."""

ROWS_OF_LANES = [*range(0, 32, 4)]
"""The same of accesses in which each lane has its own element."""

SHIFTS = (1, 2, 4, 8)
"""Neighbouring rows that are swizzled alike."""


@dataclass(frozen=True)
class Layout:
    """row, pitch: bytes of a row as it is, and from row to row. piece: bytes that an XOR swizzle moves
    together, 0 for none; alike: neighbouring rows that it treats alike."""

    row: int
    pitch: int
    piece: int = 0
    alike: int = 1

    @property
    def pieces(self) -> int:
        """Pieces of a row that change places: a power of two."""
        return 1 << (self.row // self.piece).bit_length() - 1

    def places(self, offsets: np.ndarray) -> np.ndarray:
        """Where bytes come to lie. offsets: from the start of the array, as it is."""
        rows, columns = offsets // self.row, offsets % self.row
        if self.piece:
            columns = columns ^ rows // self.alike % self.pieces * self.piece
        return rows * self.pitch + columns

    def more(self, size: int) -> int:
        """Bytes of shared memory beyond the size that the array has."""
        return -(-size // self.row) * (self.pitch - self.row)


def replay(table: np.ndarray, array: SharedArray, layout: Layout) -> np.ndarray:
    """Wavefronts of each record that touches the array. table: those records, which stay as they are."""
    moved = table.copy()
    offsets = np.where(active(table["mask"]), table["address"].astype(np.int64) - array.start, 0)
    places = layout.places(offsets) + array.start
    moved["address"] = np.where(active(table["mask"]), places, 0)
    return costs(moved)


def keeps_rows(table: np.ndarray, array: SharedArray, layout: Layout) -> bool:
    """Whether the rows of a fragment, which one wmma instruction takes at one distance, still are at one.
    table: the accesses of such instructions."""
    offsets = table["address"].astype(np.int64) - array.start
    moved, matrices = layout.places(offsets), table["counting"] == Counting.ROWS_COUNT
    for part, rows in ((matrices, ROWS_OF_MATRICES), (~matrices, ROWS_OF_LANES)):
        steps = np.diff(moved[part][:, rows], axis=1)
        if (steps != steps[:, :1]).any():
            return False
    return True


def paddings(array: SharedArray, table: np.ndarray, rows: Sequence[int]) -> Iterator[Layout]:
    """Rows further apart, or, where the end of each is never touched, nearer. rows: bytes that are one."""
    for row in rows:
        used = used_bytes(array, table, row)
        for start in {row, used}:
            for padding in PADDINGS:
                pitch = start + padding * array.unit
                if pitch != row and pitch - row <= LINE:
                    yield Layout(row, pitch)


def swizzles(array: SharedArray, table: np.ndarray, rows: Sequence[int]) -> Iterator[Layout]:
    """Rows of a power of two of bytes whose pieces change places."""
    for row in rows:
        if row & (row - 1) or row < 2 * array.unit:
            continue
        for alike in SHIFTS:
            yield Layout(row, row, array.unit, alike)


def declared_rows(array: SharedArray) -> list[int]:
    row = array.declaration.row(array.size) if array.declaration else None
    return [row] if row and row % array.unit == 0 else []


def possible_rows(array: SharedArray, table: np.ndarray) -> list[int]:
    """Bytes that may be a row: powers of two, and distances between neighbouring lanes."""
    powers = [1 << k for k in range(3, 13)]
    both = active(table["mask"]) & np.roll(active(table["mask"]), -1, 1)
    both[:, -1] = False
    address = table["address"].astype(np.int64)
    apart = np.abs(np.roll(address, -1, 1) - address)[both]
    seen = Counter(apart.tolist())
    strides = [stride for stride, _ in seen.most_common() if stride > array.unit][:STRIDES]
    candidates = dict.fromkeys([*strides, *powers])
    return [row for row in candidates if row % array.unit == 0 and array.unit <= row <= array.size // 2]


def used_bytes(array: SharedArray, table: np.ndarray, row: int) -> int:
    """Bytes of a row up to the last that is touched, in whole units."""
    lanes = active(table["mask"])
    ends = (table["address"].astype(np.int64) - array.start) % row + table["width"].astype(np.int64)[:, None]
    last = min(int(ends[lanes].max()), row)
    return -(-last // array.unit) * array.unit
