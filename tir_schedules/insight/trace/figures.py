"""The key figures of a traced state: how they are called and written, and whether a change of them is for the
better."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Callable, Iterator

from tir_schedules.insight.inspection.figures import MIX, decimal, number, percent
from tir_schedules.insight.metrics.metrics import GLOBAL, SHARED, Metrics, conflicts, shared_bytes
from tir_schedules.insight.trace.trace import Measured, State, Trace

DOUBLE = 2.0  # a change by more than this is said as a factor, a smaller one in percent


@dataclass(frozen=True)
class Figure:
    """less, more: whether less, or more, of it is better; neither for what is a means to an end. value: None
    where it is not known.
    note: what is said beside it."""

    name: str
    value: Callable[[Measured], int | None]
    less: bool = True
    more: bool = False
    note: Callable[[Metrics], str] = lambda metrics: ""


def counted(value: Callable[[Metrics], int]) -> Callable[[Measured], int | None]:
    """A figure that only an executed kernel has."""
    return lambda measured: value(measured.metrics) if measured.metrics else None


def of_sectors(metrics: Metrics) -> str:
    access = metrics.access(*GLOBAL)
    if not access.requests:
        return ""
    packed = (
        f", {decimal(access.ideal / access.requests)} packed" if access.ideal <= access.cost else ""
    )  # else lanes read the same
    return f"{decimal(access.cost / access.requests)} per request{packed}"


def of_occupancy(metrics: Metrics) -> str:
    held = metrics.occupancy
    return (
        f"{percent(held.share)}, limited by {', '.join(held.limited_by)}" if held.blocks else "no block fits"
    )


REGISTERS = Figure("registers", lambda one: one.binary.resources.registers)
SPILLED = Figure(
    "spilled bytes", lambda one: one.binary.resources.spill_stores + one.binary.resources.spill_loads
)
SHARED_BYTES = Figure("shared bytes", lambda one: shared_bytes(one.binary), less=False)
WARPS = Figure(
    "warps resident", counted(lambda one: one.occupancy.warps), less=False, more=True, note=of_occupancy
)
WAVEFRONTS = Figure(
    "shared wavefronts",
    counted(lambda one: one.access(*SHARED).cost),
    note=lambda one: f"{number(one.access(*SHARED).ideal)} ideal",
)
CONFLICTS = Figure(
    "conflicts",
    counted(lambda one: conflicts(one.access(*SHARED))),
    note=lambda one: "wavefronts beyond the ideal",
)
SECTORS = Figure("global sectors", counted(lambda one: one.access(*GLOBAL).cost), note=of_sectors)
INSTRUCTIONS = Figure("warp instructions", counted(lambda one: one.counters.warp_instructions))

FIGURES = (REGISTERS, SPILLED, SHARED_BYTES, WARPS, WAVEFRONTS, CONFLICTS, SECTORS, INSTRUCTIONS)
FAULTS = (SPILLED, CONFLICTS)
CHARTS = (INSTRUCTIONS, SECTORS, WAVEFRONTS, REGISTERS)


@dataclass(frozen=True)
class Cell:
    """A figure of a state. change: against the state before, "" where it is the same. verdict: "better",
    "worse" or ""."""

    name: str
    value: str
    note: str
    change: str
    verdict: str


def cells(state: State, before: State | None) -> Iterator[Cell]:
    """The figures of a state that has been measured. before: the last one that had been. Spills are left out
    where there are none."""
    measured, earlier = state.measured, before.measured if before else None
    for figure in FIGURES:
        value, old = figure.value(measured), figure.value(earlier) if earlier else None
        if value is None or (figure is SPILLED and not value and not old):
            continue
        differs = old is not None and value != old
        judged = (
            differs and (old or figure in FAULTS) and (figure.less or figure.more)
        )  # to begin to use something is neither
        verdict = ("better" if (value < old) == figure.less else "worse") if judged else ""
        note = figure.note(measured.metrics) if measured.metrics else ""
        yield Cell(figure.name, number(value), note, change(old, value) if differs else "", verdict)


def change(old: int, new: int) -> str:
    """ "▼ 23.5 %", "▲ 3.1x": how much less or more it is."""
    arrow, (small, large) = ("▲" if new > old else "▼"), sorted((old, new))
    if small == 0:
        return f"{arrow} from {number(old)}"
    factor = large / small
    return f"{arrow} {decimal(factor)}x" if factor >= DOUBLE else f"{arrow} {percent(abs(new - old) / old)}"


def measured_before(trace: Trace) -> list[State | None]:
    """For each state the last one before it that has been measured."""
    last, found = None, []
    for state in trace.states:
        found.append(last)
        last = state if state.measured else last
    return found


def outputs(state: State) -> str:
    """What is known of the outputs, in a word or a few: "right", "wrong", "not checked"; with findings if
    there are any."""
    if not state.measured:
        return ""
    known = {True: "right", False: "wrong", None: "not checked"}[state.measured.right]
    return ", ".join([known, *findings(state)])


def findings(state: State) -> list[str]:
    """What the CPU machine objects, by kind: "race 3 times"."""
    found: Counter[str] = Counter()
    for finding in state.metrics.findings if state.metrics else ():
        found[finding.kind] += finding.count
    return [f"{kind} {number(count)} times" if count > 1 else kind for kind, count in found.items()]


def mix(metrics: Metrics) -> str:
    """Shares of the thread instructions, largest first."""
    counts = {name: sum(metrics.counters.mix.get(part, 0) for part in parts) for name, parts in MIX.items()}
    shares = sorted(
        ((count / metrics.counters.thread_instructions, name) for name, count in counts.items() if count),
        reverse=True,
    )
    return "; ".join(f"{name} {percent(share)}" for share, name in shares)
