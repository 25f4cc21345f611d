"""What keeps a block's tensor cores waiting: products that nothing overlaps, and rings of too few slots.

For kernels with wgmma if an SM holds one block: work in flight hides latency there, not more warps.
"""

from __future__ import annotations

from collections import Counter
from typing import Iterator

import numpy as np

from tir_schedules.insight.advice.subject import Advice, Line, Subject
from tir_schedules.insight.metrics.formats import plural
from tir_schedules.machines.cpu.abi import Happening
from tir_schedules.model.gpus import find_sm
from tir_schedules.model.machine import Events, Watch

WARPGROUP = 4
FEWEST_GROUPS = 4
"""Groups of wgmma of a warp, below which it has no main loop."""

FEW_SLOTS = 2
"""Slots of a ring that can fill only one while it multiplies another."""


def pipeline(subject: Subject) -> Iterator[Advice]:
    """Advice on the first block's ring and products."""
    held = subject.held()
    if not subject.by_warpgroups or not held or held.blocks != 1:
        return
    events = subject.watched(Watch(units=True)).events
    if events is None or events.met > len(events.table):
        return
    own = events.table[events.table["actor"] == events.rank]
    yield from drained(events, own)
    yield from shallow(subject, own)


def drained(events: Events, own: np.ndarray) -> Iterator[Advice]:
    """Groups of the only warpgroup that are waited for before the next begins."""
    products = own[own["what"] == Happening.MULTIPLIED]
    warps = np.unique(products["warp"])
    if len(np.unique(warps // WARPGROUP)) != 1:
        return  # others multiply meanwhile
    table = own[own["warp"] == warps[0]]
    groups = int((table["what"] == Happening.COMMITTED).sum())
    alone: Counter[Line] = Counter()
    waited: Line | None = None
    for one in table:
        if one["what"] == Happening.DRAINED and one["bytes"] == 0:
            place = events.locations[int(one["line"])]
            waited = place.file, place.line
        elif one["what"] == Happening.MULTIPLIED and waited:
            alone[waited] += 1
            waited = None
    if groups < FEWEST_GROUPS or alone.total() * 2 < groups:
        return
    reason = (
        f"{alone.total()} of {groups} groups of wgmma are waited for before the next begins, and no other"
        " warpgroup multiplies meanwhile (in block 0,0,0)"
    )
    remedy = "wgmma.wait_group 1 in the loop, wait_group 0 after it, and a slot is free one turn later"
    facts: dict[str, object] = {"groups": groups, "alone": alone.total()}
    yield Advice("products in flight", alone.most_common(1)[0][0], reason, (remedy,), facts=facts)


def shallow(subject: Subject, own: np.ndarray) -> Iterator[Advice]:
    """A ring of few slots, where shared memory has room for more."""
    copies = own[own["what"] == Happening.BEGUN]
    phases: dict[int, Counter[int]] = {}
    for barrier, phase, bytes_ in copies[["other", "phase", "bytes"]].tolist():
        phases.setdefault(barrier, Counter())[phase] += bytes_
    slots, slot = len(phases), max((told for one in phases.values() for told in one.values()), default=0)
    again = any(len(one) > 1 for one in phases.values())
    used = subject.binary.shared_bytes
    free = find_sm(subject.binary.kernel.arch).shared_limit - used
    if not again or slots > FEW_SLOTS or free < slot:
        return
    more = slots + free // slot
    reason = (
        f"a ring of {plural(slots, 'slot')} of {plural(slot, 'byte')}: while one is multiplied,"
        f" {slots - 1 or 'none'} can be filled"
    )
    remedy = (
        f"as many as {more} slots: {plural(used + free // slot * slot, 'byte')} of shared memory,"
        " still 1 block per SM"
    )
    facts: dict[str, object] = {"slots": slots, "slot_bytes": slot, "most": more}
    yield Advice("ring", None, reason, (remedy,), facts=facts)
