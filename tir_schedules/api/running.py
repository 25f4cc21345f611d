# pyright: strict
"""Rungs and their twins verified: what `run` does with them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterator, Sequence

from tir_schedules.api.options import Shape
from tir_schedules.api.plans import Plan, plan_of_jobs
from tir_schedules.api.problems import (
    Options,
    check_options,
    kinds_of,
    options_of,
    problems_of,
    rungs_of,
    taking,
)
from tir_schedules.api.results import Result
from tir_schedules.api.subjects import is_text
from tir_schedules.api.wording import reworded_hints
from tir_schedules.console import (
    print_error,
    print_left_out,
    print_line,
    print_paragraph,
    print_table,
    print_whole,
    progress,
    terminal_width,
)
from tir_schedules.errors import BadInput
from tir_schedules.faults import WIDTH, closing, paragraphs
from tir_schedules.files import Json
from tir_schedules.insight.metrics.formats import plural
from tir_schedules.ladders.problems import RUN_SHAPES, Job, jobs_of, sample_kinds
from tir_schedules.machines.choice import arch_for, choose
from tir_schedules.model.machine import Machine
from tir_schedules.model.rung import Rung
from tir_schedules.run import run as run_jobs
from tir_schedules.source import Source, read_source
from tir_schedules.subjects.compiling import runnable
from tir_schedules.tuning.measure.lookup import tuned_jobs
from tir_schedules.verdicts import CELLS, ERROR, FAIL, Outcome, Verdict

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tir_schedules.insight.times.timed import Timed

ORDERS = 2
NEXT = (
    "next, try: `tir-schedules emit {0}` prints its CUDA; `tir-schedules layout {0} {1}` shows who accesses"
    " which bank; `tir-schedules time {0}` predicts how fast it is"
)
"""What to do when all is right. 0: a rung. 1: one of its arrays."""

COLUMNS = ("rung", "shape", "source", "twin", "twins agree", "seconds")


@dataclass(frozen=True, repr=False)
class Verdicts(Result):
    """The verdicts of rungs, one Verdict for each rung and shape.

    - ok: whether all are right.
    - faults: everything that is wrong, one text each.
    - form: what ran beside the twin, "schedule" or "source".
    """

    verdicts: tuple[Verdict, ...]
    arch: str
    machine: Machine = field(compare=False)
    form: str = "schedule"
    times: tuple[Timed, ...] = ()

    @property
    def ok(self) -> bool:
        return all(verdict.ok for verdict in self.verdicts)

    @property
    def faults(self) -> tuple[str, ...]:
        return tuple(reworded_hints(fault) for verdict in self.verdicts for fault in verdict.faults)

    def __getitem__(self, at: int) -> Verdict:
        return self.verdicts[at]

    def __iter__(self) -> Iterator[Verdict]:
        return iter(self.verdicts)

    def __len__(self) -> int:
        return len(self.verdicts)

    def __repr__(self) -> str:
        found = ", ".join(f"{v.rung.id} on {v.workload}: {v.word}" for v in self.verdicts[:3])
        return f"Verdicts({found}{', ...' if len(self) > 3 else ''})"

    def show(self) -> None:
        """A table of what ran, a paragraph for each kind of fault and place, and a closing line."""
        columns = (*COLUMNS[:2], self.form, *COLUMNS[3:])
        prose = {"shape": 12, "twins agree": 9}
        print_left_out(print_table(columns, [*map(row, self)], prose=prose, spare=("seconds",), keys=0))
        for outcome in (each for verdict in self for each in verdict.outcomes):
            if outcome.printed:
                print_line(f"{outcome.kernel} prints:")
                print_whole(outcome.printed.removesuffix("\n"))
        for paragraph in paragraphs(self.verdicts, min(WIDTH, terminal_width() or WIDTH)):
            print_paragraph(paragraph)
        for rung in dict.fromkeys(v.rung.id for v in self if any(map(waits_in_ring, v.outcomes))):
            print_line(f"who waits for whom as {rung} is: tir-schedules layout {rung} --ring")
        where = self.machine.device_name
        if self.machine.name == "gpu":
            where += "; races and bounds are checked by --machine cpu"
        print_line(f"{closing(self.verdicts)} on {where}")
        if self.times:
            from tir_schedules.insight.times.timed import target_of
            from tir_schedules.insight.times.views import print_ladder

            print_line()
            print_ladder(self.times, {}, target_of())

    def to_json(self) -> list[Json]:
        where = {"machine": self.machine.name, "arch": self.arch}
        told = [verdict.as_json() | where for verdict in self.verdicts]
        if self.times:
            for verdict, one in zip(self.verdicts, told):
                mine = verdict.rung.id, verdict.workload
                one["times"] = [each.as_json() for each in self.times if (each.name, each.workload) == mine]
        return told


def next_step(verdicts: Verdicts) -> str:
    """What a newcomer may do next, of the last rung; nothing while something is wrong."""
    if not verdicts.ok or not verdicts.verdicts or verdicts.form != "schedule" or verdicts[-1].rung.file:
        return ""
    name = next((one.rung.id for one in verdicts if "shared" in one.rung.id), verdicts[-1].rung.id)
    return NEXT.format(name, "X" if name.startswith("reduce/") else "A")


def waits_in_ring(outcome: Outcome) -> bool:
    """Whether threads wait in vain for mbarriers."""
    return any(one.kind == "deadlock" and "the mbarrier " in one.message for one in outcome.findings)


def row(verdict: Verdict) -> tuple[str, ...]:
    """A verdict as the cells of a table."""
    kernels = (CELLS[outcome.word] if outcome else "-" for outcome in (verdict.schedule, verdict.twin))
    agree = {None: "-", True: "bit for bit", False: "within tolerance"}[verdict.identical]
    agree = "-" if verdict.word in (FAIL, ERROR) else "NO" if verdict.disagreement else agree
    return (verdict.rung.id, str(verdict.workload), *kernels, agree, f"{verdict.seconds:.2f}")


@dataclass(frozen=True)
class Running:
    """What `run` will do: jobs, in order, each compiled for an architecture and run on a machine. source: in
    place of what the schedule emits."""

    jobs: tuple[Job, ...]
    arch: str
    machine: Machine
    source: Source | None = None
    time: bool = False

    def plan(self) -> Plan:
        what = f", with {self.source.file} as the kernel" if self.source else ""
        title = f"{len(self.jobs)} to verify on {self.machine.device_name}{what}"
        return plan_of_jobs(self.jobs, self.arch, title, twins=not self.source)

    def opening(self) -> str:
        """What it will do, in words."""
        rungs, shapes = ({str(job[at]) if at else job[0].id for job in self.jobs} for at in (0, 1))
        kernels = (
            "each schedule and its twin by hand" if not self.source else f"the kernel in {self.source.file}"
        )
        subject = next(iter(rungs)) if len(rungs) == 1 else f"{len(rungs)} rungs"
        return (
            f"{subject} on {plural(len(shapes), 'shape')}: {kernels} will be compiled, executed on"
            f" {self.machine.device_name}, and compared with the exact result"
        )

    def run(self) -> Verdicts:
        seen: list[Verdict] = []
        with progress(len(self.jobs), "verifying") as step:
            for verdict in run_jobs(self.jobs, self.arch, self.machine, self.source):
                seen.append(verdict)
                step(verdict.rung.id)
        form = "source" if self.source else "schedule"
        found = Verdicts(tuple(seen), self.arch, self.machine, form)
        return replace(found, times=tuple(self.predicted())) if self.time else found

    def predicted(self) -> list[Timed]:
        """How long they take. Imported where it is asked for: it takes a third of a second."""
        from tir_schedules.insight.times.timed import target_of, time_rungs

        return time_rungs(self.jobs, target_of(), self.arch)


def run_rungs(*subjects: str | Rung, **options: Any) -> Verdicts:
    """Emit, compile, execute and verify rungs and their twins; see `run`."""
    return running_of(*subjects, **options).run()


def running_of(
    *subjects: str | Rung,
    arch: str | None = None,
    machine: str = "auto",
    orders: int = ORDERS,
    configs: bool = False,
    tuned: str | None = None,
    source: str | Path | None = None,
    time: bool = False,
    **shape: Unpack[Shape],
) -> Running:
    """What `run` will do. Raises BadInput if something named does not exist or cannot be."""
    if time and source is not None:
        raise BadInput(
            "--time is of what schedules and twins become: leave out --source; `time` takes a file"
        )
    if time:
        from tir_schedules.insight.times.timed import target_of

        arch = target_of().arch_for(arch)
    options = options_of(shape, "run", several=True, arch=arch, configs=configs)
    rungs, names = rungs_of(subjects, configs), [one for one in subjects if isinstance(one, str)]
    if source is not None and len(rungs) != 1:
        raise BadInput(f"--source runs one file as one rung, but {len(rungs)} rungs are named")
    text = None if source is None else source_of(source)
    check_options(rungs, options)
    rungs = taking(rungs, names, options)
    if tuned is not None and (text or configs):
        raise BadInput(f"--tuned chooses the configuration: leave out --{'source' if text else 'configs'}")
    there = choose(machine, orders)
    arch = arch_for(there, arch)
    if tuned is not None:
        jobs = tuned_jobs(rungs, problems_of(rungs, options), tuned, there, arch, whole=there.name == "gpu")
    elif options.workload is not None:
        jobs = runnable([(rung, options.workload) for rung in rungs], arch)
    else:
        jobs = jobs_of(rungs, problems_of(rungs, options), RUN_SHAPES)
        jobs = runnable(chosen(jobs, names, options), arch)
    return Running(tuple(jobs), arch, there, text, time)


def source_of(source: str | Path) -> Source:
    """A file's text, or the text itself."""
    if is_text(source):
        return Source(str(source), "kernel.cu", "")
    return read_source(Path(source))


def chosen(jobs: Sequence[Job], names: Sequence[str], options: Options) -> list[Job]:
    """The jobs without kinds of rungs of a ladder named as a whole, where neither all configurations nor
    kinds are asked for; a line says which ladder has more."""
    found: list[Job] = []
    for family in dict.fromkeys(rung.family for rung, _ in jobs):
        own = [job for job in jobs if job[0].family == family]
        whole = family in names and not options.configs and not any(kinds_of(family, options).values())
        some = sample_kinds(own) if whole else own
        if len(some) < len(own):
            rung = own[0][0]
            print_error(
                f"{len(some)} of {len(own)} cases of {family} ran, because most of its rungs ran in some of"
                f" their kinds; name a rung, for example {rung.id}, to run all of its kinds"
            )
        found += some
    return found
