# pyright: strict
"""`bench`: rungs, their twins and the vendor's libraries timed on a GPU, or predicted without one."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Sequence

from tir_schedules.api.options import Shape
from tir_schedules.api.problems import (
    Options,
    check_drawing,
    check_options,
    options_of,
    problems_of,
    rungs_of,
    taking,
)
from tir_schedules.api.results import Result
from tir_schedules.api.subjects import RUNG, kind_of
from tir_schedules.api.timing import TimeReport, times_of_jobs
from tir_schedules.bench import session, tables
from tir_schedules.console import print_line
from tir_schedules.errors import BadInput
from tir_schedules.files import Json
from tir_schedules.insight.metrics.predict import largest_of, predictions, print_predictions
from tir_schedules.insight.metrics.roofline import find_gpu
from tir_schedules.insight.times.timed import target_of
from tir_schedules.ladders.drawn_shapes import note_on
from tir_schedules.ladders.fastest import MOST_CANDIDATES, fastest, reason_for
from tir_schedules.ladders.problems import BENCH_SHAPES, Job
from tir_schedules.ladders.problems import jobs_of as jobs_on
from tir_schedules.machines.choice import CPU_ARCH, arch_for, choose
from tir_schedules.model.kernel import FIXED_TWIN
from tir_schedules.model.machine import Machine
from tir_schedules.model.rung import Rung, StandIn
from tir_schedules.subjects.compiling import settle_jobs
from tir_schedules.subjects.results import load_results, save_results
from tir_schedules.tuning.measure.lookup import tuned_jobs

if TYPE_CHECKING:
    from typing_extensions import Unpack


MORE = "estimates are off by some percent: with --candidates 8 the next kernels are timed, too"
"""The note where a name, for example "hgemm/fastest", stands for one kernel."""


@dataclass(frozen=True, repr=False)
class Times(Result):
    """What was timed, or predicted.

    - rows: a dictionary for each rung, form and shape, with every sample in microseconds.
    - refused: kernels that could not be timed, with the reason.
    - results: all of it, with the GPU, clocks and versions.
    """

    results: Json = field(hash=False)

    @property
    def timed(self) -> bool:
        """Whether a GPU ran them."""
        return bool(self.results.get("timed", True))

    @property
    def rows(self) -> list[Json]:
        return self.results["rows" if self.timed else "kernels"]

    @property
    def refused(self) -> list[Json]:
        return self.results["refused"]

    @property
    def ok(self) -> bool:
        return not self.refused

    def __repr__(self) -> str:
        return f"Times({len(self.rows)} {'rows' if self.timed else 'kernels, nothing timed'})"

    def show(self) -> None:
        (tables.print_results if self.timed else print_predictions)(self.results)

    def to_json(self) -> Json:
        return self.results

    def save(self, path: str | Path) -> None:
        """Write a results file, which `recorded=` reads and the command's `--compare` compares with."""
        if not self.timed:
            raise BadInput("what is predicted is not a results file: nothing was timed")
        save_results(self.results, Path(path))


@dataclass(frozen=True, repr=False)
class PredictedTimes(Times):
    """Counters and bounds, and predicted times beside these."""

    report: TimeReport

    def show(self) -> None:
        super().show()
        print_line()
        self.report.show()


def bench(
    *subjects: str | Rung,
    arch: str | None = None,
    configs: bool = False,
    tuned: str | None = None,
    run_time_sizes: bool = False,
    no_twins: bool = False,
    candidates: int | None = None,
    sustained: bool = False,
    cold: bool = False,
    predict: str | None = None,
    recorded: str | Path | None = None,
    sizes: Sequence[int] | None = None,
    time: bool = False,
    random: int | None = None,
    seed: int | None = None,
    **shape: Unpack[Shape],
) -> Times:
    """Time rungs and their twins beside cuBLAS or CUB on this computer's GPU.

    - subjects: rungs and ladders, by name or as objects.
    - arch: the GPU architecture to compile for; by default that of the GPU.
    - configs: time every configuration.
    - tuned: a file of records of `tune`, whose best configurations are taken; "" for your own file.
    - run_time_sizes: compile twins that take sizes as arguments.
    - no_twins: time only the schedules.
    - candidates: how many kernels to time for a name such as "hgemm/fastest", those with the shortest
      estimates.
    - sustained: leave out the pauses between samples.
    - cold: time single launches as well.
    - predict: time nothing, and show counters and the bounds of a GPU's datasheet, such as "h200".
    - recorded: results of an earlier run, in place of subjects.
    - sizes: a list of M = N = K, or of N.
    - time: with predict, also show times as `time` predicts them.
    - random, seed: draw this number of GEMM shapes by the seed.

    Raises BadInput if a name does not exist or an option is not possible. Raises MissingTool if there is no
    GPU, which predict and recorded do not need.
    """
    if recorded is not None:
        if subjects:
            raise BadInput(f"recorded= shows a whole file: leave out {', '.join(map(str, subjects))}")
        return Times(load_results(Path(recorded)))
    if not subjects:
        raise BadInput("bench takes rungs or ladders, such as 'sgemm'")
    for one in subjects:
        kind_of(one, "bench", RUNG)
    if time and predict is None:
        raise BadInput("time= goes with predict=: `ts.time` predicts times without the counters")
    options = options_of(shape, "bench", True, arch=arch, configs=configs, tuned=tuned, no_twins=no_twins,
                         candidates=candidates, sizes=sizes, time=time, random=random, seed=seed)  # fmt: skip
    if predict is not None:
        return predicted(subjects, options, predict)
    policy = session.Policy(sustained=sustained, cold=cold)
    twin = "twin" if run_time_sizes else FIXED_TWIN
    command = f"bench {' '.join(one if isinstance(one, str) else one.typed for one in subjects)}"
    return measured(subjects, options, policy, twin, command, lambda machine: None)


def predicted(subjects: Sequence[str | Rung], options: Options, gpu: str) -> Times:
    """Counters, and bounds of a datasheet; and where that is asked for, times."""
    arch = options.arch or CPU_ARCH
    if not options.time:
        jobs = settle_jobs(jobs_of(subjects, options), arch)
        return Times(predictions(jobs, find_gpu(gpu), arch, counted_of(jobs, options)))
    target = target_of(gpu)
    arch = target.arch_for(options.arch)
    jobs = settle_jobs(jobs_of(subjects, options), arch)
    found = predictions(jobs, find_gpu(target.name), arch, counted_of(jobs, options))
    bounds = {each["shape"]: each["least_us"] for each in found["bounds"]}
    report = replace(times_of_jobs(jobs, target, arch), several=True, bounds=bounds)
    return PredictedTimes({**found, "times": report.to_json()["rows"]}, report)


def counted_of(jobs: list[Job], options: Options) -> list[Job]:
    """The jobs that `predicted` counts: all if sizes are asked for, else each rung's largest, because many
    rungs have another configuration for each size."""
    asked = any(getattr(options, name, None) for name in ("sizes", "mnk", "n", "random", "workload"))
    return jobs if asked else largest_of(jobs)


def measured(
    subjects: Sequence[str | Rung],
    options: Options,
    policy: session.Policy,
    twin: str,
    command: str,
    check: Callable[[Any], None],
) -> Times:
    """What is timed on this computer's GPU. check: called with it before."""
    check_candidates(options)
    machine = session.gpu_machine() if options.tuned is not None else None
    jobs = jobs_of(subjects, options, machine)  # bad names and options show before a GPU is looked for
    machine = machine or session.gpu_machine()
    check(machine)
    arch = arch_for(machine, options.arch)
    found = session.measure_jobs(machine, jobs, arch, command, policy, twin)
    notes = notes_on(jobs, arch, [one for one in subjects if isinstance(one, str)])
    found = {**found, **drawn_note(options, jobs, arch)}
    return Times({**found, "notes": [*found.get("notes", ()), *notes]} if notes else found)


def drawn_note(options: Options, jobs: Sequence[Job], arch: str) -> Json:
    """What results and packs have about shapes that are drawn; empty if the user named the shapes. If several
    candidates are timed, it also has what is chosen without timing."""
    if options.random is None:
        return {}
    note = note_on(options.random, options.seed or 0, [workload for _, workload in jobs])
    if candidates_of(options) > 1:
        chosen: Json = {}
        for rung, workload in jobs:
            if str(workload) in note["kinds"]:
                with suppress(BadInput):  # it was left out, and a line says why
                    chosen[str(workload)] = fastest(rung.family, workload, arch)[0].id
        note |= {"candidates": candidates_of(options), "chosen": chosen}
    return {"drawn": note}


def notes_on(jobs: Sequence[Job], arch: str, names: Sequence[str]) -> list[str]:
    """Why rungs that are named, not as a ladder, have their configurations, and why they are slower there
    than elsewhere, as far as models say so. And that a name such as "hgemm/fastest" has more candidates."""
    named = [(rung, workload) for rung, workload in jobs if rung.family not in names]
    reasons: list[str] = []
    for rung, workload in named:
        try:
            reasons.append(reason_for(*rung.settled(workload, arch)))
        except BadInput:
            continue  # it was left out, and a line says why
    if any(isinstance(rung, StandIn) and rung.candidates == 1 for rung, _ in named):
        reasons.append(MORE)
    return [*dict.fromkeys(filter(None, reasons))]


def jobs_of(subjects: Sequence[str | Rung], options: Options, machine: Machine | None = None) -> list[Job]:
    """The rungs that are named, each once, with the workloads they are timed on. Raises BadInput if names or
    options do not fit.

    machine: with --tuned the GPU that records are to be of; without one, records for --arch count.
    """
    rungs = rungs_of(subjects, options.configs)
    check_options(rungs, options)
    check_drawing(options)
    check_candidates(options)
    rungs = taking(rungs, [one for one in subjects if isinstance(one, str)], options)
    if options.no_twins:
        rungs = [replace(rung, twinned=False) for rung in rungs]
    if getattr(options, "candidates", None) is not None:
        rungs = with_candidates(subjects, rungs, options.candidates)
    if getattr(options, "workload", None) is not None:
        return [(rung, options.workload) for rung in rungs]
    problems = problems_of(rungs, options)
    if options.tuned is None:
        return jobs_on(rungs, problems, BENCH_SHAPES)
    there: Machine = machine or choose("cpu")
    return tuned_jobs(rungs, problems, options.tuned, there, arch_for(there, options.arch), beside=True)


def candidates_of(options: Options) -> int:
    """How many kernels are timed for a name such as "hgemm/fastest"."""
    return getattr(options, "candidates", None) or 1


def check_candidates(options: Options) -> None:
    """BadInput if the number of candidates is not from 1 to MOST_CANDIDATES, or another option says what is
    timed, too."""
    count = getattr(options, "candidates", None)
    if count is None:
        return
    if not 1 <= count <= MOST_CANDIDATES:
        raise BadInput(f"--candidates takes a number from 1 to {MOST_CANDIDATES}, not {count}")
    for other, value in (("tuned", options.tuned), ("configs", options.configs or None)):
        if value is not None:
            raise BadInput(f"--candidates and --{other} both say what is timed: leave one out")


def with_candidates(subjects: Sequence[str | Rung], rungs: Sequence[Rung], count: int) -> list[Rung]:
    """Names such as "hgemm/fastest" that stand for so many candidates each. BadInput for other rungs."""
    for one in subjects:
        others = [rung for rung in rungs_of([one]) if not isinstance(rung, StandIn)]
        if others:
            named, family = one if isinstance(one, str) else one.typed, others[0].family
            raise BadInput(f"--candidates goes with names such as {family}/fastest, not with {named}")
    return [replace(rung, candidates=count) for rung in rungs if isinstance(rung, StandIn)]
