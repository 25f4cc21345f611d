"""What warps and copies of a block do with mbarriers, as a timeline in steps.

The CPU machine runs one warp at a time; its order says nothing about a GPU's. So a step is a place in the
order that the mbarriers force: one more than that of what the same warp did before, and of all that it had to
wait for. What may happen at the same time stands in the same step; no step is a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Iterable, Iterator, Mapping, Sequence

from tir_schedules.files import Json
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.machines.cpu.abi import NONE, Happening
from tir_schedules.model.findings import Location
from tir_schedules.model.kernel import Binary
from tir_schedules.model.launch import Dim3
from tir_schedules.model.machine import Events, Execution, Watch
from tir_schedules.model.workload import Workload

COPIES = "copies"
"""The actor that brings the bytes of copies."""
OF_PRODUCTS = (Happening.MULTIPLIED, Happening.COMMITTED)
OF_COPIES = (Happening.EXPECTED, Happening.BEGUN)
OF_STORES = (Happening.STORED, Happening.STORES_COMMITTED)
MERGED = (OF_PRODUCTS, OF_COPIES, OF_STORES)
"""What a warp does in one go, and is one mark."""

Place = tuple[int, int]
"""Rank of a block in its cluster, and an address in its shared memory."""
Actor = tuple[int, int | str]
"""Rank of a block, and one of its warps, or COPIES."""


@dataclass(frozen=True)
class Barrier:
    """An mbarrier. full: whether copies tell it of their bytes. slot: its number among those of its kind."""

    place: Place
    full: bool
    slot: int
    arrivals: int

    def __str__(self) -> str:
        return f"{'full' if self.full else 'empty'} {self.slot}"

    def as_json(self) -> dict[str, object]:
        return {"name": str(self), "address": self.place[1], "arrivals": self.arrivals}


@dataclass(frozen=True)
class Mark:
    """What an actor does in a step.

    begins: the first step in which it has nothing else to do; earlier than `step` where it waits. kind: of
    Happening, the first one of several. text: what it does, without the slot's number of its own. slot: which
    it is about, None where it is none. over: False for a wait that never ends.
    """

    begins: int
    step: int
    kind: Happening
    text: str
    slot: int | None
    location: Location | None = None
    over: bool = True

    def as_json(self) -> Json:
        return vars(self) | {"kind": self.kind.name.lower(), "location": str(self.location or "")}


@dataclass(frozen=True)
class Row:
    """Actors that do the same in the same steps. name: such as "warps 0-3"."""

    name: str
    marks: tuple[Mark, ...]


@dataclass(frozen=True)
class Timeline:
    """rank: of the block in its cluster. steps: how many; cut: whether more happened than was kept."""

    rows: tuple[Row, ...]
    barriers: tuple[Barrier, ...]
    steps: int
    cut: bool = False


@dataclass
class Happened:
    """Events of an actor that are one mark."""

    actor: Actor
    events: list[Mapping[str, int]]
    begins: int = 0
    step: int = 0

    @property
    def kind(self) -> Happening:
        return Happening(self.events[0]["what"])


def watch_units(
    binary: Binary, workload: Workload, block: Dim3 = (0, 0, 0), machine: CpuMachine | None = None
) -> Execution:
    """One block executed, with what its units do."""
    arguments = binary.kernel.prepared(workload, workload.arguments())
    return (machine or CpuMachine()).run(binary, arguments, workload.outputs, watch=Watch(block, units=True))


def timeline(events: Events) -> Timeline:
    """The timeline of a block. It has no rows where the block uses no mbarrier."""
    table = events.rows
    barriers = barriers_of(table)
    if not barriers:
        return Timeline((), (), 0)
    slots = slots_of(table, barriers)
    happened = Order().run(merge_events(table))
    telling = Telling(events, barriers, slots)
    marks: dict[Actor, list[Mark]] = {}
    for one in happened:
        if telling.concerns(one):
            marks.setdefault(one.actor, []).append(telling.mark(one))
    rows = tuple(rows_of(marks, events.rank))
    steps = 1 + max((mark.step for row in rows for mark in row.marks), default=-1)
    own = tuple(barrier for barrier in barriers.values() if barrier.place[0] == events.rank)
    return Timeline(rows, own, steps, events.met > len(table))


def barriers_of(table: Sequence[Mapping[str, int]]) -> dict[Place, Barrier]:
    """The mbarriers of the cluster that somebody uses; those of a kind are numbered by their addresses."""
    waits = (Happening.ARRIVED, Happening.PASSED, Happening.TESTED)
    used = {place(e) for e in table if e["what"] in waits}
    arrivals = {place(e): e["bytes"] for e in table if e["what"] == Happening.INITIALISED}
    told = {place(e) for e in table if e["what"] == Happening.EXPECTED}
    told |= {(e["place"], e["other"]) for e in table if e["what"] == Happening.BEGUN}
    found, numbers = {}, {}
    for at in sorted(arrivals.keys() & (used | told)):
        kind = at[0], at in told
        numbers[kind] = numbers.get(kind, -1) + 1
        found[at] = Barrier(at, at in told, numbers[kind], arrivals[at])
    return found


def slots_of(table: Iterable[Mapping[str, int]], barriers: Mapping[Place, Barrier]) -> dict[Place, int]:
    """The slot of each address that a copy fills: that of the mbarrier it tells."""
    return {
        place(e): barriers[e["place"], e["other"]].slot
        for e in table
        if e["what"] == Happening.BEGUN and (e["place"], e["other"]) in barriers
    }


def place(event: Mapping[str, int]) -> Place:
    return event["place"], event["address"]


def merge_events(table: Sequence[Mapping[str, int]]) -> Iterator[Happened]:
    """Events as they are marked. What a warp does in one go is one event; what lands in one phase of an
    mbarrier is one. Waits in vain are left out, except the last of a warp that never goes on."""
    last: dict[Actor, Happened] = {}
    landed: dict[tuple[Place, int], Happened] = {}
    order: list[Happened] = []
    tested: dict[Actor, Mapping[str, int]] = {}
    for event in table:
        kind, actor = event["what"], (event["actor"], event["warp"])
        if kind == Happening.INITIALISED:
            continue
        if kind == Happening.LANDED:
            key = place(event), event["phase"]
            if key not in landed:
                landed[key] = Happened((event["place"], COPIES), [])
                order.append(landed[key])
            landed[key].events.append(event)
            continue
        tested.pop(actor, None)
        if kind == Happening.TESTED:
            tested[actor] = event
            continue
        before = last.get(actor)
        if before and goes_on(before, event):
            before.events.append(event)
            continue
        last[actor] = Happened(actor, [event])
        order.append(last[actor])
    yield from order
    yield from (Happened(actor, [event]) for actor, event in tested.items())


def goes_on(before: Happened, event: Mapping[str, int]) -> bool:
    """Whether an event belongs to those before it of the same warp."""
    first, last = before.events[0], before.events[-1]
    if event["what"] == last["what"] == Happening.ARRIVED:
        return event["line"] == last["line"] and event["address"] == last["address"]
    group = next((group for group in MERGED if event["what"] in group), None)
    if not group or last["what"] not in group or last["what"] == group[1] != Happening.BEGUN:
        return False
    if group == OF_COPIES:
        told = first["address"] if first["what"] == Happening.EXPECTED else first["other"]
        return event["what"] == Happening.BEGUN and event["other"] == told
    return True


def meeting(one: Happened) -> tuple[int, int]:
    """Which meeting of its block's warps."""
    return one.actor[0], one.events[0]["phase"]


class Order:
    """Steps of what happens: each after all that it depends on."""

    def __init__(self) -> None:
        self.own: dict[Actor, int] = {}
        self.over: dict[tuple[Place, int], int] = {}  # mbarrier and phase -> step of what completes it
        self.begun: dict[tuple[Place, int], int] = {}  # of copies
        self.groups: dict[tuple[int, int, int], int] = {}  # rank, warpgroup, group of products

    def run(self, happened: Iterable[Happened]) -> list[Happened]:
        found = list(happened)
        meetings: dict[tuple[int, int], list[Actor]] = {}
        for one in found:
            if one.kind == Happening.MET:
                meetings.setdefault(meeting(one), []).append(one.actor)
        met: dict[tuple[int, int], int] = {}
        for one in found:
            one.begins = self.own.get(one.actor, -1) + 1
            if one.kind == Happening.MET:
                those = meetings[meeting(one)]
                one.step = met.setdefault(meeting(one), 1 + max(self.own.get(each, -1) for each in those))
            elif one.kind == Happening.LANDED:
                one.begins = one.step = self.earliest(one)
            else:
                one.step = max(one.begins, self.earliest(one))
            if one.kind != Happening.LANDED:
                self.own[one.actor] = one.step
            self.completes(one)
        return found

    def earliest(self, one: Happened) -> int:
        event = one.events[0]
        if one.kind == Happening.PASSED:
            return self.over.get((place(event), event["phase"]), -1) + 1
        if one.kind == Happening.LANDED:
            return self.begun.get((place(event), event["phase"]), -1) + 1
        if one.kind == Happening.DRAINED:
            group = event["actor"], event["warp"] // 4, event["phase"] - 1
            return self.groups.get(group, -1) + 1
        return 0

    def completes(self, one: Happened) -> None:
        """Note what others may wait for."""
        for event in one.events:
            what = event["what"]
            if what in (Happening.ARRIVED, Happening.EXPECTED, Happening.LANDED):
                self.later(self.over, (place(event), event["phase"]), one.step)
            if what == Happening.BEGUN:
                self.later(self.begun, ((event["place"], event["other"]), event["phase"]), one.step)
            if what == Happening.COMMITTED:
                self.later(self.groups, (event["actor"], event["warp"] // 4, event["phase"]), one.step)

    @staticmethod
    def later(steps: dict[Any, int], key: Any, step: int) -> None:
        steps[key] = max(steps.get(key, -1), step)


@dataclass(frozen=True)
class Telling:
    """What happened, in words."""

    events: Events
    barriers: Mapping[Place, Barrier]
    slots: Mapping[Place, int]

    def concerns(self, one: Happened) -> bool:
        """Whether it is done by the block that is watched, or to its shared memory."""
        return any(self.events.rank in (event["actor"], event["place"]) for event in one.events) and (
            one.actor[1] != COPIES or one.actor[0] == self.events.rank
        )

    def mark(self, one: Happened) -> Mark:
        text, slot = self.told(one)
        over = one.kind != Happening.TESTED
        location = self.events.locations.get(one.events[0]["line"])
        return Mark(one.begins, one.step, one.kind, text, slot, location, over)

    def told(self, one: Happened) -> tuple[str, int | None]:
        event, kind = one.events[0], one.kind
        if kind in (Happening.PASSED, Happening.TESTED):
            barrier = self.barriers[place(event)]
            phase = "unused" if event["phase"] == NONE else f"phase {event['phase']}"
            return f"{'waits' if kind == Happening.PASSED else 'STUCK'}: {barrier}, {phase}", barrier.slot
        if kind == Happening.ARRIVED:
            places = ", ".join(map(self.named, one.events))
            return f"arrives: {places}, phase {event['phase']}", self.barriers[place(event)].slot
        if kind in OF_COPIES:
            return self.told_of_copies(one)
        if kind == Happening.LANDED:
            barrier, bytes = self.barriers[place(event)], sum(each["bytes"] for each in one.events)
            return f"{bytes:,} B: {barrier}, phase {event['phase']}", barrier.slot
        if kind == Happening.MULTIPLIED:
            return self.told_of_products(one)
        if kind == Happening.DRAINED:
            return f"done: group {event['phase'] - 1}", None
        if kind in OF_STORES:
            names = ", ".join(dict.fromkeys(self.buffer(e) for e in one.events if e["bytes"]))
            return f"stores: {names}" if names else f"commits stores {event['phase']}", None
        if kind == Happening.STORES_DRAINED:
            return f"stores: {event['bytes']} open", None
        if kind == Happening.COMMITTED:
            return f"commits group {event['phase']}", None
        return f"meets: barrier {event['address']}", None

    def told_of_copies(self, one: Happened) -> tuple[str, int | None]:
        first = one.events[0]
        at = place(first) if one.kind == Happening.EXPECTED else (first["place"], first["other"])
        names = ", ".join(dict.fromkeys(self.buffer(e) for e in one.events if e["what"] == Happening.BEGUN))
        barrier = self.barriers.get(at)
        slot = barrier.slot if barrier else None
        if not names:
            return f"expects {first['bytes']:,} B: {self.named(first)}", slot
        places = list(dict.fromkeys(e["place"] for e in one.events if e["what"] == Happening.BEGUN))
        of = self.elsewhere(places[0]) if len(places) == 1 else f" of blocks {', '.join(map(str, places))}"
        return f"copies: {names} to slot {slot}{of}", slot

    def told_of_products(self, one: Happened) -> tuple[str, int | None]:
        products = [e for e in one.events if e["what"] == Happening.MULTIPLIED]
        committed = [e["phase"] for e in one.events if e["what"] == Happening.COMMITTED]
        slot = self.slot_at((products[0]["place"], products[0]["other"]))
        of = "" if slot is None else f" of slot {slot}"
        group = f", group {committed[0]}" if committed else ""
        return f"{len(products)} wgmma{of}{group}", slot

    def slot_at(self, at: Place) -> int | None:
        """The slot of the copy that begins there, or nearest before it."""
        before = [known for known in self.slots if known[0] == at[0] and known[1] <= at[1]]
        return self.slots[max(before)] if before else None

    def buffer(self, event: Mapping[str, int]) -> str:
        return self.events.buffers.get(event["buffer"], "bytes")

    def named(self, event: Mapping[str, int]) -> str:
        return f"{self.barriers.get(place(event), 'mbarrier')}{self.elsewhere(event['place'])}"

    def elsewhere(self, rank: int) -> str:
        return "" if rank == self.events.rank else f" of block {rank}"


def rows_of(marks: Mapping[Actor, Sequence[Mark]], rank: int) -> Iterator[Row]:
    """Warps that do the same in the same steps are one row; copies first, then warps, then other blocks."""
    alike: dict[tuple, list[Actor]] = {}
    for actor, own in marks.items():
        shape = tuple((mark.begins, mark.step, mark.kind, mark.text) for mark in own)
        alike.setdefault((actor[0], actor[1] == COPIES, shape), []).append(actor)
    for (block, copies, _), actors in sorted(alike.items(), key=lambda item: sort_key(item[1][0], rank)):
        name = COPIES if copies else warps_named([int(actor[1]) for actor in actors])
        of = "" if block == rank else f"block {block}, "
        yield Row(of + name, tuple(marks[actors[0]]))


def sort_key(actor: Actor, rank: int) -> tuple:
    return actor[0] != rank, actor[0], actor[1] != COPIES, -1 if actor[1] == COPIES else actor[1]


def warps_named(warps: Sequence[int]) -> str:
    """ "warp 8", "warps 0-3", "warps 0-3, 5"."""
    spans: list[list[int]] = []
    for warp in sorted(warps):
        if spans and spans[-1][1] == warp - 1:
            spans[-1][1] = warp
        else:
            spans.append([warp, warp])
    written = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in spans)
    return f"warp {written}" if len(warps) == 1 else f"warps {written}"
