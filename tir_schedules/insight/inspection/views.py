"""An inspection printed: as a table, as annotated source, as code side by side; and several in one table."""

from __future__ import annotations

from functools import partial
from typing import Callable, Iterator, Mapping, Sequence

from tir_schedules.console import fits, print_aligned, print_line, print_table, print_whole, side_by_side
from tir_schedules.insight.inspection.listing import (
    AnnotatedLine,
    annotate_lines,
    conflicting_accesses,
    listing,
    opcodes,
)
from tir_schedules.insight.inspection.tables import SHORT_COLUMNS, Row, full_table, roofline_rows, short_rows
from tir_schedules.insight.inspection.twins import Inspection
from tir_schedules.insight.metrics.counting import ACTIONS, GLOBAL, SHARED, UNITS, Metrics, conflicts, total
from tir_schedules.insight.metrics.formats import list_findings, number, pair, percent, ratio
from tir_schedules.insight.metrics.roofline import Gpu, ridge
from tir_schedules.insight.metrics.rungs import FORMS
from tir_schedules.ladders.known import ladder_of
from tir_schedules.model.counters import Access
from tir_schedules.model.workload import Workload

COUNTED = (
    "counted: the CPU machine executes the PTX and counts as Nsight Compute does; ptxas may still merge or"
    " drop some instructions"
)
IDEAL = (
    "ideal wavefronts: without bank conflicts; ideal sectors: the bytes that the lanes of an access ask for,"
    " each once, side by side"
)
MODELS = (
    "models, which no profiler has confirmed: wavefronts of wgmma, 128 bytes of its factors each; sectors of"
    " boxes of tensor maps, row by row"
)


def print_one(inspection: Inspection, view: str | None, default_size: bool, more: Sequence[Row] = ()) -> None:
    """view: a key of PRINTERS; None for the table. more: further rows of that."""
    print_line(heading(inspection, default_size))
    if view:
        PRINTERS[view]({form: inspection.own(form) for form in inspection.kernels})
    else:
        print_full(inspection, more)


def heading(inspection: Inspection, default_size: bool) -> str:
    """What is inspected: rung, size and architecture; where there are several launches, which one."""
    launches = max((len(launches) for launches in inspection.kernels.values()), default=0)
    option = f"--{ladder_of(inspection.rung.family).option}"
    size = f" (small, for the CPU machine; {option} names another)" if default_size else ""
    which = "the first" if not inspection.place else f"number {inspection.place + 1}"
    which = f"; {which} of {launches} launches, --json has all" if launches > 1 else ""
    return f"{inspection.name} on {inspection.workload}{size}, compiled for {inspection.arch}{which}"


def print_full(inspection: Inspection, more: Sequence[Row]) -> None:
    """Everything in one table, and where each number comes from."""
    print_table(
        ("", "schedule", "twin"),
        [*full_table(inspection), *roofline_rows(inspection), *more],
        prose={"": 24, "schedule": 16, "twin": 16},
    )
    print_line()
    print_line(COUNTED)
    print_line(IDEAL)
    if any(one.access(*UNITS).requests for launches in inspection.kernels.values() for one in launches):
        print_line(MODELS)
    print_line(roofline_note(inspection.gpu, inspection.workload))


def roofline_note(gpu: Gpu, workload: Workload) -> str:
    return (
        f"roofline: the datasheet of {gpu.name} gives {gpu.peak(workload):g} TFLOPS and"
        f" {gpu.bandwidth:g} GB/s; from an arithmetic intensity of {ridge(gpu, workload):.4g} flop/byte on"
        " arithmetic is the limit, below it memory. Caches put a kernel between the two intensities. Nothing"
        " was timed"
    )


def findings_of(inspection: Inspection) -> Iterator[str]:
    """What was found in each launch that is not right, all of them and not only the rung's own."""
    for form, launches in inspection.kernels.items():
        for place, launch in enumerate(launches, 1):
            if launch.findings:
                which = f"{form}, launch {place} of {len(launches)}" if len(launches) > 1 else form
                run = f"`tir-schedules run {inspection.rung.typed} --machine cpu` shows all"
                yield f"{inspection.rung.id} ({which}): {list_findings(launch.findings)}; {run}"


def print_several(
    inspections: Sequence[Inspection], column: str = "", more: Mapping[tuple[str, str], str] = {}
) -> None:
    """A table with two rows for each rung. column, more: a further one, and its cells by rung and form."""
    rows = [
        (*row, *([more.get((inspection.rung.id, form), "-")] if column else []))
        for inspection in inspections
        for form, row in zip(FORMS, short_rows(inspection))
    ]
    print_table((*SHORT_COLUMNS, *([column] if column else [])), rows)
    sizes = ", ".join(dict.fromkeys(str(inspection.workload) for inspection in inspections))
    archs = ", ".join(dict.fromkeys(inspection.arch for inspection in inspections))
    print_line(f"on {sizes}, compiled for {archs}; warps / SM: resident, by CUDA's occupancy rules")
    print_line(
        "counted: the CPU machine executes the PTX; 4x: four times the wavefronts that it takes without bank"
        " conflicts"
    )
    print_line("flop/byte: arithmetic intensity of all sectors through the L1 cache")


def print_lines(launches: Mapping[str, Metrics]) -> None:
    """Each kernel's source with the counters of its lines. launches: by the names that head their lines."""
    for name, launch in launches.items():
        rows = [(*counters_of(line), line.place, line.text) for line in annotate_lines(launch)]
        print_line()
        print_aligned((*LINE_COUNTERS, "line", name), rows)
    print_line()
    print_line(
        "instructions: share of thread instructions; wavefronts and conflicts: of shared memory; a sector: 32"
        " bytes of global memory"
    )


LINE_COUNTERS = ("instructions", "wavefronts (ideal)", "conflicts", "sectors / request")
"""What the counters of a line are."""


def counters_of(line: AnnotatedLine) -> tuple[str, ...]:
    """Cells of LINE_COUNTERS, empty where a line has none."""
    if not line.counters:
        return ("", "", "", "")
    shared, memory = (total(line.counters.accesses, classes) for classes in (SHARED, GLOBAL))
    cells = (
        pair(shared),
        number(conflicts(shared)) if conflicts(shared) else "",
        ratio(memory.cost, memory.requests),
    )
    return (percent(line.share), *(cell.replace("-", "") for cell in cells))


def print_conflicts(launches: Mapping[str, Metrics]) -> None:
    """Lines with bank conflicts, or that there are none."""
    for name, launch in launches.items():
        rows = [
            (one.line.place, ACTIONS.get(one.kind, one.kind), *counts_of(one.access), one.line.text.strip())
            for one in conflicting_accesses(launch)
        ]
        print_line()
        if rows:
            print_aligned(("line", "access", "requests", "wavefronts", "ideal", "per request", name), rows)
        else:
            print_line(f"{name}: {no_conflicts(launch)}")


def counts_of(access: Access) -> tuple[str, ...]:
    return (
        number(access.requests),
        number(access.cost),
        number(access.ideal),
        ratio(access.cost, access.requests),
    )


def no_conflicts(launch: Metrics) -> str:
    """Why there are no conflicts to show."""
    shared = launch.access(*SHARED)
    if not shared.requests:
        return "no bank conflicts: it does not use shared memory"
    return f"no bank conflicts: all {shared.requests:,} requests to shared memory take the ideal wavefronts"


def print_code(launches: Mapping[str, Metrics], form: str) -> None:
    """How often each instruction stands in the kernels' code, then the code."""
    code = {name: listing(launch.binary, form) for name, launch in launches.items()}
    counts = {name: opcodes(lines) for name, lines in code.items()}
    known = sorted(
        {name for count in counts.values() for name in count},
        key=lambda name: (-max(c[name] for c in counts.values()), name),
    )
    shown = [*code]
    rows = [(name, *(str(counts[which][name] or "-") for which in shown)) for name in known]
    print_table(
        ("instruction", *shown), [*rows, ("all", *(str(sum(counts[which].values())) for which in shown))]
    )
    print_line("how often each is in the code, not how often it is executed")
    print_line()
    texts = [[name, *code[name]] for name in shown]
    lines = list(side_by_side(texts))
    print_whole("\n".join(lines if fits(lines) else (line for text in texts for line in (*text, ""))))


PRINTERS: dict[str | None, Callable[[Mapping[str, Metrics]], None]] = {
    "lines": print_lines,
    "conflicts": print_conflicts,
    "sass": partial(print_code, form="sass"),
    "ptx": partial(print_code, form="ptx"),
}
