# pyright: strict
"""`inspect`: what kernels cost, counted without a GPU."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping, Sequence

from tir_schedules.api.checking import advice_json, requests_for
from tir_schedules.api.options import Asking, AskingAll, check_names
from tir_schedules.api.problems import Options, check_options, options_of, problem_of, rungs_of, taking
from tir_schedules.api.results import Result
from tir_schedules.api.subjects import CODE, OWN, RUNG, Subject, as_rung, kind_of
from tir_schedules.check.preparing import Request
from tir_schedules.compiler.toolchain import check_arch
from tir_schedules.console import print_line
from tir_schedules.errors import BadInput, CheckFailed
from tir_schedules.files import Json
from tir_schedules.insight.advice.advising import advice_on_rung, print_advice_on_checks, print_advice_on_rung
from tir_schedules.insight.files.beside import Difference, differences, print_differences
from tir_schedules.insight.files.views import (
    PRINTERS,
    View,
    check_known,
    costliest,
    print_several,
    print_view,
    remarks,
    view_all,
)
from tir_schedules.insight.inspection import views as inspections
from tir_schedules.insight.inspection.listing import listing, opcodes
from tir_schedules.insight.inspection.twins import Inspection
from tir_schedules.insight.inspection.twins import inspect as inspect_jobs
from tir_schedules.insight.metrics.counting import Metrics
from tir_schedules.insight.metrics.roofline import gpu_for
from tir_schedules.insight.metrics.rungs import FORMS
from tir_schedules.insight.times.timed import Target, Timed, inputs_of, target_of, time_prepared, time_subject
from tir_schedules.insight.times.views import line_of, micros, rows_beside
from tir_schedules.ladders import fastest
from tir_schedules.ladders.problems import Job, workload_of
from tir_schedules.machines.choice import CPU_ARCH
from tir_schedules.model.rung import Rung, StandIn
from tir_schedules.subjects.compiling import settle_jobs
from tir_schedules.subjects.subject import Subject as Timeable

if TYPE_CHECKING:
    from typing_extensions import Unpack

CODES = ("sass", "ptx")
VIEWS = ("lines", "conflicts", "advice", *CODES)
BESIDE_TIME = "--time is of one kernel: leave out --beside, or time each"


@dataclass(frozen=True, repr=False)
class Costs(Result):
    """What kernels cost.

    - launches: counters, registers and occupancy of each launch, by the name of its kernel; for a rung,
      "schedule" and "twin".
    - ok: whether all kernels compiled, those that were judged are right, and the CPU machine found no fault.
      The fault that a configuration exists to show counts as well, as in `run`.
    - faults: why ok is false.
    - view: None for the table, or "lines", "conflicts", "advice", "sass" or "ptx", which `show` prints and
      `to_json` has.
    """

    launches: Mapping[str, Metrics]
    view: str | None = None
    target: Target | None = None

    @property
    def ok(self) -> bool:
        return not self.faults

    @property
    def faults(self) -> tuple[str, ...]:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self.launches)})"


@dataclass(frozen=True, repr=False)
class RungCosts(Costs):
    """Costs of rungs, each with its twin."""

    inspections: tuple[Inspection, ...] = ()
    reasons: tuple[str, ...] = ()
    default_size: bool = False
    stands_in: bool = False
    times: Mapping[tuple[str, str], Timed] = field(default_factory=dict[tuple[str, str], Timed])

    @property
    def refusals(self) -> tuple[str, ...]:
        """Why kernels did not compile."""
        return tuple(
            f"{one.rung.id} ({form}): {reason}"
            for one in self.inspections
            for form, reason in one.refused.items()
        )

    @property
    def found(self) -> tuple[str, ...]:
        """What the CPU machine found in launches, a line for each."""
        return tuple(line for one in self.inspections for line in inspections.findings_of(one))

    @property
    def faults(self) -> tuple[str, ...]:
        return (*self.refusals, *self.found)

    def show(self) -> None:
        first = self.inspections[0]
        if len(self.inspections) > 1:
            cells = {key: micros(one.microseconds or 0) for key, one in self.times.items() if one.prediction}
            inspections.print_several(self.inspections, "predicted us" if self.times else "", cells)
        elif self.view == "advice":
            print_advice_on_rung(first)
            for one in self.times.values():
                if self.target:
                    print_line(line_of(one, self.target))
        else:
            inspections.print_one(first, self.view, self.default_size, self.time_rows)
            if self.reasons[0] and not self.stands_in:
                print_line(self.reasons[0])
        for line in self.found:
            print_line(line)

    @property
    def time_rows(self) -> list[tuple[str, ...]]:
        """Predicted times of the first rung, if they were asked for."""
        if not self.times or not self.target:
            return []
        return rows_beside(
            [self.times.get((self.inspections[0].rung.id, form)) for form in FORMS], self.target
        )

    def to_json(self) -> Json | list[Json]:
        found = [
            json_of_rung(one, self.view, self.times) | ({"why": reason} if reason else {})
            for one, reason in zip(self.inspections, self.reasons)
        ]
        return found[0] if len(found) == 1 else found


def json_of_rung(inspection: Inspection, view: str | None, times: Mapping[tuple[str, str], Timed]) -> Json:
    """An inspection, with the code and times where they are asked for."""
    found = inspection.as_json()
    kernels: Any = found["kernels"]
    for form in inspection.kernels:
        if (inspection.rung.id, form) in times:
            kernels[form]["time"] = times[inspection.rung.id, form].as_json()
    if view in CODES:
        for form in inspection.kernels:
            code = listing(inspection.own(form).binary, view)
            kernels[form][view] = {"opcodes": opcodes(code), "lines": code}
    if view == "advice":
        for form, advice in advice_on_rung(inspection).items():
            kernels[form]["advice"] = [one.as_json() for one in advice]
    return found


@dataclass(frozen=True, repr=False)
class FileCosts(Costs):
    """Costs of kernels of files, and of functions of TVM."""

    views: tuple[View, ...] = ()
    timed: tuple[Timed, ...] = ()

    @property
    def faults(self) -> tuple[str, ...]:
        return tuple(fault for view in self.views for fault in view.checked.outcome.faults)

    def show(self) -> None:
        if self.view == "advice":
            print_advice_on_checks([view.checked for view in self.views])
        elif len(self.views) == 1:
            print_view(self.views[0], self.view)
        else:
            print_several(self.views)
        for one in self.timed:
            if self.target:
                print_line(line_of(one, self.target))

    def to_json(self) -> Json | list[Json]:
        advice = self.view == "advice"
        found = [view.as_json(self.view) | advice_json(view.checked, advice) for view in self.views]
        times = [{"time": one.as_json()} for one in self.timed] or [{}] * len(found)
        return [one | time for one, time in zip(found, times)]


@dataclass(frozen=True, repr=False)
class CostsBeside(FileCosts):
    """Costs of two kernels beside each other. differing: the counters that differ most, and the lines that
    cause it."""

    differing: tuple[Difference, ...] = field(default=())

    def show(self) -> None:
        PRINTERS[self.view](self.launches)
        if not self.view:
            print_line()
            print_differences(self.places, self.differing)
        for view in self.views:
            for line in remarks(view):
                print_line(f"{view.checked.label}: {line}")

    @property
    def places(self) -> list[str]:
        """What the kernels' lines are called: by their files, where these differ."""
        found = [
            PurePath(one.binary.kernel.file).name or one.binary.kernel.label for one in self.launches.values()
        ]
        return [*self.launches] if found[0] == found[1] else found

    def to_json(self) -> Json | list[Json]:
        told = [{"name": name, **one.as_json()} for name, one in self.launches.items()]
        return {"launches": told, "differences": [one.as_json() for one in self.differing]}


def costs_of_files(
    requests: Sequence[Request], view: str | None = None, target: Target | None = None
) -> FileCosts:
    """Each request run and counted. target: whose time is predicted. Raises MissingTool if there is only one
    and the machine does not know its instructions."""
    found = tuple(view_all(requests))
    check_known(found)
    what_if = view == "advice"
    timed = tuple(time_prepared(one.ready, target, what_if=what_if) for one in found if target and one.ready)
    return FileCosts(dict(named(found)), view, target, found, timed)


def named(views: Sequence[View]) -> Iterator[tuple[str, Metrics]]:
    """Launches by their names, which have the file before them where there are several."""
    several = len({view.file for view in views}) > 1
    for view in views:
        for name, launch in view.named.items():
            yield (f"{view.file}: {name}" if several else name), launch


def costs_beside(
    requests: Sequence[Request],
    other: Callable[[], Sequence[Metrics]] | None = None,
    view: str | None = None,
) -> CostsBeside:
    """Two requests, or one and what counts another kernel, beside each other: of each the launch that
    executes most.

    Raises CheckFailed if a kernel did not run, and BadInput if one would stand beside itself.
    """
    if view == "advice":
        raise BadInput("--advice is on one kernel: leave out --beside")
    views = tuple(view_all(requests))
    for one in views:
        if not one.launches:
            raise CheckFailed("; ".join(one.checked.outcome.faults))
    found = [costliest(one.launches) for one in views] + ([costliest(other())] if other else [])
    names = [one.binary.kernel.label for one in found]
    if names[0] == names[1]:
        names = [f"{one.binary.kernel.file}: {name}" for one, name in zip(found, names)]
    if names[0] == names[1]:
        raise BadInput(
            f"{names[0]} would be compared with itself: name another kernel, FILE:KERNEL, or a rung"
        )
    return CostsBeside(dict(zip(names, found)), view, None, views, (), tuple(differences(*found)))


def costs_of_rungs(
    subjects: Sequence[str | Rung],
    options: Options,
    gpu: str | None = None,
    view: str | None = None,
    target: Target | None = None,
) -> RungCosts:
    """Rungs with their twins, each on one workload. target: whose time is predicted."""
    gpu = gpu or (target.name if target else None)
    jobs = jobs_to_inspect(subjects, options, gpu, view)
    found = tuple(inspect_jobs(jobs, options.arch, gpu))
    reasons = tuple(fastest.reason_for(rung, workload) for rung, workload in jobs)
    launches = {
        form if len(found) == 1 else f"{one.rung.id} ({form})": one.own(form)
        for one in found
        for form in one.kernels
    }
    default = not (options.mnk or options.n or options.workload)
    stands_in = isinstance(rungs_of(subjects)[0], StandIn)
    times = times_of(found, target, view == "advice") if target else {}
    return RungCosts(launches, view, target, found, reasons, default, stands_in, times)


def times_of(
    inspections: Sequence[Inspection], target: Target, what_if: bool
) -> dict[tuple[str, str], Timed]:
    """Predicted times of the kernels that were counted, by rung and form. what_if: see `timed_or_refused`."""
    found: dict[tuple[str, str], Timed] = {}
    for one in inspections:
        for form, launches in one.kernels.items():
            binaries = tuple(launch.binary for launch in launches)
            subject = Timeable(one.rung.family, one.rung.id, form, one.workload, binaries)
            found[one.rung.id, form] = time_subject(subject, inputs_of(subject), target, what_if=what_if)
    return found


def jobs_to_inspect(
    subjects: Sequence[str | Rung], options: Options, gpu: str | None, view: str | None
) -> Sequence[Job]:
    """What is inspected. Raises BadInput before anything is compiled."""
    rungs = rungs_of(subjects)
    if view and len(rungs) > 1:
        raise BadInput(f"--{view} shows one rung, but {len(rungs)} are named")
    check_options(rungs, options)
    rungs = taking(rungs, [one for one in subjects if isinstance(one, str)], options)
    check_arch(options.arch)
    gpu_for(options.arch, gpu)
    return settle_jobs(
        [(rung, options.workload or workload_of(rung, problem_of(rung.family, options))) for rung in rungs],
        options.arch,
    )


def inspect(
    *subjects: Subject,
    arch: str = CPU_ARCH,
    gpu: str | None = None,
    beside: str | Path | None = None,
    beside_kernel: str = "",
    view: str | None = None,
    time: bool = False,
    **asked: Unpack[AskingAll],
) -> Costs:
    """Registers, occupancy, bank conflicts, sectors and instructions of kernels, with no GPU.

    - subjects: rungs by name or as objects, each counted with its twin; or one path of CUDA or PTX, or one
      Schedule, PrimFunc or IRModule of TVM, with the options of `check`.
    - gpu: the GPU whose datasheet gives the roofline of a rung.
    - beside: for a file or function, a second kernel, "mine.cu" or "mine.cu:kernel"; the result also has the
      lines that make the difference.
    - beside_kernel: the name of the second kernel, if its file or text has several.
    - view: in place of the table, "lines", "conflicts", "sass", "ptx", or "advice" for a rung.
    - time: also predict times, as `time` does; for a rung on gpu.

    Raises BadInput if a name does not exist or an option is not possible, and CheckFailed if a kernel does
    not compile.
    """
    if view not in (None, *VIEWS):
        raise BadInput(f"view is {view!r}; it can be {', '.join(VIEWS)}")
    if not subjects:
        raise BadInput("inspect takes rungs, a file or a function, such as 'sgemm/naive'")
    kinds = [kind_of(one, "inspect", RUNG, OWN, CODE) for one in subjects]
    target = target_of(gpu) if time else None
    arch = target.arch_for(arch) if target else arch
    given: dict[str, Any] = dict(asked)
    if {*kinds} == {RUNG}:
        options = options_of(given, "inspect", arch=arch)
        if beside is not None:
            raise BadInput(f"--beside is for files; name both rungs instead: {subjects[0]} {beside}")
        return costs_of_rungs([*map(as_rung, subjects)], options, gpu, view, target)
    check_names(given, Asking, "inspect")
    if len(subjects) > 1:
        raise BadInput("inspect takes one file or function at a time, or rungs")
    if gpu:
        raise BadInput("--gpu is for rungs, whose roofline is known")
    requests = requests_for(next(iter(subjects)), arch, given, beside, beside_kernel)
    if beside is None:
        return costs_of_files(requests, view, target)
    if time:
        raise BadInput(BESIDE_TIME)
    return costs_beside(requests, view=view)
