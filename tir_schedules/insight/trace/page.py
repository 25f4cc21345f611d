"""The page of a trace: charts of all states, the steps in the order of the rung's lines, and each step with
what it changes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from math import log
from typing import Sequence

from tir_schedules.insight.inspection.figures import number, pair
from tir_schedules.insight.metrics.metrics import GLOBAL, SHARED
from tir_schedules.insight.trace import diffs
from tir_schedules.insight.trace import figures as trace_figures
from tir_schedules.insight.trace.figures import CHARTS, INSTRUCTIONS, REGISTERS, WAVEFRONTS, Cell, Figure
from tir_schedules.insight.trace.steps import Place, Step
from tir_schedules.insight.trace.trace import State, Trace
from tir_schedules.model.findings import KINDS
from tir_schedules.pages import render
from tir_schedules.provenance import git_revision, software_versions

WIDE = 20  # a chart whose largest bar is so many times its smallest has a logarithmic scale
LEAST_BAR = 4  # percent of the height
MOST_STEPS, LEAST_STEPS = 12, 3  # of a section of the list of steps
FINDINGS_SHOWN = 6
VERSIONS = ("apache-tvm", "cuda-toolkit", "nvidia-cuda-nvcc")


@dataclass(frozen=True)
class Bar:
    """height, mark: percent of the chart's height; mark is the ideal, None where there is none. A height of
    None: not known."""

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
    """A state as the page has it. cells: figures, empty where they are those of an earlier state or unknown.
    tir, cuda: what changed.
    first: whether its CUDA is the first."""

    state: State
    cells: tuple[Cell, ...]
    tir: tuple[diffs.Run, ...]
    cuda: tuple[diffs.Run, ...]
    first: bool


def page(trace: Trace) -> str:
    """Self-contained HTML."""
    return render(
        "trace.html.j2",
        title=f"{trace.rung.id}, step by step",
        provenance=provenance(trace),
        trace=trace,
        charts=[chart(figure, trace.states) for figure in CHARTS],
        sections=sections(trace.states[1:]),
        shown=shown(trace),
        signs=diffs.SIGNS,
        tools={
            "row": row, "short": short, "mix": trace_figures.mix, "outputs": trace_figures.outputs,
            "launch": launch,
            "findings": explained, "kinds": trace_figures.findings,
        },
    )  # fmt: skip


def provenance(trace: Trace) -> list[str]:
    versions = software_versions()
    named = ", ".join(f"{name} {versions[name]}" for name in VERSIONS if name in versions)
    return [
        (
            f"{trace.rung.id} on {trace.workload}, compiled for {trace.arch}, executed on the CPU machine; no"
            " GPU was involved."
        ),
        f"{named}; revision {git_revision() or 'unknown'}.",
    ]


def shown(trace: Trace) -> list[Shown]:
    """All states, each against the one before."""
    found = []
    for state, measured in zip(trace.states, trace_figures.measured_before(trace)):
        cells = tuple(trace_figures.cells(state, measured)) if state.measured and not state.repeats else ()
        first = state.number == trace.first_kernel
        tir = changes(trace.states[max(0, state.number - 1)].tir, state.tir)
        cuda = () if first or not state.cuda else changes(trace.cuda_before(state), state.cuda)
        found.append(Shown(state, cells, tir, cuda, first))
    return found


def changes(before: str, after: str) -> tuple[diffs.Run, ...]:
    """Empty where nothing changed."""
    return tuple(diffs.runs(diffs.diff(before, after))) if before != after else ()


def chart(figure: Figure, states: Sequence[State]) -> Chart:
    """A bar for each state; the ideal is marked where the figure has one."""
    values = [figure.value(state.measured) if state.measured else None for state in states]
    ideals = [ideal(figure, state) for state in states]
    known = [value for value in values if value is not None]
    positive = [value for value in (*known, *(one for one in ideals if one is not None)) if value]
    wide = bool(positive) and max(positive) > WIDE * min(positive)

    def height(value: int | None) -> float | None:
        if value is None or not positive:
            return None if value is None else 0
        if not wide:
            return round(100 * value / max(positive), 1)
        return (
            round(
                LEAST_BAR
                + (100 - LEAST_BAR) * log(value / min(positive)) / log(max(positive) / min(positive)),
                1,
            )
            if value
            else 0
        )

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
    return Chart(
        figure.name,
        "logarithmic" if wide else "linear",
        ends[0],
        ends[-1],
        bars,
        any(one is not None for one in ideals),
    )


def ideal(figure: Figure, state: State) -> int | None:
    """The least wavefronts, for the chart of wavefronts."""
    return state.metrics.access(*SHARED).ideal or None if figure is WAVEFRONTS and state.metrics else None


def name_of(state: State) -> str:
    return f"step {state.number}, {state.step.primitive}" if state.step else "the algorithm"


def sections(states: Sequence[State], depth: int = 0) -> list[Section]:
    """The steps by the call that makes them: a line of the rung's schedule, or of a helper where that makes
    many. What a function does itself, or through a helper that makes few steps, stands under the call of that
    function."""
    found: list[Section] = []
    for place, group in groupby(states, key=lambda state: place_at(state.step, depth)):
        part = tuple(group)
        helped = len(part[0].step.places) > depth + 1
        if helped and len(part) > MOST_STEPS:
            found += sections(part, depth + 1)
            continue
        if not helped or (depth and len(part) < LEAST_STEPS):
            place = (
                part[0].step.places[depth - 1]
                if depth
                else replace(place, line=0, text=f"{place.function}()")
            )
        if found and found[-1].place == place:
            part = found.pop().states + part
        found.append(Section(place, part))
    return found


def place_at(step: Step, depth: int) -> Place:
    return step.places[min(depth, len(step.places) - 1)]


def short(places: Sequence[Place]) -> list[Place]:
    """Where a step is made: the rung's own line, and the lines of helpers. Rungs that build on each other
    call one another's `schedule`; of those the last one stands for all."""
    own = [place for place in places if place.function == "schedule"]
    helpers = [place for place in places if place.function != "schedule"]
    return [*dict.fromkeys((*own[:1], *own[-1:])), *helpers]


def row(state: State) -> list[str]:
    """Cells of the list of steps: registers, shared bytes, wavefronts (ideal), sectors, instructions."""
    if not state.measured:
        return [""] * 5
    resources = [number(figure.value(state.measured)) for figure in (REGISTERS, trace_figures.SHARED_BYTES)]
    if not state.metrics:
        return [*resources, "", "", ""]
    counts = [
        pair(state.metrics.access(*SHARED)),
        number(state.metrics.access(*GLOBAL).cost),
        number(INSTRUCTIONS.value(state.measured)),
    ]
    return [*resources, *counts]


def launch(state: State) -> str:
    """ "8x2x1 blocks of 128x1x1 threads"."""
    kernel = state.measured.binary.kernel
    return f"{'x'.join(map(str, kernel.grid))} blocks of {'x'.join(map(str, kernel.block))} threads"


def explained(state: State) -> list[tuple[str, str]]:
    """Findings and what their kinds mean."""
    found = state.metrics.findings if state.metrics else ()
    return [(str(finding), KINDS[finding.kind]) for finding in found[:FINDINGS_SHOWN]]
