"""The page of a trace: charts of all states, the steps in the order of the rung's lines, and each step with
what it changes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from math import log
from typing import Sequence

from tir_schedules.insight.metrics.counting import SHARED
from tir_schedules.insight.metrics.formats import number
from tir_schedules.insight.ring import views as rings
from tir_schedules.insight.ring.views import barriers_of
from tir_schedules.insight.trace import diffs, key_metrics
from tir_schedules.insight.trace.key_metrics import (
    CHARTS,
    WAVEFRONTS,
    Cell,
    KeyMetric,
)
from tir_schedules.insight.trace.recorder import Place
from tir_schedules.insight.trace.states import State, Trace
from tir_schedules.model.findings import KINDS, NOTES
from tir_schedules.pages import render
from tir_schedules.pages.code import highlighted, highlighted_line
from tir_schedules.provenance import git_revision, named_versions

WIDE = 20  # a chart whose largest bar is so many times its smallest has a logarithmic scale
LEAST_BAR = 4  # percent of the height
MOST_STEPS, LEAST_STEPS = 12, 3  # of a section of the list of steps
FINDINGS_SHOWN = 6
VERSIONS = ("apache-tvm", "cuda-toolkit", "nvidia-cuda-nvcc")


@dataclass(frozen=True)
class Bar:
    """height: percent of the chart's, None where it is not known. mark: the ideal's height, None where there
    is none."""

    state: int
    height: float | None
    mark: float | None
    label: str


@dataclass(frozen=True)
class Chart:
    title: str
    scale: str
    first: str
    last: str
    bars: tuple[Bar, ...]
    marked: bool


@dataclass(frozen=True)
class Section:
    """Neighbouring steps that one line of Python makes."""

    place: Place
    states: tuple[State, ...]


@dataclass(frozen=True)
class Shown:
    """A state as the page shows it.

    cells: key metrics, empty where they are unknown or an earlier state's. tir, cuda: what changed. first:
    whether its CUDA is the first.
    """

    state: State
    cells: tuple[Cell, ...]
    tir: tuple[diffs.Hunk, ...]
    cuda: tuple[diffs.Hunk, ...]
    first: bool


def page(trace: Trace) -> str:
    """Self-contained HTML."""
    return render(
        "trace.html.j2",
        title=f"{trace.rung.id}, step by step",
        provenance=provenance(trace),
        trace=trace,
        charts=[chart(metric, trace.states) for metric in CHARTS],
        sections=sections(trace.states[1:]),
        shown=shown(trace),
        signs=diffs.SIGNS,
        heads=["step#", "call", *(f"{name}#" for name in key_metrics.FIGURES), "outputs"],
        ring=rings.timeline_svg(trace.ring) if trace.ring else "",
        ring_notes=[barriers_of(trace.ring), *rings.LEGEND] if trace.ring else [],
        tools={
            "figures": key_metrics.figures,
            "mix": key_metrics.mix,
            "outputs": key_metrics.outputs,
            "launch": launch,
            "findings": explain_findings,
            "kinds": key_metrics.findings,
            "highlighted": highlighted,
            "highlighted_line": highlighted_line,
        },
    )


def provenance(trace: Trace) -> list[str]:
    made = f"{trace.rung.id} on {trace.workload}, compiled for {trace.arch}, executed on the CPU machine"
    return [
        f"{made}; no GPU was involved.",
        f"{named_versions(*VERSIONS)}; revision {git_revision() or 'unknown'}.",
    ]


def shown(trace: Trace) -> list[Shown]:
    """All states, each against the one before."""
    found = []
    for state, measured in zip(trace.states, key_metrics.measured_before(trace)):
        cells = () if state.repeats else tuple(key_metrics.cells(state, measured))
        first = state.number == trace.first_kernel
        tir = changes(trace.states[max(0, state.number - 1)].tir, state.tir)
        cuda = () if first or not state.cuda else changes(trace.cuda_before(state), state.cuda)
        found.append(Shown(state, cells, tir, cuda, first))
    return found


def changes(before: str, after: str) -> tuple[diffs.Hunk, ...]:
    """Empty where nothing changed."""
    return tuple(diffs.hunks(diffs.diff(before, after))) if before != after else ()


def chart(metric: KeyMetric, states: Sequence[State]) -> Chart:
    """A bar for each state; the ideal is marked where the metric has one."""
    values = [metric.value(state.measured) if state.measured else None for state in states]
    ideals = [ideal(metric, state) for state in states]
    known = [value for value in values if value is not None]
    positive = [value for value in (*known, *(one for one in ideals if one is not None)) if value]
    wide = bool(positive) and max(positive) > WIDE * min(positive)

    def height(value: int | None) -> float | None:
        if value is None or not positive:
            return None if value is None else 0
        if not wide:
            return round(100 * value / max(positive), 1)
        if not value:
            return 0
        above = log(value / min(positive)) / log(max(positive) / min(positive))
        return round(LEAST_BAR + (100 - LEAST_BAR) * above, 1)

    bars = tuple(
        Bar(
            state.number,
            height(value),
            height(one),
            f"{name_of(state)}: {'unknown' if value is None else number(value)}",
        )
        for state, value, one in zip(states, values, ideals)
    )
    ends = [number(value) for value in known[:1] + known[-1:]] or ["", ""]
    scale, marked = "logarithmic" if wide else "linear", any(one is not None for one in ideals)
    return Chart(metric.name, scale, ends[0], ends[-1], bars, marked)


def ideal(metric: KeyMetric, state: State) -> int | None:
    """The ideal wavefronts, for the chart of wavefronts."""
    return state.metrics.access(*SHARED).ideal or None if metric is WAVEFRONTS and state.metrics else None


def name_of(state: State) -> str:
    return f"step {state.number}, {state.step.primitive}" if state.step else "the algorithm"


def sections(states: Sequence[State], depth: int = 0) -> list[Section]:
    """The steps by the call that makes them: a line of the rung's schedule, or of a helper that makes many.

    What a function does itself, or through a helper that makes few steps, stands under the call of that
    function. states: those after a step.
    """
    found: list[Section] = []
    for place, group in groupby(states, key=lambda state: place_at(state, depth)):
        part = tuple(group)
        places = places_of(part[0])
        helped = len(places) > depth + 1
        if helped and len(part) > MOST_STEPS:
            found += sections(part, depth + 1)
            continue
        if not helped or (depth and len(part) < LEAST_STEPS):
            place = places[depth - 1] if depth else replace(place, line=0, text=f"{place.function}()")
        if found and found[-1].place == place:
            part = found.pop().states + part
        found.append(Section(place, part))
    return found


def places_of(state: State) -> tuple[Place, ...]:
    """Where a state's step is made."""
    return state.step.places if state.step else ()


def place_at(state: State, depth: int) -> Place:
    places = places_of(state)
    return places[min(depth, len(places) - 1)]


def launch(state: State) -> str:
    """ "8x2x1 blocks of 128x1x1 threads"; empty without a kernel."""
    if not state.measured:
        return ""
    kernel = state.measured.binary.kernel
    return f"{'x'.join(map(str, kernel.grid))} blocks of {'x'.join(map(str, kernel.block))} threads"


def explain_findings(state: State) -> list[tuple[str, str]]:
    """Findings and what their kinds mean."""
    found = state.metrics.findings if state.metrics else ()
    return [(str(finding), (KINDS | NOTES)[finding.kind]) for finding in found[:FINDINGS_SHOWN]]
