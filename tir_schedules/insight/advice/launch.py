"""What a launch costs beside its accesses: blocks that an SM cannot hold, spills, lanes that rest."""

from __future__ import annotations

from typing import Iterator

from tir_schedules.insight.advice.subject import Advice, Subject, without_second_bound
from tir_schedules.insight.metrics.formats import plural
from tir_schedules.model.gpus import WARP, Occupancy, find_sm

FEWEST_LANES = 0.5
"""Lanes that work, of all, below which a line is named."""

LEAST_SHARE = 0.05
"""A line is named where the lanes that rest on it are at least this share of the launch's lanes times warp
instructions."""


def launch(subject: Subject) -> Iterator[Advice]:
    """Spills, lanes that rest, and the next step of occupancy."""
    yield from spills(subject)
    yield from resting(subject)
    yield from next_step(subject)


def next_step(subject: Subject) -> Iterator[Advice]:
    """What would let an SM hold one block more, by CUDA's rules."""
    held = subject.held()
    if not held or held.share == 1 or not held.blocks or subject.by_warpgroups:
        return
    limits, wanted = held.limited_by, held.blocks + 1
    needs, facts = [], dict[str, object]()
    for name in limits:
        if name == "shared":
            bytes_ = most_shared(subject, wanted)
            if bytes_ < 0:
                return
            facts["shared"] = bytes_
            fewer = subject.binary.shared_bytes - bytes_
            needs.append(f"{plural(bytes_, 'byte')} of shared memory or less, {fewer:,} fewer")
        elif name == "registers":
            registers = most_registers(subject, wanted)
            if not registers:
                return
            facts["registers"] = registers
            fewer = subject.binary.resources.registers - registers
            needs.append(f"{plural(registers, 'register')} per thread or less, {fewer} fewer")
        else:
            return
    after = subject.held(facts.get("shared"), facts.get("registers"))  # pyright: ignore[reportArgumentType]
    if not after or after.blocks <= held.blocks:
        return
    reason = (
        f"an SM holds {plural(held.blocks, 'block')}, {held.warps} of {held.max_warps} warps:"
        f" {' and '.join(spelled(subject, name) for name in limits)} allow no more"
    )
    remedy = f"{plural(after.blocks, 'block')}, {after.warps} warps: {' and '.join(needs)}"
    yield Advice(
        "occupancy", None, reason, (remedy,), facts={**facts, "blocks": after.blocks, "now": held.blocks}
    )


def spelled(subject: Subject, name: str) -> str:
    if name == "shared":
        return f"{plural(subject.binary.shared_bytes, 'byte')} of shared memory"
    return f"{plural(subject.binary.resources.registers, 'register')} per thread"


def most_shared(subject: Subject, blocks: int) -> int:
    """Bytes of a block's shared memory with which an SM holds that many."""
    limit = find_sm(subject.binary.kernel.arch)
    each = (limit.shared_kib << 10) // blocks // limit.shared_unit * limit.shared_unit
    return each - limit.reserved


def most_registers(subject: Subject, blocks: int) -> int:
    """Registers of a thread with which an SM holds that many blocks; 0: none does."""

    def enough(held: Occupancy | None) -> bool:
        return held is not None and held.limits["registers"] >= blocks

    now = subject.binary.resources.registers
    return next((count for count in range(now, 15, -1) if enough(subject.held(registers=count))), 0)


def spills(subject: Subject) -> Iterator[Advice]:
    """Registers that ptxas keeps in local memory; without the second launch bound, where the source has
    one."""
    resources = subject.binary.resources
    spilled = resources.spill_stores + resources.spill_loads
    if not spilled:
        return
    reason = (
        f"ptxas spills: code that stores {plural(resources.spill_stores, 'byte')} and loads"
        f" {plural(resources.spill_loads, 'byte')} per thread, with {resources.registers} registers"
    )
    remedy, tried = "", ""
    source = without_second_bound(subject.source)
    made = subject.tried(source, None) if source and subject.tried else None
    if made and made.right and made.resources:
        after = made.resources
        left = after.spill_stores + after.spill_loads
        if left < spilled:
            held, then = subject.held(), subject.held(registers=after.registers)
            blocks = f", {then.blocks} blocks per SM, not {held.blocks}" if held and then else ""
            remedy = "leave out the second number of __launch_bounds__"
            tried = f"tried: right, {plural(left, 'byte')} spilled, {after.registers} registers{blocks}"
    facts: dict[str, object] = {"stores": resources.spill_stores, "loads": resources.spill_loads}
    yield Advice("spills", None, reason, (remedy,) if remedy else (), tried, facts=facts)


def resting(subject: Subject) -> Iterator[Advice]:
    """The line on which most lanes rest; not where one lane asks units to work for all."""
    counters, found = subject.counters, []
    elected = counters.mix.get("tma", 0) > 0
    for line in counters.lines:
        slots, threads = line.warp_instructions * WARP, sum(line.mix.values())
        if slots and threads < FEWEST_LANES * slots and not (elected and threads == line.warp_instructions):
            found.append((slots - threads, line, threads))
    lost, line, threads = max(found, key=lambda one: one[0], default=(0, None, 0))
    if not line or lost < LEAST_SHARE * counters.warp_instructions * WARP:
        return
    full = -(-threads // WARP)
    reason = (
        f"{line.warp_instructions:,} warp instructions with {threads / line.warp_instructions:.1f} of"
        f" {WARP} lanes at work; full warps would take {full:,}"
    )
    facts: dict[str, object] = {"before": line.warp_instructions, "full": full, "threads": threads}
    yield Advice("resting lanes", (line.file, line.line), reason, facts=facts)
