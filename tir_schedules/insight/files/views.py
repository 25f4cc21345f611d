"""The kernels of a file as `inspect` shows them: metrics of each launch, with the names that head them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Iterator, Mapping, Sequence

from tir_schedules.check.preparing import Prepared, Request
from tir_schedules.check.session import Checked
from tir_schedules.check.together import performed, prepared_together
from tir_schedules.console import print_line, print_table
from tir_schedules.errors import CheckFailed, MissingTool
from tir_schedules.faults import closing_words
from tir_schedules.files import Json
from tir_schedules.insight.inspection.listing import listing, opcodes
from tir_schedules.insight.inspection.tables import SHORT_COLUMNS, rows_of, short_cells
from tir_schedules.insight.inspection.views import (
    COUNTED,
    IDEAL,
    print_code_of,
    print_conflicts_of,
    print_lines_of,
)
from tir_schedules.insight.metrics.counting import Metrics, occupancy_of
from tir_schedules.machines.choice import choose
from tir_schedules.model.machine import Machine


@dataclass(frozen=True)
class View:
    """A check as others look at it. ready: its kernels and arguments, None where it does not compile.
    launches: metrics of each, empty where it was not run."""

    request: Request
    checked: Checked
    ready: Prepared | None = None
    launches: tuple[Metrics, ...] = ()

    @property
    def file(self) -> str:
        return self.request.source.file

    @property
    def named(self) -> dict[str, Metrics]:
        """Launches by the names of their kernels, with their number where one is launched again."""
        found: dict[str, Metrics] = {}
        for number, launch in enumerate(self.launches, 1):
            name = launch.binary.kernel.label
            found[f"{name}, launch {number}" if name in found else name] = launch
        return found

    def as_json(self, view: str | None = None) -> Json:
        """With the code where that is the view."""
        launches: list[Json] = []
        for launch in self.launches:
            found = launch.as_json()
            if view in ("sass", "ptx"):
                code = listing(launch.binary, view)
                found[view] = {"opcodes": opcodes(code), "lines": code}
            launches.append(found)
        return {"file": self.file, "kernel": self.checked.label, "check": self.checked.outcome.as_json(),
                "launches": launches}  # fmt: skip


def viewed(requests: Sequence[Request], machine: Machine | None = None) -> Iterator[View]:
    """Each request run, counted and judged, in order. machine: the CPU machine, in one order of warps, where
    none is given. BadInput for an architecture without figures."""
    machine = machine or choose("cpu", 1)
    for request, ready in prepared_together(requests, machine):
        checked = performed(request, ready, machine)
        yield View(request, checked, ready if isinstance(ready, Prepared) else None, metrics(checked))


def ready_for(request: Request) -> Prepared | CheckFailed:
    """One request ready to run on the CPU machine, or why it is not."""
    ((_, ready),) = prepared_together([request], choose("cpu", 1))
    return ready


def metrics(checked: Checked) -> tuple[Metrics, ...]:
    """Of each launch that was counted."""
    return tuple(
        Metrics(step.binary, occupancy_of(step.binary), done.counters, done.findings)
        for step, done in zip(checked.steps, checked.executions)
        if done.counters is not None
    )


def check_known(views: Sequence[View]) -> None:
    """MissingTool where the only one has what the machine does not know."""
    if len(views) == 1 and views[0].checked.unsupported:
        raise MissingTool(views[0].checked.outcome.error)


def costliest(launches: Sequence[Metrics]) -> Metrics:
    """The one that executes most."""
    return max(launches, key=lambda launch: launch.counters.thread_instructions)


def print_view(view: View, what: str | None) -> None:
    """All launches of one check. what: a view of `inspect` in place of the table."""
    print_line(heading(view))
    if view.launches:
        PRINTERS[what](view.named)
    for line in said(view):
        print_line(line)


def heading(view: View) -> str:
    arch = view.launches[0].binary.kernel.arch if view.launches else view.request.options.arch
    return f"{view.checked.label} of {view.file}, compiled for {arch}"


def said(view: View) -> Iterator[str]:
    """What else there is to say: what is wrong, and how it was judged."""
    outcome = view.checked.outcome
    if outcome.error:
        yield outcome.error
    elif not outcome.ok:
        yield f"{closing_words([outcome.word])} `tir-schedules check {view.file}` shows why"


def print_table_of(launches: Mapping[str, Metrics]) -> None:
    """A column for each launch."""
    first = next(iter(launches.values()))
    columns = ("", *launches)
    rows = [*rows_of([*launches.values()], first.binary.kernel.arch)]
    print_table(columns, rows, prose={"": 24, **dict.fromkeys(launches, 16)})
    print_line()
    print_line(COUNTED)
    print_line(IDEAL)


def print_several(views: Sequence[View]) -> None:
    """A row for each launch."""
    several = len({view.file for view in views}) > 1
    rows = [
        (f"{view.file}: {name}" if several else name, *short_cells(launch))
        for view in views
        for name, launch in view.named.items()
    ]
    if rows:
        print_table(("kernel", *SHORT_COLUMNS[1:-1]), rows, prose={"kernel": 16})
    for view in views:
        for line in said(view):
            print_line(f"{view.checked.label}: {line}")


PRINTERS = {
    None: print_table_of,
    "lines": print_lines_of,
    "conflicts": print_conflicts_of,
    "sass": partial(print_code_of, form="sass"),
    "ptx": partial(print_code_of, form="ptx"),
}
