"""Global memory: sectors that accesses take beyond the bytes that lanes ask for, and what takes fewer:
another numbering of threads, wider accesses; and what a block reads again and again."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import Iterator, Sequence

import numpy as np

from tir_schedules.insight.advice.subject import (
    Advice,
    Line,
    Recording,
    Subject,
    active,
    costs,
    list_lines,
    mean,
    transpose_threads,
)
from tir_schedules.insight.metrics.counting import GLOBAL, SECTOR, SHARED, total
from tir_schedules.insight.metrics.formats import plural
from tir_schedules.machines.cpu.abi import BUFFER_SHIFT

ACTIONS = {
    "global_load": "loads", "global_store": "stores", "global_atomic": "atomics", "global_cp_async": "copies",
    "tma_load": "boxes loaded", "tma_store": "boxes stored",
}  # fmt: skip
LEAST_GAIN = 0.1
"""The least share of all sectors of the kernel that another numbering of threads has to save."""

WIDEST = 16
"""Bytes of a lane's access."""

BOXES = "the tile through shared memory, by stmatrix, and out as boxes (TMA): see hgemm/tma_store"
"""What a warpgroup's sums have in place of wider stores."""

OFTEN = 4
"""Times that a block reads the same sectors, from which on that is told."""


def memory(subject: Subject, recording: Recording) -> Iterator[Advice]:
    """Advice for accesses to global memory."""
    scale = recording.scale(GLOBAL)
    settled = set[tuple[Line, str]]()
    for one, lines in [advise_numbering(subject, recording, scale), *advise_widening(recording, scale)]:
        if one:
            yield one
            settled |= lines
    yield from uncoalesced_lines(subject, recording, scale, settled)
    yield from repeated_reads(recording, scale)


def chosen_of(recording: Recording, kinds: Sequence[str]) -> np.ndarray:
    return np.flatnonzero(np.isin(recording.kinds, kinds))


def lines_beyond(recording: Recording) -> dict[tuple[Line, str], tuple[int, int, int, np.ndarray]]:
    """Line and kind of access -> sectors, ideal ones, requests and records, where sectors are not ideal."""
    found: dict[tuple[Line, str], list[int]] = defaultdict(list)
    for at in chosen_of(recording, GLOBAL).tolist():
        found[recording.lines[at], str(recording.kinds[at])].append(at)
    beyond = {}
    for key, places in found.items():
        part = recording.records.table[places]
        times = part["times"].astype(np.int64)
        cost, ideal, requests = (
            int((part["cost"] * times).sum()),
            int((part["ideal"] * times).sum()),
            int(times.sum()),
        )
        if cost > ideal:
            beyond[key] = (cost, ideal, requests, part)
    return beyond


def advise_numbering(
    subject: Subject, recording: Recording, scale: int
) -> tuple[Advice | None, set[tuple[Line, str]]]:
    """Advice to number threads otherwise, and the lines that lose most of what they take too much."""
    beyond, table = lines_beyond(recording), recording.records.table
    nothing: set[tuple[Line, str]] = set()
    if not beyond:
        return None, nothing
    counters = np.unique(table["counter"][chosen_of(recording, GLOBAL)])
    order = best_order(subject, recording, counters)
    now = table["cost"].astype(np.int64) * table["times"]
    before = int(now[np.isin(table["counter"], counters)].sum())
    if not order or before - order.of(counters) <= LEAST_GAIN * before:
        return None, nothing
    others = np.unique(table["counter"][chosen_of(recording, SHARED)])
    shared = order.of(others), int(now[np.isin(table["counter"], others)].sum())
    if shared[0] > shared[1] and (shared[0] - shared[1]) * 2 > before - order.of(counters):
        return None, nothing
    after = sectors_by_line(recording, order)
    settled = {
        key for key, (cost, ideal, _, _) in beyond.items() if (cost - after.get(key, cost)) * 2 > cost - ideal
    }
    worst = max(beyond, key=lambda key: beyond[key][0] - beyond[key][1])
    cost, _, requests, part = beyond[worst]
    total_after = order.of(counters)
    remedy = (
        f"{how(subject, order.row)}: {total_after * scale:,} sectors"
        f" ({worst[1].removeprefix('global_')}s on {list_lines([worst[0]], worst[0][0])}:"
        f" {mean(cost, requests)} -> {mean(after[worst], requests)} per request)"
    )
    if len(others):
        remedy += f"; shared memory takes {shared[0] * scale:,} wavefronts, not {shared[1] * scale:,}"
    reason = (
        f"global memory: {before * scale:,} sectors{recording.where(scale)}: {ACTIONS[worst[1]]} on"
        f" {list_lines([worst[0]], worst[0][0])} take {mean(cost, requests)} per request{apart(part)}"
    )
    facts: dict[str, object] = {"before": before * scale, "after": total_after * scale, "threads": order.row}
    tried = try_order(subject, order.row)
    saved = (before - total_after) * scale
    return Advice("thread order", worst[0], reason, (remedy,), tried, saved, "sectors", facts), settled


def how(subject: Subject, row: int) -> str:
    x, y, _ = subject.binary.kernel.block
    if y > 1:
        return f"swap threadIdx.x and threadIdx.y, in blocks of {y},{x}"
    return f"let neighbouring threads do what threads {row} apart do"


def sectors_by_line(recording: Recording, order: Order) -> dict[tuple[Line, str], int]:
    found: dict[tuple[Line, str], int] = defaultdict(int)
    places = {number: (at.file, at.line) for number, at in recording.records.locations.items()}
    for counter, cost in zip(order.table["counter"].tolist(), order.cost.tolist()):
        found[places[counter], recording.records.kinds[counter]] += cost
    return found


def try_order(subject: Subject, row: int) -> str:
    changed = transpose_threads(subject.source, subject.binary.kernel.block, row)
    if not changed or not subject.tried:
        return ""
    made = subject.tried(*changed)
    if not made.right or not made.counters:
        return ""
    was, now = (total(counters.accesses, GLOBAL).cost for counters in (subject.counters, made.counters))
    return f"tried: right, {now:,} sectors in place of {was:,}" if now < was else ""


def apart(part: np.ndarray) -> str:
    """How far neighbouring lanes are from each other, where most are alike."""
    lanes = active(part["mask"])
    both = lanes[:, 1:] & lanes[:, :-1]
    differences = np.diff(part["address"].astype(np.int64), axis=1)[both]
    if not len(differences):
        return ""
    values, counts = np.unique(differences, return_counts=True)
    most = int(values[counts.argmax()])
    if counts.max() * 2 <= len(differences) or most == int(part["width"][0]):
        return ""
    return f", neighbouring lanes are {plural(abs(most), 'byte')} apart"


def uncoalesced_lines(
    subject: Subject, recording: Recording, scale: int, settled: set[tuple[Line, str]]
) -> Iterator[Advice]:
    """Lines for which no replay has a remedy: the reason alone."""
    for key, (cost, ideal, requests, part) in lines_beyond(recording).items():
        if key in settled:
            continue
        line, kind = key
        reason = (
            f"global {ACTIONS[kind]}: {cost * scale:,} sectors where {ideal * scale:,} would do"
            f"{recording.where(scale)}: {mean(cost, requests)} per request, {mean(ideal, requests)} would do"
            f"{apart(part)}"
        )
        facts: dict[str, object] = {"before": cost * scale, "ideal": ideal * scale, "access": kind}
        remedies = (BOXES,) if subject.by_warpgroups and kind == "global_store" else ()
        yield Advice("sectors", line, reason, remedies, "", 0, "sectors", facts)


def advise_widening(
    recording: Recording, scale: int
) -> Iterator[tuple[Advice | None, set[tuple[Line, str]]]]:
    """Advice to make one access of several whose bytes follow each other in every lane."""
    table = recording.records.table
    for kind in ("global_load", "global_store"):
        groups: dict[tuple[int, int, int], list[int]] = defaultdict(list)
        for at in chosen_of(recording, [kind]).tolist():
            one = table[at]
            if one["width"] < WIDEST:
                groups[int(one["width"]), int(one["warp"]), int(one["mask"])].append(at)
        merged: dict[tuple[Line, ...], list[tuple[list[int], int]]] = defaultdict(list)
        for (width, _, mask), places in groups.items():
            for members in runs(table, places, width, mask):
                lines = tuple(sorted({recording.lines[at] for at in members}))
                merged[lines].append((members, width))
        for lines, found in merged.items():
            one = wider(recording, kind, lines, found, scale)
            if one:
                yield one, {(line, kind) for line in lines}


def runs(table: np.ndarray, places: list[int], width: int, mask: int) -> Iterator[list[int]]:
    """Records whose addresses follow each other in every lane, in runs of 16 bytes or, where these are not
    all there, 8."""
    lanes = active(np.array([mask], np.uint32))[0]
    address = {at: table["address"][at][lanes].astype(np.int64) for at in places}
    known: dict[bytes, int] = {}
    for at in places:
        known.setdefault(address[at].tobytes(), at)
    free = set(known.values())
    for bytes_ in (WIDEST, WIDEST // 2):
        for at in sorted(free):
            if at not in free or width * 2 > bytes_ or (address[at] % bytes_).any():
                continue
            run = [known.get((address[at] + step).tobytes(), -1) for step in range(0, bytes_, width)]
            if all(one in free for one in run):
                free -= set(run)
                yield run


def wider(
    recording: Recording, kind: str, lines: Sequence[Line], found: list[tuple[list[int], int]], scale: int
) -> Advice | None:
    table = recording.records.table
    leads = table[[members[0] for members, _ in found]].copy()
    leads["width"] = [width * len(members) for members, width in found]
    leads["times"] = [int(table["times"][members].min()) for members, _ in found]
    after = int(costs(leads).sum())
    merged = [at for members, _ in found for at in members]
    times = np.concatenate(
        [np.full(len(members), n) for (members, _), n in zip(found, leads["times"].tolist())]
    )
    before = int((table["cost"][merged].astype(np.int64) * times).sum())
    requests, fewer = int(times.sum()), int(leads["times"].sum())
    if after > before:
        return None
    width, most = found[0][1], int(leads["width"].max())
    reason = (
        f"global {ACTIONS[kind]}{others(lines)}: {requests * scale:,} requests of {plural(width, 'byte')}"
        f" per lane, {before * scale:,} sectors{recording.where(scale)}: {mean(requests, fewer)} where 1 of"
        f" {most} bytes would do, as each lane's addresses follow one another and are aligned"
    )
    remedy = f"accesses of {most} bytes: {fewer * scale:,} requests, {after * scale:,} sectors"
    facts: dict[str, object] = {
        "before": before * scale, "after": after * scale, "requests": requests * scale,
        "requests_after": fewer * scale, "width": width, "width_after": most,
    }  # fmt: skip
    return Advice(
        "wider accesses", lines[0], reason, (remedy,), "", (before - after) * scale, "sectors", facts
    )


def others(lines: Sequence[Line]) -> str:
    """The lines beside the first, which advice begins with."""
    return f" and on {list_lines(lines[1:], lines[0][0])}" if len(lines) > 1 else ""


def repeated_reads(recording: Recording, scale: int) -> Iterator[Advice]:
    """What the warps of a block read of an array several times: numbers alone."""
    chosen = chosen_of(recording, ["global_load"])
    table = recording.records.table[chosen]
    lanes = active(table["mask"])
    address = np.where(lanes, table["address"], 0)
    buffers = (address >> np.uint64(BUFFER_SHIFT)).max(1, initial=0)
    for buffer in np.unique(buffers):
        mine = buffers == buffer
        part, asked = table[mine], np.sort(address[mine], 1)
        different = (np.diff(asked, axis=1) != 0).sum(1) + lanes[mine].all(1)
        read = int((different * part["width"].astype(np.int64) * part["times"]).sum())
        differ = distinct_bytes(part, lanes[mine])
        if read < OFTEN * differ:
            continue
        lines = sorted({recording.lines[at] for at in chosen[mine].tolist()})
        reason = (
            f"global loads{others(lines)}: the warps of a block read {plural(read, 'byte')}, but only"
            f" {differ:,} different ones: each {mean(read, differ)} times"
        )
        facts: dict[str, object] = {
            "bytes": read, "different_bytes": differ, "different_sectors": sectors_of(part, lanes[mine]),
            "blocks": scale,
        }  # fmt: skip
        yield Advice("read again", lines[0], reason, (), "", 0, "sectors", facts)


def distinct_bytes(table: np.ndarray, lanes: np.ndarray) -> int:
    """How many bytes are touched at all."""
    spans = np.unique(
        np.stack([table["address"][lanes], (table["address"] + table["width"][:, None])[lanes]], 1), axis=0
    ).astype(np.int64)
    reached = np.maximum.accumulate(np.concatenate([[0], spans[:-1, 1]]))
    return int(np.maximum(spans[:, 1] - np.maximum(spans[:, 0], reached), 0).sum())


def sectors_of(table: np.ndarray, lanes: np.ndarray) -> int:
    return len(np.unique((table["address"] // np.uint64(SECTOR))[lanes]))


OF_WARPS = re.compile(
    r"^\s*(?:@!?%\w+\s+)?(?:shfl|vote|match|redux|activemask|elect|ldmatrix|stmatrix|mma|wmma|wgmma|movmatrix"
    r"|bar\.warp)\b|%(?:laneid|warpid|lanemask)",
    re.M,
)
"""PTX for which it matters which threads are a warp."""


@dataclass(frozen=True)
class Order:
    """row: threads that are neighbours now and would be in different columns. table, cost: the accesses as
    regrouped, and what each costs."""

    row: int
    table: np.ndarray
    cost: np.ndarray

    def of(self, chosen: np.ndarray) -> int:
        """What the accesses cost whose counters are chosen."""
        return int(self.cost[np.isin(self.table["counter"], chosen)].sum())


def best_order(subject: Subject, recording: Recording, counters: np.ndarray) -> Order | None:
    """The numbering in which accesses cost least. counters: of those that count. None where warps matter to
    the kernel, or its threads do not all make as many accesses."""
    kernel = subject.binary.kernel
    if OF_WARPS.search(subject.binary.ptx):
        return None
    grouped = sort_by_thread(recording, kernel.threads)
    if grouped is None:
        return None
    table, shape = grouped
    found: Order | None = None
    for row in candidates(kernel.block):
        columns = kernel.threads // row
        place = np.arange(kernel.threads)
        order = place % columns * row + place // columns
        moved = regroup(table, shape, order)
        one = Order(row, moved, costs(moved))
        if found is None or one.of(counters) < found.of(counters):
            found = one
    return found


def candidates(block: tuple[int, int, int]) -> list[int]:
    x, y, z = block
    if z > 1:
        return []
    if y > 1:
        return [x] if x > 1 else []
    return [1 << k for k in range(1, 10) if x % (1 << k) == 0 and x >> k > 1]


def sort_by_thread(recording: Recording, threads: int) -> tuple[np.ndarray, list[tuple[int, int]]] | None:
    """Records sorted by counter, then by how often the warp executed it before, then by warp; and for each
    counter, where they begin and how many each warp has. None where warps differ in that."""
    table, warps = recording.records.table, threads // 32
    if threads % 32 or warps < 2 or not len(table):
        return None
    chosen, shape = [], []
    for counter in dict.fromkeys(table["counter"].tolist()):
        mine = np.flatnonzero(table["counter"] == counter)
        by_warp = [mine[table["warp"][mine] == warp] for warp in range(warps)]
        count = len(by_warp[0])
        times = table["times"][by_warp[0]]
        if any(len(one) != count or (table["times"][one] != times).any() for one in by_warp):
            return None
        shape.append((len(chosen) and sum(map(len, chosen)), count))
        chosen.append(np.stack(by_warp, 1).ravel())
    return table[np.concatenate(chosen)], shape


def regroup(table: np.ndarray, shape: list[tuple[int, int]], order: np.ndarray) -> np.ndarray:
    """The same accesses with threads in another order. order: of each place, the thread that comes there."""
    moved, warps = table.copy(), len(order) // 32
    for first, count in shape:
        part = slice(first, first + count * warps)
        for name in ("address", "source"):
            values = table[name][part].reshape(count, warps * 32)[:, order]
            moved[name][part] = values.reshape(count * warps, 32)
        for name in ("mask", "reads"):
            lanes = active(table[name][part]).reshape(count, warps * 32)[:, order]
            bits = lanes.reshape(count * warps, 32).astype(np.uint32) << np.arange(32, dtype=np.uint32)
            moved[name][part] = bits.sum(1, dtype=np.uint32)
    empty = moved["mask"] == 0
    moved["times"][empty] = 0
    return moved
