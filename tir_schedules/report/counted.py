"""What the CPU machine counts of the rungs of a report: every schedule and twin, compiled and executed at a
small size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterable, Sequence

from tir_schedules.bench.views import Group
from tir_schedules.errors import BadInput
from tir_schedules.insight.metrics.counting import Metrics
from tir_schedules.insight.metrics.rungs import metrics_of_rungs
from tir_schedules.ladders.known import workload_class
from tir_schedules.ladders.problems import KINDS, Job, Problem, takes, workload_of
from tir_schedules.ladders.registry import find
from tir_schedules.model.counters import Access
from tir_schedules.model.rung import Rung
from tir_schedules.subjects.subject import Subject


@dataclass(frozen=True)
class Counted:
    """One kernel, schedule or twin, and the metrics of each launch its workload takes."""

    subject: Subject
    launches: tuple[Metrics, ...]

    @property
    def first(self) -> Metrics:
        """The launch that does nearly all of the work: registers, shared memory and occupancy are its."""
        return self.launches[0]

    def access(self, *classes: str) -> Access:
        """All accesses of some classes in all launches."""
        return sum((launch.access(*classes) for launch in self.launches), Access())


ByKernel = dict[tuple[str, str], Counted]
"""(rung id, "schedule" or "twin") -> what was counted of it."""


def jobs_of(group: Group, further: Iterable[str] = ()) -> list[Job]:
    """The rungs of a group, and further ones by name, with a small workload of the group's kind. Rungs that
    no longer exist are left out, and so are rungs that do not take the small workload, because they are for
    other shapes."""
    row = next(iter(group.cells.values()))
    workload = workload_class(row["family"])(**row["workload"])
    problem = Problem(row["family"], **{name: getattr(workload, name) for name in KINDS[row["family"]]})
    rungs = [rung for name in dict.fromkeys((*group.names, *further)) for rung in known(name)]
    return [job for rung in rungs if takes(*(job := (rung, workload_of(rung, problem))))]


def known(name: str) -> list[Rung]:
    """The rung of that name, or none: results may be older than the ladder."""
    try:
        return find(name)
    except BadInput:
        return []


def count(jobs: Sequence[Job], arch: str) -> tuple[list[Counted], list[dict[str, str]]]:
    """What was counted of schedules and twins, in the order of the jobs; and a refused row for each that
    could not be.

    jobs: rungs with their workloads. arch: "sm_90", to compile for.
    """
    found, refused = metrics_of_rungs(jobs, arch)
    return [Counted(subject, tuple(launches)) for subject, launches in found], refused


def index_by_kernel(kernels: Iterable[Counted], jobs: Sequence[Job]) -> ByKernel:
    """The kernels of some jobs."""
    wanted = {(rung.id, workload) for rung, workload in jobs}
    return {
        (c.subject.name, c.subject.form): c for c in kernels if (c.subject.name, c.subject.workload) in wanted
    }
