"""The points of a sweep compiled, and what they do counted on the CPU machine. Needs TVM
and nvcc, no GPU."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from os import cpu_count
from typing import Any, Sequence

from sweep_points import FORMS, Point, Series, Sweep
from sweep_waves import block_sectors

from tir_schedules.console import progress
from tir_schedules.errors import CheckFailed
from tir_schedules.insight.metrics.counting import (
    COPIES,
    GLOBAL_LOADS,
    LOADS,
    STORES,
    metrics_of,
)
from tir_schedules.model.counters import Access
from tir_schedules.model.gpus import WARP, occupancy
from tir_schedules.subjects.compiling import compile_jobs
from tir_schedules.subjects.subject import VENDORS, Subject


@dataclass(frozen=True)
class Part:
    """A point of a series as schedule or as twin."""

    series: Series
    point: Point
    form: str

    def subject(self, workload: Any) -> Subject:
        """What it is on a workload, not yet compiled."""
        return Subject(self.point.rung.family, self.point.rung.id, self.form, workload)

    @property
    def shown(self) -> Subject:
        """The one whose resources are shown."""
        return self.subject(self.series.timed[0])


@dataclass(frozen=True)
class Prepared:
    """points: a row for each part, with what is known of it or why it cannot be. subjects: to be timed.
    refused: rows of what failed."""

    points: list[dict[str, Any]]
    subjects: list[Subject]
    refused: list[dict[str, str]]


def prepared(sweeps: Sequence[Sweep], arch: str, timed: bool) -> Prepared:
    """Compile and count every part that can be. timed: compile for all workloads that a GPU times it on, not
    only for the first.

    A part that does not compile, or that the CPU machine objects to, is refused as a whole, so that no GPU
    runs it.
    """
    parts = [
        Part(series, point, form)
        for sweep in sweeps
        for series in sweep.series
        for point in series.points()
        for form in FORMS
    ]
    points = {part: impossible(part, arch) for part in parts}
    possible = {part: part.series.workloads(timed) for part in parts if not points[part]}
    jobs = {
        (part.point.rung.id, workload): part.point.rung
        for part, workloads in possible.items()
        for workload in workloads
    }
    subjects, failed = (
        compile_jobs([(rung, workload) for (_, workload), rung in jobs.items()], arch) if jobs else ([], [])
    )
    found = {identity(subject): subject for subject in subjects}
    reasons = {(row["name"], row["form"], row["shape"]): row["reason"] for row in failed}
    refused, kept = [], set()
    with progress(len(possible), "counting") as step, ThreadPoolExecutor(cpu_count()) as pool:
        for part, future in {
            part: pool.submit(known, part, timed, found, reasons) for part in possible
        }.items():
            try:
                points[part] = future.result()
            except CheckFailed as error:
                refused.append(part.shown.refused(str(error)))
            else:
                kept |= {identity(part.subject(workload)) for workload in part.series.timed}
            step(part.shown.label)
    workloads = {workload for part in possible for workload in part.series.timed}
    to_time = [
        one
        for one in subjects
        if identity(one) in kept or (one.name == VENDORS[one.family] and one.workload in workloads)
    ]
    return Prepared([row for row in points.values() if row], to_time if timed else [], refused)


def identity(subject: Subject) -> tuple[str, str, str]:
    """Name, form and shape."""
    return subject.name, subject.form, str(subject.workload)


def impossible(part: Part, arch: str) -> dict[str, Any]:
    """The row of a part that cannot be; empty for one that can."""
    reason = part.series.cannot(part.point, part.form, arch)
    return {**part.shown.identity(), "cannot": reason} if reason else {}


def known(part: Part, timed: bool, found: dict[tuple, Subject], reasons: dict[tuple, str]) -> dict[str, Any]:
    """The row of a part: resources and occupancy of its first launch, and what is counted of all, where it
    is. CheckFailed where it is not among the compiled ones or the CPU machine finds a fault."""
    keys = [identity(part.subject(workload)) for workload in part.series.workloads(timed)]
    for key in keys:
        if key not in found:
            raise CheckFailed(reasons[key])
    binary = found[identity(part.shown)].binaries[0]
    registers, shared = binary.resources.registers, binary.shared_bytes
    held = occupancy(binary.kernel.arch, binary.kernel.block, registers, shared)
    facts = {
        "registers": registers,
        "spill_bytes": binary.resources.spill_stores,
        "shared_bytes": shared,
        "occupancy": held.as_json(),
    }
    counted = part.series.counted
    if counted:
        facts |= {"counted": str(counted), **counts(found[keys[0]], counted)}
        if part.series.field in ("ts", "bm"):
            facts["block_sectors"] = block_sectors(part.point.rung, counted)
    return {**part.shown.identity(), **facts}


def counts(subject: Subject, workload: Any) -> dict[str, Any]:
    """Of all launches: reads and writes of shared memory, in warp-level requests and wavefronts; reads of
    global memory, in requests and sectors; instructions of warps, and how many of them are barriers, of the
    block or of the warp. CheckFailed with the first finding."""
    launches = metrics_of(subject.binaries, workload)
    for metrics in launches:
        if metrics.findings:
            raise CheckFailed(str(metrics.findings[0]))

    def accesses(*classes: str) -> dict[str, int]:
        return asdict(sum((metrics.access(*classes) for metrics in launches), Access()))

    counters = [metrics.counters for metrics in launches]
    return {
        "reads": accesses(*LOADS),
        "writes": accesses(*STORES, *COPIES),
        "global_reads": accesses(*GLOBAL_LOADS),
        "warp_instructions": sum(one.warp_instructions for one in counters),
        "barriers": sum(one.mix.get("barrier", 0) // WARP for one in counters),
    }
