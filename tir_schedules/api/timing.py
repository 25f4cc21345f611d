# pyright: strict
"""`time`: how long kernels take on a GPU, predicted without one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Mapping, Sequence

from tir_schedules.api.checking import requests_for
from tir_schedules.api.options import Asking, AskingAll, check_names
from tir_schedules.api.problems import Options, check_options, options_of, problem_of, rungs_of, taking
from tir_schedules.api.results import Result
from tir_schedules.api.subjects import CODE, OWN, RUNG, Subject, as_rung, kind_of
from tir_schedules.check.preparing import Request
from tir_schedules.compiler.toolchain import check_arch
from tir_schedules.errors import BadInput, CheckFailed
from tir_schedules.files import Json
from tir_schedules.insight.times.page import document
from tir_schedules.insight.times.timed import DEFAULT_GPU, Target, Timed, target_of, time_requests, time_rungs
from tir_schedules.insight.times.views import key_of, print_full, print_ladder
from tir_schedules.ladders.problems import TIME_SHAPES, Job, workload_of
from tir_schedules.model.rung import Rung
from tir_schedules.report.times import RecordedTime, recorded_times
from tir_schedules.subjects.compiling import settle_jobs

if TYPE_CHECKING:
    from typing_extensions import Unpack

ISSUES = 1 << 15
"""Instructions of a block that a page shows at most."""


@dataclass(frozen=True, repr=False)
class TimeReport(Result):
    """Predicted times.

    - rows: one for each kernel, with `microseconds`, `rate`, `prediction` (its launches), `clock`, `states`
      (cycles by warp state) and `lines` (the costliest first). If the model refuses a kernel, `prediction` is
      None and `reason` says why.
    - target: the GPU.
    - recorded: times of the same kernels in experiments/results, by name, form and shape.
    - ok: whether at least one kernel was predicted.
    """

    rows: tuple[Timed, ...]
    target: Target
    recorded: Mapping[tuple[str, str, str], RecordedTime] = field(default_factory=dict[Any, Any], repr=False)
    several: bool = False
    timeline: bool = False
    bounds: Mapping[str, float] = field(default_factory=dict[str, float], repr=False)

    @property
    def ok(self) -> bool:
        return any(row.prediction for row in self.rows)

    def __repr__(self) -> str:
        return f"TimeReport({', '.join(row.label for row in self.rows)})"

    def show(self) -> None:
        if self.several:
            print_ladder(self.rows, self.recorded, self.target, self.bounds)
        else:
            print_full(self.rows, self.recorded, self.target)

    def to_json(self) -> Json:
        return {
            "timed": False,
            "gpu": self.target.name,
            "device": self.target.table.device,
            "rows": [row.as_json() | self.record_of(row) for row in self.rows],
        }

    def page(self) -> str:
        """A self-contained HTML page: a timeline of a block's warps, and what each line waits for. BadInput
        where no timeline was asked for."""
        if not self.timeline:
            raise BadInput("a page has a timeline: say timeline=True")
        return document(self.rows, self.target, ISSUES)

    def record_of(self, row: Timed) -> Json:
        known = self.recorded.get(key_of(row))
        return {"recorded": vars(known)} if known else {}


def jobs_to_time(subjects: Sequence[str | Rung], options: Options) -> list[Job]:
    """What is timed. Raises BadInput before anything is compiled."""
    rungs = rungs_of(subjects)
    check_options(rungs, options)
    rungs = taking(rungs, [one for one in subjects if isinstance(one, str)], options)
    check_arch(options.arch)
    problems = [(rung, problem_of(rung.family, options)) for rung in rungs]
    return settle_jobs(
        [(rung, options.workload or workload_of(rung, problem, TIME_SHAPES)) for rung, problem in problems],
        options.arch,
    )


def times_of_rungs(
    subjects: Sequence[str | Rung], options: Options, target: Target, timeline: bool = False
) -> TimeReport:
    """Rungs with their twins, each on one workload."""
    return times_of_jobs(jobs_to_time(subjects, options), target, options.arch, timeline)


def times_of_jobs(jobs: Sequence[Job], target: Target, arch: str, timeline: bool = False) -> TimeReport:
    """Predicted times of rungs on workloads."""
    rows = tuple(time_rungs(jobs, target, arch, ISSUES * timeline))
    known = recorded_times(target.table.device)
    mine = {key_of(row): known[key_of(row)] for row in rows if key_of(row) in known}
    return finished(TimeReport(rows, target, mine, len(jobs) > 1, timeline))


def times_of_files(requests: Sequence[Request], target: Target, timeline: bool = False) -> TimeReport:
    """Kernels of files, a row for each check."""
    rows = tuple(time_requests(requests, target, ISSUES * timeline))
    return finished(TimeReport(rows, target, several=len(rows) > 1, timeline=timeline))


def finished(report: TimeReport) -> TimeReport:
    """The report; CheckFailed with the reason where its only kernel was refused."""
    if len(report.rows) == 1 and not report.ok:
        raise CheckFailed(report.rows[0].reason)
    return report


def time(
    *subjects: Subject,
    gpu: str = DEFAULT_GPU,
    clock: str | float | None = None,
    arch: str | None = None,
    timeline: bool = False,
    **asked: Unpack[AskingAll],
) -> TimeReport:
    """How long kernels take on a GPU, predicted without one: an SM is simulated with the SASS of ptxas.

    - subjects: rungs by name or as objects, each with its twin, compiled for the shape; or one path of CUDA
      or PTX, or one Schedule, PrimFunc or IRModule of TVM, with the options of `check`.
    - gpu: the GPU whose figures are taken, such as "h100".
    - clock: MHz; "maximum"; or None for the maximum, lowered as measured if tensor cores are busy.
    - arch: the architecture to compile for; by default with all instructions that the GPU has.
    - timeline: keep what the warps of a block issue, for `page()`.

    Raises BadInput if a name does not exist or an option is not possible. Raises CheckFailed if the only
    kernel does not compile or has instructions that the model does not know.
    """
    if not subjects:
        raise BadInput("time takes rungs, a file or a function, such as 'sgemm/naive'")
    kinds = [kind_of(one, "time", RUNG, OWN, CODE) for one in subjects]
    target = target_of(gpu, clock)
    arch = target.arch_for(arch)
    given: dict[str, Any] = dict(asked)
    if {*kinds} == {RUNG}:
        return times_of_rungs(
            [*map(as_rung, subjects)], options_of(given, "time", arch=arch), target, timeline
        )
    check_names(given, Asking, "time")
    if len(subjects) > 1:
        raise BadInput("time takes one file or function at a time, or rungs")
    return times_of_files(requests_for(next(iter(subjects)), arch, given, None), target, timeline)
