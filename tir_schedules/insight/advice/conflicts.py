"""Bank conflicts of an array in shared memory: how far padding or an XOR swizzle takes them away, by
replaying all accesses to it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Iterable, Iterator, Sequence

import numpy as np

from tir_schedules.insight.advice.arrays import SharedArray, arrays_of
from tir_schedules.insight.advice.items import Advice, each, listed, plural
from tir_schedules.insight.advice.layouts import (
    Layout,
    declared_rows,
    keeps_rows,
    paddings,
    possible_rows,
    replayed,
    swizzles,
)
from tir_schedules.insight.advice.subject import Line, Recording, Subject
from tir_schedules.insight.metrics.counting import SHARED, total

LEAST_GAIN = 0.25
"""Of the wavefronts beyond the ideal ones: what takes less of them away is no remedy."""

STATIC_LIMIT = 48 << 10
"""Bytes of shared memory that a kernel may declare."""

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
        held = subject.held(subject.shared + more)
        static = subject.binary.resources.shared + (0 if array.dynamic else more)
        if static > max(STATIC_LIMIT, subject.binary.resources.shared) or (held and not held.blocks):
            continue
        one = Replay(layout, replayed(table, array, layout), more, held.blocks if held else None)
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
    before, after = by_line(lines, kinds, now, table, ideal), []
    for one in found:
        after.append(by_line(lines, kinds, one.cost, table, ideal))
    worst = max(before, key=lambda key: before[key][0] - before[key][1])
    own = worst[0][0]
    parts = [
        f"{kind} on {listed([line], own)} take {each(cost, requests)} per request, {each(least, requests)}"
        " would do"
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


def by_line(
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
        f"{kind} on {listed([line], own)}: {each(before[line, kind][0], requests)} -> {each(cost, requests)}"
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
