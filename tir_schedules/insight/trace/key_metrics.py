"""The key metrics of a traced state: their names, how they are written, and whether a change is for the
better."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Callable, Iterator

from tir_schedules.insight.metrics.counting import GLOBAL, SHARED, Metrics, conflicts
from tir_schedules.insight.metrics.formats import decimal, mix_shares, number, pair, percent
from tir_schedules.insight.trace.states import Measured, State, Trace

DOUBLE = 2.0  # a change by more than this is written as a factor, a smaller one in percent


@dataclass(frozen=True)
class KeyMetric:
    """less, more: whether less, or more, of it is better; neither for what is a means to an end. value: None
    where it is not known. note: what stands beside it."""

    name: str
    value: Callable[[Measured], int | None]
    less: bool = True
    more: bool = False
    note: Callable[[Metrics], str] = lambda metrics: ""


def when_executed(value: Callable[[Metrics], int]) -> Callable[[Measured], int | None]:
    """A value that only an executed kernel has."""
    return lambda measured: value(measured.metrics) if measured.metrics else None


def of_sectors(metrics: Metrics) -> str:
    access = metrics.access(*GLOBAL)
    if not access.requests:
        return ""
    per_request, ideal = (decimal(one / access.requests) for one in (access.cost, access.ideal))
    return f"{per_request} per request, {ideal} ideal"


def of_occupancy(metrics: Metrics) -> str:
    held = metrics.occupancy
    if not held.blocks:
        return "no block fits"
    return f"{percent(held.share)}, limited by {', '.join(held.limited_by)}"


REGISTERS = KeyMetric("registers", lambda one: one.binary.resources.registers)
SPILLS = KeyMetric(
    "spill loads and stores, bytes",
    lambda one: one.binary.resources.spill_stores + one.binary.resources.spill_loads,
)
SHARED_BYTES = KeyMetric("shared bytes", lambda one: one.binary.shared_bytes, less=False)
WARPS = KeyMetric(
    "warps per SM",
    when_executed(lambda one: one.occupancy.warps),
    less=False,
    more=True,
    note=of_occupancy,
)
WAVEFRONTS = KeyMetric(
    "shared wavefronts",
    when_executed(lambda one: one.access(*SHARED).cost),
    note=lambda one: f"{number(one.access(*SHARED).ideal)} ideal",
)
CONFLICTS = KeyMetric(
    "bank conflicts",
    when_executed(lambda one: conflicts(one.access(*SHARED))),
    note=lambda one: "wavefronts beyond the ideal",
)
SECTORS = KeyMetric("global sectors", when_executed(lambda one: one.access(*GLOBAL).cost), note=of_sectors)
INSTRUCTIONS = KeyMetric("warp instructions", when_executed(lambda one: one.counters.warp_instructions))

KEY_METRICS = (REGISTERS, SPILLS, SHARED_BYTES, WARPS, WAVEFRONTS, CONFLICTS, SECTORS, INSTRUCTIONS)
FAULTS = (SPILLS, CONFLICTS)
CHARTS = (INSTRUCTIONS, SECTORS, WAVEFRONTS, REGISTERS)


@dataclass(frozen=True)
class Cell:
    """A key metric of a state.

    change: against the state before, "" where it is the same. verdict: "better", "worse" or "".
    """

    name: str
    value: str
    note: str
    change: str
    verdict: str


def cells(state: State, before: State | None) -> Iterator[Cell]:
    """The key metrics of a measured state. before: the last measured one. Spills are left out where there are
    none."""
    measured, earlier = state.measured, before.measured if before else None
    if not measured:
        return
    for metric in KEY_METRICS:
        value, old = metric.value(measured), metric.value(earlier) if earlier else None
        if value is None or (metric is SPILLS and not value and not old):
            continue
        changed, verdict = "", ""
        if old is not None and value != old:
            changed = change(old, value)
            # the first use of something is neither better nor worse, but a fault is
            if (old or metric in FAULTS) and (metric.less or metric.more):
                verdict = "better" if (value < old) == metric.less else "worse"
        note = metric.note(measured.metrics) if measured.metrics else ""
        yield Cell(metric.name, number(value), note, changed, verdict)


def value_of(metric: KeyMetric, state: State) -> str:
    """A key metric of a state, written; "" where it is not known."""
    value = metric.value(state.measured) if state.measured else None
    return "" if value is None else number(value)


FIGURES = ("registers", "shared bytes", "wavefronts (ideal)", "sectors", "instructions")


def figures(state: State) -> list[str]:
    """Cells of FIGURES, "" for unknown ones."""
    pairs = ("", "")
    if state.metrics:
        pairs = pair(state.metrics.access(*SHARED)), number(state.metrics.access(*GLOBAL).cost)
    return [value_of(REGISTERS, state), value_of(SHARED_BYTES, state), *pairs, value_of(INSTRUCTIONS, state)]


def change(old: int, new: int) -> str:
    """ "▼ 23.5 %", "▲ 3.1x": how much less or more it is."""
    arrow, (small, large) = ("▲" if new > old else "▼"), sorted((old, new))
    if small == 0:
        return f"{arrow} from {number(old)}"
    factor = large / small
    return f"{arrow} {decimal(factor)}x" if factor >= DOUBLE else f"{arrow} {percent(abs(new - old) / old)}"


def measured_before(trace: Trace) -> list[State | None]:
    """For each state the last measured one before it."""
    last, found = None, []
    for state in trace.states:
        found.append(last)
        last = state if state.measured else last
    return found


def outputs(state: State) -> str:
    """ "pass", "FAIL" or "not checked", then the kinds of findings: "FAIL, race 3 times"."""
    if not state.measured:
        return ""
    known = {True: "pass", False: "FAIL", None: "not checked"}[state.measured.right]
    return ", ".join([known, *findings(state)])


def findings(state: State) -> list[str]:
    """What the CPU machine finds, by kind: "race 3 times"."""
    found: Counter[str] = Counter()
    for finding in state.metrics.findings if state.metrics else ():
        found[finding.title] += finding.count
    return [f"{kind} {number(count)} times" if count > 1 else kind for kind, count in found.items()]


def mix(metrics: Metrics) -> str:
    """Shares of the thread instructions, largest first."""
    shares = sorted(((share, name) for name, share in mix_shares(metrics.counters).items()), reverse=True)
    return "; ".join(f"{name} {percent(share)}" for share, name in shares)
