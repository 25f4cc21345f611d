"""The page of a report: its parts gathered from recorded results and the CPU machine, and rendered."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tir_schedules.bench import tables, views
from tir_schedules.bench.views import Group
from tir_schedules.console import progress
from tir_schedules.insight.banks import pictures as banks
from tir_schedules.insight.metrics import counting
from tir_schedules.insight.profile.nsight import NAMES
from tir_schedules.insight.times.page import COLOURS, parts_of
from tir_schedules.insight.times.timed import Target, Timed, inputs_of, target_of, time_subject
from tir_schedules.insight.times.views import limit_text, states_text
from tir_schedules.machines.choice import CPU_ARCH
from tir_schedules.pages import render
from tir_schedules.provenance import join_known
from tir_schedules.report import padding, plots, recorded, roofs
from tir_schedules.report.agreement import SHOWN, agreement_of
from tir_schedules.report.counted import ByKernel, Job, count, index_by_kernel, jobs_of, known
from tir_schedules.report.recorded import Document, Recorded
from tir_schedules.report.sweeps import series_of, times_svg
from tir_schedules.subjects.results import about, device_name
from tir_schedules.version import VERSION

if TYPE_CHECKING:
    from markupsafe import Markup

    from tir_schedules.model.counters import Access
    from tir_schedules.model.workload import Workload

COMMAND = "tir-schedules report"
SHAPES = 8  # columns of a table of rates


@dataclass(frozen=True)
class Ladder:
    """One kind of one ladder. kernels: what the CPU machine counted, empty for a quick page. others: further
    recordings. times: predicted, of each kernel, where they were asked for."""

    group: Group
    document: Document
    jobs: list[Job]
    kernels: ByKernel
    others: list[tuple[Group, Document]]
    times: dict[tuple[str, str], Timed] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """For ids of the page."""
        return id_of(self.group)

    @property
    def workload(self) -> Workload:
        """What the CPU machine was given."""
        return self.jobs[0][1]

    @property
    def origin(self) -> str:
        return recorded.origin(self.document)

    @property
    def roofs(self) -> roofs.Roofs | None:
        return roofs.roofs_of(self.group, self.document)


def id_of(group: Group) -> str:
    """A title as a part of ids."""
    return group.title.replace(" ", "-")


def draw_times(found: Recorded) -> dict[str, Markup | str]:
    """Pictures of recorded times by the ids of their <svg>: those for which nothing has to be counted."""
    drawn: dict[str, Markup | str] = {}
    for group, document in found.groups().values():
        ladder, sizes = f"ladder-{id_of(group)}", f"sizes-{id_of(group)}"
        drawn[ladder] = plots.ladder_svg(group, document, ladder)
        drawn[sizes] = plots.sizes_svg(group, sizes)
    for value, series in series_of(found.sweeps).items():
        drawn[f"sweep-{value}"] = times_svg(series, f"sweep-{value}")
    return drawn


def ladders_of(found: Recorded, quick: bool, target: Target | None = None) -> tuple[list[Ladder], list[str]]:
    """The ladders that were timed, with what the CPU machine counts of their rungs; and a line for each
    fault: refused kernels, and findings. quick: nothing is counted. target: whose times are predicted,
    too."""
    groups = found.groups()
    examples = [title for title, (group, _) in groups.items() if group.family == padding.FAMILY][:1]
    jobs = {
        title: jobs_of(group, padding.NAMES if title in examples else ())
        for title, (group, _) in groups.items()
    }
    every = [job for of_group in jobs.values() for job in of_group]
    kernels, refused = ([], []) if quick else count(every, found.arch or CPU_ARCH)
    ladders = [
        Ladder(
            *groups[title], jobs[title], index_by_kernel(kernels, jobs[title]), found.recordings[title][1:]
        )
        for title in groups
    ]
    if target:
        ladders = [replace(ladder, times=times_of(ladder.kernels, target)) for ladder in ladders]
    findings = [str(finding) for one in kernels for launch in one.launches for finding in launch.findings]
    return ladders, [*map(tables.refusal, refused), *findings]


def times_of(kernels: ByKernel, target: Target) -> dict[tuple[str, str], Timed]:
    """Times of the kernels that were counted."""
    with progress(len(kernels), "predicting") as step:
        found = {}
        for key, one in kernels.items():
            found[key] = time_subject(one.subject, inputs_of(one.subject), target)
            step(one.subject.label)
    return found


def page_of(
    found: Recorded,
    ladders: list[Ladder],
    faults: list[str],
    quick: bool,
    drawn: dict[str, Markup | str],
) -> str:
    """The whole page, of what `ladders_of` and `draw_times` returned."""
    halves = next((ladder for ladder in ladders if ladder.group.family == padding.FAMILY), None)
    example = padding.example_of(halves.kernels, halves.group, found) if halves else None
    return render(
        "report.html.j2",
        title="GPU kernels as ladders of schedules",
        provenance=[*dict.fromkeys(ladder.origin for ladder in ladders), made_by(about(COMMAND))],
        ladders=ladders,
        drawn=drawn,
        faults=faults,
        quick=quick,
        device_of_times=target_of().table.device,
        arch=found.arch or CPU_ARCH,
        example=example,
        ladder_of_example=halves,
        device=device_name(halves.document) if halves else "",
        pictures=padding.pictures(example),
        bank_tables=padding.bank_tables(example),
        agreement=agreement_of(found.counters),
        sweeps=series_of(found.sweeps),
        sweeps_from=list(dict.fromkeys(map(recorded.origin, found.sweeps))),
        **WRITING,
    )


def in_parts(group: Group) -> list[Group]:
    """A group as several of at most SHAPES shapes, whose tables fit a page."""
    starts = range(0, len(group.sizes), SHAPES)
    return [replace(group, sizes=group.sizes[start : start + SHAPES]) for start in starts]


def summary_of(name: str) -> str:
    """What a rung adds to the one before it."""
    return next((rung.summary for rung in known(name)), "")


def per_request(access: Access) -> str:
    """What one request costs, or a dash where there is none."""
    return f"{access.cost / access.requests:.2f}" if access.requests else "–"


def times(access: Access) -> str:
    """Cost over the ideal, such as "1.33x"."""
    return f"{access.cost / access.ideal:.2f}x" if access.ideal else "–"


def span(numbers: tuple[int, ...]) -> str:
    """ "0–3" of numbers that follow each other."""
    return f"{numbers[0]}–{numbers[-1]}"


def marks(document: Document) -> list[str]:
    """Lines on the GPU's limits, the marks in cells, and what was refused."""
    return [line for line in tables.closing_lines(document) if not line.startswith("a cell is")]


def roofline(ladder: Ladder) -> Markup | str:
    """The roofline of a ladder as an <svg>; empty where it has none."""
    if not ladder.roofs:
        return ""
    rungs, best = roofs.rungs_at_largest(ladder.group, ladder.kernels), roofs.best_schedules(ladder.group)
    return plots.roofline_svg(ladder.roofs, rungs, best, f"roofline-{ladder.id}")


def made_by(here: Document) -> str:
    """What made the page."""
    versions = here["versions"]
    parts = {
        "TVM": versions.get("apache-tvm"),
        "nvcc": versions.get("nvcc"),
        "revision": here["git_revision"][:12],
    }
    return f"Made by {COMMAND}, tir_schedules {VERSION}, {join_known(parts)}, {here['date'][:10]}."


WRITING = {
    "banks": banks,
    "cell": tables.cell,
    "counter_heads": ("kernel", "on", *(f"{NAMES[metric].replace(', ', '|')}#" for metric in SHOWN)),
    "counters_shown": SHOWN,
    "figures": views.figures,
    "in_parts": in_parts,
    "heads": lambda first, others: [first, *(f"{name}#" for name in others)],
    "marks": marks,
    "counting": counting,
    "number": "{:,}".format,
    "origin": recorded.origin,
    "padding": padding,
    "per_request": per_request,
    "roofline": roofline,
    "share": tables.share,
    "short": views.short,
    "span": span,
    "summary": tables.summary,
    "summary_of": summary_of,
    "table": tables.table,
    "colours": COLOURS,
    "limit_text": limit_text,
    "parts_of": parts_of,
    "said_of": states_text,
    "times": times,
    "zip": zip,
}
"""What the templates call to write values."""
