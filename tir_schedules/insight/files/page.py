"""The page of `check`: of each check the verdict, what was found, what its accesses cost, the source with the
counters of its lines, and the banks that its costly requests meet."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Iterator, Sequence

from markupsafe import Markup

from tir_schedules.check.report import access_rows
from tir_schedules.compiler.source_text import language_of
from tir_schedules.errors import CheckFailed
from tir_schedules.faults import closing_outcomes
from tir_schedules.insight.banks import pictures
from tir_schedules.insight.banks.requests import Pattern
from tir_schedules.insight.files.views import View, patterns_in, watch_launches
from tir_schedules.insight.inspection.listing import AnnotatedLine, annotate_lines
from tir_schedules.insight.inspection.views import LINE_COUNTERS, counters_of
from tir_schedules.insight.metrics.counting import GLOBAL, SHARED, Metrics, conflicts
from tir_schedules.insight.metrics.formats import mix_shares, number, pair, percent, ratio
from tir_schedules.model.attributes import spelled
from tir_schedules.model.counters import Access
from tir_schedules.model.findings import KINDS, NOTES, Finding, Location
from tir_schedules.model.machine import Machine
from tir_schedules.pages import render
from tir_schedules.pages.code import HighlightedSource
from tir_schedules.provenance import named_versions
from tir_schedules.verdicts import CELLS, LOOSE, PASS, UNJUDGED

MOST_PICTURES = 4
"""Most pictures of a launch."""

MOST_FAULTS = 12
STYLES = {
    CELLS[word]: "" if word in (UNJUDGED, LOOSE) else "better" if word == PASS else "worse" for word in CELLS
}
"""Cell of a verdict -> its class in the style."""

VERSIONS = ("cuda-toolkit", "nvidia-cuda-nvcc", "triton")


@dataclass(frozen=True)
class Fault:
    """What is wrong. meaning: of its kind. place: where it was; anchor: of that line on the page."""

    text: str
    meaning: str = ""
    location: Location | None = None
    anchor: str = ""


@dataclass(frozen=True)
class Row:
    """A line of source. cells: of LINE_COUNTERS. costly: whether some access takes more than the ideal;
    marked: whether something was found there."""

    line: AnnotatedLine
    code: Markup
    anchor: str
    cells: tuple[str, ...]
    costly: bool
    marked: bool


@dataclass(frozen=True)
class Launched:
    """A launch as the page shows it. title: empty for one alone. cards: figures with what they are. accesses:
    see `access_rows`. mix: shares of instructions. conflicts: wavefronts lost to them."""

    title: str
    cards: tuple[tuple[str, str], ...]
    accesses: tuple[tuple[str, str, str, Access], ...]
    mix: str
    rows: tuple[Row, ...]
    patterns: tuple[Pattern, ...]
    conflicts: int


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
    found = [section(view, f"check-{number}") for number, view in enumerate(views, 1)]
    files = ", ".join(dict.fromkeys(one.file for one in found))
    return render(
        "check.html.j2",
        title=f"check of {files}",
        provenance=list(provenance(views, machine)),
        sections=found,
        closing=closing_outcomes([view.checked.outcome for view in views]).rstrip(","),
        styles=STYLES,
        counted=LINE_COUNTERS,
        heads=["line#", *(f"{name}#" for name in LINE_COUNTERS), "source"],
        pictures=pictures,
        number=number,
        ratio=ratio,
    )


def provenance(views: Sequence[View], machine: Machine) -> Iterator[str]:
    where = f"executed on {machine.device_name}" + ("; no GPU was involved" if machine.name == "cpu" else "")
    archs = dict.fromkeys(step.binary.kernel.arch for view in views for step in view.checked.steps)
    yield f"compiled for {', '.join(archs)}, {where}." if archs else f"{where[0].upper()}{where[1:]}."
    yield named_versions(*VERSIONS)


def section(view: View, name: str) -> Section:
    """name: what its anchors begin with."""
    outcome = view.checked.outcome
    faults = tuple(faults_of(view))
    marked = {(fault.location.file, fault.location.line) for fault in faults if fault.location}
    several = len(view.launches) > 1
    launches = tuple(
        launch_section(view, at, f"{name}-{at + 1}", several, marked) for at in range(len(view.launches))
    )
    anchors = {
        (row.line.file or view.file, row.line.number): row.anchor
        for launch in reversed(launches)
        for row in launch.rows
    }
    faults = tuple(
        replace(fault, anchor=anchors.get((fault.location.file, fault.location.line), ""))
        if fault.location
        else fault
        for fault in faults
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


def launch_section(view: View, at: int, name: str, several: bool, marked: set[tuple[str, int]]) -> Launched:
    """name: what its anchors begin with. several: whether it is one of several launches."""
    launch = view.launches[at]
    kernel = launch.binary.kernel
    shares = [f"{name} {percent(share)}" for name, share in mix_shares(launch.counters).items()]
    lost = conflicts(launch.access(*SHARED))
    return Launched(
        f"Launch {at + 1}: {kernel.label}" if several else "", tuple(cards(launch)),
        tuple(access_rows(launch.counters)), ", ".join(shares), tuple(rows(launch, name, marked)),
        tuple(costliest_patterns(view, at)), lost,
    )  # fmt: skip


def cards(launch: Metrics) -> Iterator[tuple[str, str]]:
    """Figures and what they are."""
    kernel, held = launch.binary.kernel, launch.occupancy
    yield spelled(kernel.grid), f"blocks of {spelled(kernel.block)} threads"
    yield number(launch.binary.resources.registers), "registers per thread"
    yield number(launch.binary.shared_bytes), "bytes of shared memory per block"
    limits = ", ".join(held.limited_by)
    yield f"{held.warps} of {held.max_warps}", f"warps per SM of {kernel.arch}, limited by {limits}"
    shared, memory = launch.access(*SHARED), launch.access(*GLOBAL)
    yield pair(shared), "wavefronts of shared memory (ideal)"
    yield pair(memory), "sectors of global memory (ideal)"
    yield number(launch.counters.warp_instructions), "instructions issued by warps"
    active = ratio(launch.counters.thread_instructions, launch.counters.warp_instructions)
    yield active, "active lanes of 32, on average"


def rows(launch: Metrics, name: str, marked: set[tuple[str, int]]) -> Iterator[Row]:
    """name: what anchors begin with. marked: places of faults."""
    kernel = launch.binary.kernel
    own, source = kernel.file, HighlightedSource(kernel.source, language_of(kernel))
    for at, line in enumerate(annotate_lines(launch)):
        accesses = line.counters.accesses.values() if line.counters else ()
        costly = any(conflicts(access) > 0 for access in accesses)
        found = (line.file or own, line.number) in marked
        code = source.line(line.row, line.text)
        yield Row(line, code, f"{name}-line-{at}", counters_of(line), costly, found)


def costliest_patterns(view: View, at: int) -> list[Pattern]:
    """What the first warp asks of shared memory in a launch: the patterns that lose most wavefronts; without
    bank conflicts the first one."""
    if not view.ready or not view.launches[at].access(*SHARED).requests:
        return []
    try:
        _, step, execution = list(watch_launches(view.ready, (0, 0, 0), 0))[at]
    except CheckFailed:
        return []
    found = patterns_in(step.binary, execution.requests)
    lost = [one for one in found if one.wavefronts > one.ideal]
    lost.sort(key=lambda one: -(one.wavefronts - one.ideal) * one.requests)
    return lost[:MOST_PICTURES] or found[:1]
