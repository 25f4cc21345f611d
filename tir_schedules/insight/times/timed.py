"""Kernels whose time is predicted: those of rungs, and those of a check."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil, prod
from typing import Iterator, Mapping, Sequence

import numpy as np

from tir_schedules.check.preparing import Prepared, Request
from tir_schedules.check.session import fresh, prepare_requests
from tir_schedules.compiler.source_text import SourceText, is_ptx
from tir_schedules.console import progress
from tir_schedules.errors import BadInput, CheckFailed, one_line
from tir_schedules.files import Json, to_json
from tir_schedules.insight.inspection.listing import home_of, line_name
from tir_schedules.insight.times.doubts import doubts_of
from tir_schedules.ladders.known import FAMILIES
from tir_schedules.ladders.problems import Job
from tir_schedules.machines.choice import choose
from tir_schedules.machines.execution import written
from tir_schedules.model.kernel import FIXED_TWIN, Binary, Kernel
from tir_schedules.model.rung import Unasked
from tir_schedules.model.workload import Arguments, Workload
from tir_schedules.subjects.compiling import compile_jobs
from tir_schedules.subjects.subject import Subject, rate_of
from tir_schedules.timing.clocks import Clock, asked_clock, clock_for
from tir_schedules.timing.gpus import GpuTable, find_table
from tir_schedules.timing.prediction import LaunchTime, Prediction, predict
from tir_schedules.timing.states import BEYOND, SELECTED, states_of
from tir_schedules.workloads.drawing import ZEROS

MOST_BYTES = 4 << 30
"""Most bytes of the arrays that a prediction may need on this computer."""

ARCHS = {"sm_90": "sm_90a"}
"""Architecture of a GPU -> what kernels are compiled for where all that it has is wanted."""

DRAM = BEYOND["dram"]

AskedClock = str | float | None
DEFAULT_GPU = "h100"


@dataclass(frozen=True)
class Target:
    """name: of the GPU, such as "h100". table: its figures. clock: what is asked for, see `asked_clock`."""

    name: str
    table: GpuTable
    clock: AskedClock = None

    @property
    def arch(self) -> str:
        """What kernels are compiled for."""
        return ARCHS.get(self.table.arch, self.table.arch)

    def arch_for(self, arch: str | None) -> str:
        """What to compile for: what is asked for, else what the GPU has. BadInput as `check_arch`."""
        if arch is None or isinstance(arch, Unasked):
            return self.arch
        self.check_arch(arch)
        return arch

    def check_arch(self, arch: str) -> None:
        """BadInput for code that the GPU does not execute."""
        if arch.rstrip("af") != self.table.arch:
            raise BadInput(
                f"the {self.name} executes code for {self.table.arch}, not for {arch}: leave --arch out, or"
                f" name {self.arch}"
            )

    def check_code(self, kernel: Kernel) -> None:
        """CheckFailed for a kernel that is compiled for another architecture."""
        try:
            self.check_arch(kernel.arch)
        except BadInput as error:
            of_ptx = (
                f"{kernel.label}: its PTX is for {kernel.arch}, and {self.table.arch} is predicted for the"
            )
            of_ptx += f" {self.name}: write `.target {self.arch}` in a copy of it"
            raise CheckFailed(of_ptx if is_ptx(kernel.source) else str(error)) from None


def target_of(gpu: str | None = None, clock: AskedClock = None) -> Target:
    """The GPU of a name, and the clock asked for. BadInput where the GPU has no figures, or the clock is
    wrong."""
    name = (gpu or DEFAULT_GPU).lower()
    return Target(name, find_table(name), asked_clock(clock))


@dataclass(frozen=True)
class CostlyLine:
    """A line of source. file, number: where a reader finds it; no file for that of the kernel itself. states:
    cycles of warps by state, of the blocks that were simulated."""

    file: str
    number: int
    text: str
    states: Mapping[str, int]

    @property
    def cycles(self) -> int:
        return sum(self.states.values())

    @property
    def place(self) -> str:
        return line_name(self.file, self.number)


@dataclass(frozen=True)
class Timed:
    """A kernel, or all launches of one subject, one after another.

    name: a rung's id or a kernel. form: "schedule", "twin, sizes fixed", "" of a file. family, workload: of a
    rung. prediction, clock: None where the model refuses it. reason: why it does. ideal: the prediction
    without bank conflicts, where it was asked for.
    """

    name: str
    form: str
    binaries: tuple[Binary, ...] = field(repr=False)
    prediction: Prediction | None = None
    clock: Clock | None = None
    reason: str = ""
    family: str = ""
    workload: Workload | None = None
    ideal: Prediction | None = field(default=None, repr=False)

    @property
    def label(self) -> str:
        return f"{self.name} ({self.form.partition(',')[0]})" if self.form else self.name

    @property
    def microseconds(self) -> float | None:
        return self.prediction.microseconds if self.prediction else None

    @property
    def rate(self) -> tuple[float, str] | None:
        """TFLOPS of GEMMs, GB/s of sums. None where the work of a kernel is not known."""
        if self.workload is None or not self.microseconds:
            return None
        return rate_of(self.family, self.workload, self.microseconds)

    @property
    def costliest(self) -> int:
        """Number of the launch that takes most cycles."""
        assert self.prediction is not None, "it was predicted"
        return int(np.argmax([one.cycles for one in self.prediction.launches]))

    @property
    def launch(self) -> LaunchTime:
        assert self.prediction is not None, "it was predicted"
        return self.prediction.launches[self.costliest]

    @property
    def states(self) -> dict[str, int]:
        """Cycles of the costliest launch's warps by state."""
        return states_of(self.launch.by_reason(), int(self.launch.issued.sum()))

    @cached_property
    def lines(self) -> list[CostlyLine]:
        """Lines of its source, the costliest first."""
        launch, kernel = self.launch, self.binaries[self.costliest].kernel
        text, home, issued = SourceText(kernel), home_of(kernel), Counter[tuple[str, int]]()
        for one, times in zip(launch.code, launch.issued.tolist()):
            issued[one.source] += times
        found = []
        for place, reasons in launch.by_line().items():
            file, number = text.place(*place)
            states = states_of(reasons, issued[place])
            if sum(states.values()):
                own = "" if file == home else file
                found.append(CostlyLine(own, number, text.line(file, number), states))
        return sorted(found, key=lambda line: -line.cycles)

    @property
    def balance(self) -> float:
        """The share of the SMs' turns that the blocks of the costliest launch fill, 0 to 1."""
        launch, kernel = self.launch, self.binaries[self.costliest].kernel
        busiest = ceil(round(launch.waves * launch.resident, 3))
        return prod(kernel.grid) / (busiest * self.multiprocessors)

    multiprocessors: int = 0

    def as_json(self) -> Json:
        found: Json = {"name": self.name, "form": self.form}
        if self.workload is not None:
            found |= {"shape": str(self.workload)}
        if self.prediction is None or self.clock is None:
            return found | {"refused": self.reason}
        rate = self.rate
        return to_json(
            found
            | {"predicted_us": self.microseconds, "cycles": self.prediction.cycles, "clock": vars(self.clock)}
            | ({"rate": rate[0], "unit": rate[1]} if rate else {})
            | {
                "limited_by": dict(zip(("unit", "share"), limit_of(self))),
                "waits_for": main_stall(self.states),
            }
            | {"turns_filled": self.balance, "doubts": [*doubts_of(self.prediction)]}
            | {"launches": [launch_json(one, self.clock.mhz) for one in self.prediction.launches]}
            | {"lines": [vars(line) for line in self.lines]}
            | ({"without_conflicts_us": self.ideal.microseconds} if self.ideal else {})
        )


def launch_json(launch: LaunchTime, mhz: float) -> Json:
    """A launch, without what belongs to each instruction."""
    names = ("label", "cycles", "waves", "resident", "overhead_us", "dram_us", "beyond", "whole")
    found = {name: getattr(launch, name) for name in (*names, "tensor_share", "agreement")}
    states = states_of(launch.by_reason(), int(launch.issued.sum()))
    blocks = [{"block": place, "instructions": work} for place, work in launch.works.items()]
    found |= {"simulated_block": launch.place, "blocks": blocks}
    return found | {"busy": busy_at(launch, mhz), "states": states}


def busy_at(launch: LaunchTime, mhz: float) -> dict[str, float]:
    """The share of cycles in which each unit is busy, the busiest first; DRAM for no less than all bytes of
    the arrays take."""
    shares = dict(launch.busy)
    least = min(1.0, launch.dram_us * mhz / max(launch.cycles, 1))
    if least > shares.get(DRAM, 0.0):
        shares[DRAM] = least
    return dict(sorted(shares.items(), key=lambda one: -one[1]))


def limit_of(timed: Timed) -> tuple[str, float]:
    """The unit that is busy in most cycles of the costliest launch, and their share."""
    assert timed.clock is not None, "it was predicted"
    return next(iter(busy_at(timed.launch, timed.clock.mhz).items()))


def main_stall(states: Mapping[str, int]) -> str:
    """What warps wait for most, besides each other's turn."""
    waits = {name: cycles for name, cycles in states.items() if name not in (SELECTED, "not selected")}
    return max(waits, key=lambda name: waits[name], default="")


def predicted(
    binaries: Sequence[Binary],
    arguments: Sequence[Arguments],
    outputs: Sequence[str],
    target: Target,
    issues: int,
) -> tuple[Prediction, Clock]:
    """The time of launches at the clock that is asked for. CheckFailed for what the model refuses."""
    for binary in binaries:
        target.check_code(binary.kernel)
    mhz = target.clock if isinstance(target.clock, float) else None
    found = predict(binaries, arguments, outputs, target.table, mhz, issues)
    busy = sum(one.tensor_share * one.cycles for one in found.launches)
    clock = clock_for(target.clock, target.table, busy / max(found.cycles, 1))
    return replace(found, mhz=clock.mhz), clock


def timed_or_refused(
    timed: Timed,
    target: Target,
    arguments: Sequence[Arguments],
    outputs: Sequence[str],
    issues: int = 0,
    what_if: bool = False,
) -> Timed:
    """A kernel with its prediction, or with the reason for none. arguments, outputs: see `predict`. what_if:
    whether the time without bank conflicts is predicted as well."""
    try:
        prediction, clock = predicted(timed.binaries, arguments, outputs, target, issues)
        if what_if:
            of_ideal = predict(timed.binaries, arguments, outputs, target.table, clock.mhz, conflicts=False)
            timed = replace(timed, ideal=of_ideal)
    except CheckFailed as error:
        return replace(timed, reason=one_line(error))
    return replace(timed, prediction=prediction, clock=clock, multiprocessors=target.table.multiprocessors)


def time_rungs(jobs: Sequence[Job], target: Target, arch: str, issues: int = 0) -> list[Timed]:
    """Schedules and twins of rungs, each on one workload. issues: see `predict`. BadInput for a workload
    whose arrays this computer should not make."""
    for _, workload in jobs:
        if workload.bytes > MOST_BYTES:
            raise BadInput(
                f"the arrays of {workload} take {workload.bytes >> 30} GiB here: name a smaller shape"
            )
    subjects, refused = compile_jobs(jobs, arch, FIXED_TWIN)
    subjects = [subject for subject in subjects if subject.form != "vendor"]
    reasons = {(row["name"], row["form"], row["shape"]): row["reason"] for row in refused}
    made: dict[Workload, Arguments] = {}
    found = []
    with progress(len(subjects), "predicting") as step:
        for subject in subjects:
            if subject.workload not in made:
                made = {subject.workload: inputs_of(subject)}
            found.append(time_subject(subject, made[subject.workload], target, issues))
            step(subject.label)
    found += [
        Timed(name, form, (), reason=reason, family=name.partition("/")[0])
        for (name, form, _), reason in reasons.items()
    ]
    return found


def inputs_of(subject: Subject) -> Arguments:
    """Arguments of the first launch: zeros of this package's ladders, whose kernels do the same whatever they
    are given."""
    own = subject.family in FAMILIES
    return subject.workload.arguments(kind=ZEROS) if own else subject.workload.arguments()


def time_subject(
    subject: Subject, given: Arguments, target: Target, issues: int = 0, what_if: bool = False
) -> Timed:
    """given: arguments of the first launch. What a launch writes is not there for the next: a launch sees its
    arrays as they are at the start."""
    arguments = []
    for binary in subject.binaries:
        given = binary.kernel.prepared(subject.workload, given)
        arguments.append(given)
    names = written(subject.workload, [binary.kernel for binary in subject.binaries])
    outputs = [*dict.fromkeys(name for of_launch in names for name in of_launch)]
    timed = Timed(
        subject.name, subject.form, subject.binaries, family=subject.family, workload=subject.workload
    )
    return timed_or_refused(timed, target, arguments, outputs, issues, what_if)


def time_requests(requests: Sequence[Request], target: Target, issues: int = 0) -> Iterator[Timed]:
    """Kernels of files, each check with its first inputs."""
    for request, ready in prepare_requests(requests, choose("cpu", 1)):
        if isinstance(ready, CheckFailed):
            label = request.launches[0].kernel or request.source.file
            yield Timed(label, "", (), reason=one_line(ready))
        else:
            yield time_prepared(ready, target, issues)


def time_prepared(ready: Prepared, target: Target, issues: int = 0, what_if: bool = False) -> Timed:
    trial = ready.trials.runs[0]
    arrays = fresh(trial)
    arguments: list[Arguments] = []
    for step in ready.steps:
        kernel = step.binary.kernel
        taken = (*kernel.params, *(one.of for one in kernel.maps))
        arguments.append({**step.values, **{name: arrays[name] for name in taken if name in arrays}})
    outputs = [*dict.fromkeys(name for step in ready.steps for name in step.outputs(trial))]
    timed = Timed(ready.label, "", tuple(step.binary for step in ready.steps))
    return timed_or_refused(timed, target, arguments, outputs, issues, what_if)
