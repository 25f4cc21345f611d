# pyright: strict
"""What a verb will do, before it does any of it: `--dry-run` prints it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Sequence

from rich.markup import escape

from tir_schedules.api.results import Result
from tir_schedules.check.preparing import Request, check_plan
from tir_schedules.compiler.lower import declared_launch
from tir_schedules.console import print_line, print_table
from tir_schedules.files import Json
from tir_schedules.ladders.problems import Job
from tir_schedules.model.attributes import spelled

NOTHING = "nothing was run"


@dataclass(frozen=True, repr=False)
class Plan(Result):
    """columns, rows: what will be done, a row each. notes: where, and with what."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def show(self) -> None:
        """A table, and a line for each note."""
        print_table(self.columns, [tuple(map(escape, row)) for row in self.rows], keys=1)
        for note in (*self.notes, NOTHING):
            print_line(note)

    def to_json(self) -> Json:
        return {"steps": [dict(zip(self.columns, row)) for row in self.rows], "notes": [*self.notes]}


def plan_of_jobs(jobs: Sequence[Job], arch: str, *notes: str, twins: bool = True) -> Plan:
    """The plan for rungs on workloads, each in the configuration that it takes. twins: whether twins run,
    too."""
    rows: list[tuple[str, ...]] = []
    settled = (job for asked, workload in jobs for job in asked.all_settled(workload, arch))
    for rung, workload in settled:
        rung = rung.fitted(workload)
        launch = declared_launch(rung, workload)
        extents = (spelled(launch.grid), spelled(launch.block), str(launch.dynamic_shared)) if launch else ()
        kernels = "schedule, twin" if twins and rung.twinned else "schedule"
        cells = (rung.id, str(workload), kernels, *(extents or ("as scheduled", "as scheduled", "-")))
        rows.append((*cells, rung.arch_for(arch)))
    columns = ("rung", "shape", "kernels", "grid", "block", "dynamic shared bytes", "arch")
    return Plan(columns, tuple(rows), notes)


def plan_of_requests(requests: Sequence[Request], *notes: str) -> Plan:
    """The plan for kernels of files, a row for each launch. Raises BadInput or CheckFailed if one cannot be
    run."""
    rows: list[tuple[str, ...]] = []
    for request in requests:
        check_plan(request)
        given = [*(f"{one.name}={one.text}" if one.name else one.text for one in request.given)]
        given += [f"{name}={what(one.value)}" for name, one in request.arguments.items()]
        given += [f"{name}={value}" for name, value in request.sizes.items()]
        right = [f"{one.key.removesuffix('[]')}={what(one.value)}" for one in request.expect]
        right += [f"as {request.usual.ladder}"] if request.usual else []
        for launch in request.launches:
            extents = spelled(launch.grid), spelled(launch.block), str(launch.shared)
            kernel = launch.kernel or request.source.file
            rows.append(
                (kernel, *extents, " ".join(given) or "-", ", ".join(right) or "hazards only",
                 request.options.arch)
            )  # fmt: skip
    columns = ("kernel", "grid", "block", "dynamic shared bytes", "arguments", "right is", "arch")
    return Plan(columns, tuple(rows), notes)


def what(value: Any) -> str:
    """An argument or expected value in a few characters: arrays by format and shape."""
    shape: Any = getattr(value, "shape", None)
    return f"{value.dtype}[{','.join(map(str, shape))}]" if shape else str(value)
