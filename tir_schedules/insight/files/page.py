"""The page of `check`: of each check the verdict, what was found, what its accesses cost, the source with the
counters of its lines, and the banks that its costly requests meet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterator, Sequence

from tir_schedules.check.report import cost_rows
from tir_schedules.errors import CheckFailed
from tir_schedules.faults import closing_words
from tir_schedules.insight.banks import pictures
from tir_schedules.insight.banks.requests import Pattern
from tir_schedules.insight.files.banks import patterns_in, watched
from tir_schedules.insight.files.views import NO_PTXAS, View
from tir_schedules.insight.inspection.annotate import AnnotatedLine, annotated
from tir_schedules.insight.inspection.views import counters_of
from tir_schedules.insight.metrics.counting import GLOBAL, SHARED, Metrics, conflicts, total
from tir_schedules.insight.metrics.formats import MIX, number, pair, percent, ratio
from tir_schedules.model.attributes import spelled
from tir_schedules.model.findings import KINDS, NOTES, Finding, Location
from tir_schedules.model.machine import Machine
from tir_schedules.pages import render
from tir_schedules.provenance import software_versions
from tir_schedules.verdicts import CELLS

MOST_PICTURES = 4
"""Of a launch."""

MOST_FAULTS = 12
CLASSES = {"pass": "better", "FAIL": "worse", "HAZARD": "worse", "ERROR": "worse"}
"""Cell of a verdict -> its class in the style."""

VERSIONS = ("cuda-toolkit", "nvidia-cuda-nvcc", "triton")


@dataclass(frozen=True)
class Fault:
    """What is wrong. meaning: of its kind. place, line: where it was, as the page's lines are called."""

    text: str
    meaning: str = ""
    location: Location | None = None


@dataclass(frozen=True)
class Row:
    """A line of source. cells: instructions, wavefronts (ideal), conflicts, sectors per request."""

    line: AnnotatedLine
    cells: tuple[str, ...]
    costly: bool
    marked: bool


@dataclass(frozen=True)
class Launched:
    """A launch as the page shows it. cards: figures with what they are. accesses: rows of memory, access,
    requests, cost, ideal, per request, unit. mix: shares of instructions."""

    title: str
    cards: tuple[tuple[str, str], ...]
    accesses: tuple[tuple[str, ...], ...]
    mix: str
    rows: tuple[Row, ...]
    patterns: tuple[Pattern, ...]
    conflicts: int
    note: str


@dataclass(frozen=True)
class Section:
    """A check. verdict: a cell of a table."""

    label: str
    file: str
    verdict: str
    faults: tuple[Fault, ...]
    left: int
    printed: str
    launches: tuple[Launched, ...]


def page(views: Sequence[View], machine: Machine) -> str:
    """Self-contained HTML."""
    found = [section(view) for view in views]
    files = ", ".join(dict.fromkeys(one.file for one in found))
    return render(
        "check.html.j2",
        title=f"check of {files}",
        provenance=list(provenance(views, machine)),
        sections=found,
        closing=closing_words([view.checked.outcome.word for view in views]),
        classes=CLASSES,
        pictures=pictures,
    )


def provenance(views: Sequence[View], machine: Machine) -> Iterator[str]:
    where = "executed on the CPU machine; no GPU was involved"
    if machine.name != "cpu":
        where = f"executed on {machine.device_name}"
    archs = dict.fromkeys(step.binary.kernel.arch for view in views for step in view.checked.steps)
    yield f"compiled for {', '.join(archs)}, {where}." if archs else f"{where[0].upper()}{where[1:]}."
    versions = software_versions()
    yield ", ".join(f"{name} {versions[name]}" for name in VERSIONS if name in versions)


def section(view: View) -> Section:
    outcome = view.checked.outcome
    faults = tuple(faults_of(view))
    marked = {
        (fault.location.file, fault.location.line) for fault in faults if fault.location and fault.meaning
    }
    several = len(view.launches) > 1
    launches = tuple(
        launched(view, at, f"launch {at + 1}: " if several else "", marked)
        for at in range(len(view.launches))
    )
    return Section(
        view.checked.label, view.file, CELLS[outcome.word], faults[:MOST_FAULTS],
        max(0, len(faults) - MOST_FAULTS), outcome.printed, launches,
    )  # fmt: skip


def faults_of(view: View) -> Iterator[Fault]:
    outcome = view.checked.outcome
    if outcome.error:
        yield Fault(outcome.error)
    for finding in (*outcome.findings, *outcome.notes):
        yield Fault(str(finding), meaning(finding), finding.location)
    for wrong in outcome.wrong:
        yield Fault(str(wrong), "a value that is not what it should be", wrong.location)


def meaning(finding: Finding) -> str:
    return (KINDS | NOTES).get(finding.kind, "")


def launched(view: View, at: int, prefix: str, marked: set[tuple[str, int]]) -> Launched:
    launch = view.launches[at]
    kernel = launch.binary.kernel
    mix = ((name, sum(launch.counters.mix.get(one, 0) for one in some)) for name, some in MIX.items())
    shares = [
        f"{name} {percent(count / launch.counters.thread_instructions)}" for name, count in mix if count
    ]
    lost = conflicts(launch.access(*SHARED))
    return Launched(
        f"{prefix}{kernel.label}", tuple(cards(launch)), tuple(cost_rows(launch.counters)),
        ", ".join(shares), tuple(rows(launch, marked)), tuple(costliest_patterns(view, at)), lost,
        "" if launch.binary.cubin else NO_PTXAS,
    )  # fmt: skip


def cards(launch: Metrics) -> Iterator[tuple[str, str]]:
    """Figures and what they are."""
    kernel, held = launch.binary.kernel, launch.occupancy
    yield spelled(kernel.grid), f"blocks of {spelled(kernel.block)} threads"
    yield number(launch.binary.resources.registers), "registers per thread"
    yield number(launch.shared_bytes), "bytes of shared memory per block"
    limits = ", ".join(held.limited_by)
    yield f"{held.warps} of {held.max_warps}", f"warps per SM of {kernel.arch}, limited by {limits}"
    shared, memory = launch.access(*SHARED), launch.access(*GLOBAL)
    yield pair(shared), "wavefronts of shared memory (ideal)"
    yield pair(memory), "sectors of global memory (ideal)"
    yield number(launch.counters.warp_instructions), "instructions issued by warps"
    active = ratio(launch.counters.thread_instructions, launch.counters.warp_instructions)
    yield active, "active lanes of 32, on average"


def rows(launch: Metrics, marked: set[tuple[str, int]]) -> Iterator[Row]:
    """marked: places of faults."""
    own = launch.binary.kernel.file
    for line in annotated(launch):
        accesses = line.counters.accesses if line.counters else {}
        costly = any(conflicts(total(accesses, some)) for some in (SHARED, GLOBAL))
        yield Row(line, counters_of(line), costly, (line.file or own, line.number) in marked)


def costliest_patterns(view: View, at: int) -> list[Pattern]:
    """What the first warp asks of shared memory in a launch: the patterns that lose most wavefronts; without
    bank conflicts the first one."""
    if not view.ready or not view.launches[at].access(*SHARED).requests:
        return []
    try:
        step, execution = list(watched(view.ready, (0, 0, 0), 0))[at]
    except CheckFailed:
        return []
    found = patterns_in(step.binary, execution.requests)
    lost = [one for one in found if one.wavefronts > one.ideal]
    lost.sort(key=lambda one: -(one.wavefronts - one.ideal) * one.requests)
    return lost[:MOST_PICTURES] or found[:1]
