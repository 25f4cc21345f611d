# pyright: strict
"""`tune`: configurations searched for the fastest."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Mapping, Sequence

from tir_schedules.api.options import Shape
from tir_schedules.api.plans import Plan
from tir_schedules.api.problems import Options, check_options, options_of, problem_of
from tir_schedules.api.results import Result
from tir_schedules.api.subjects import RUNG, kind_of
from tir_schedules.compiler.toolchain import check_arch
from tir_schedules.console import progress
from tir_schedules.errors import BadInput
from tir_schedules.files import Json
from tir_schedules.ladders.problems import EMIT_SHAPES, workload_of
from tir_schedules.ladders.registry import FAMILIES, find
from tir_schedules.machines.choice import arch_for, choose
from tir_schedules.model.machine import Machine
from tir_schedules.model.rung import Rung
from tir_schedules.model.workload import Workload
from tir_schedules.tuning.building.hosts import Hosts
from tir_schedules.tuning.records.database import Database, own_records
from tir_schedules.tuning.records.record import Record
from tir_schedules.tuning.records.searches import Run, Search, as_json, print_searches, search_of
from tir_schedules.tuning.search.metaschedule import import_metaschedule
from tir_schedules.tuning.search.tuner import check_numbers
from tir_schedules.tuning.search.tuner import tune as run_search  # pyright: ignore[reportUnknownVariableType]
from tir_schedules.tuning.space.points import Space
from tir_schedules.tuning.space.tunable import DEFAULTS, TUNABLE, space_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

Job = tuple[Space[Any, Any], Workload, str]

TRIALS = 64


@dataclass(frozen=True, repr=False)
class Searches(Result):
    """Searches that have records.

    - searches: each with its records and the best of them.
    - runs: what this call did, by rung.
    - paths: files of records.
    - interrupted: whether Ctrl-C ended it; all results until then are kept.
    - drawn: files of plots.
    """

    searches: tuple[Search, ...]
    paths: tuple[Path, ...]
    runs: Mapping[str, Run] = field(default_factory=lambda: dict[str, Run]())
    interrupted: bool = False
    new: int = 0
    drawn: tuple[Path, ...] = ()
    ok: bool = True

    @property
    def best(self) -> dict[str, Record | None]:
        """The fastest of each search, by rung: its point, and the median in seconds."""
        return {search.rung: search.best for search in self.searches}

    def __repr__(self) -> str:
        return f"Searches({', '.join(f'{one.rung}: {len(one)} trials' for one in self.searches)})"

    def show(self) -> None:
        print_searches(self.searches, self.paths, dict(self.runs), self.drawn)

    def to_json(self) -> list[Json]:
        return [as_json(search, self.runs.get(search.rung)) for search in self.searches]


def tune(
    name: str | Rung,
    *,
    trials: int = TRIALS,
    arch: str | None = None,
    machine: str = "auto",
    seed: int = 0,
    records: str | Path | None = None,
    resume: bool = False,
    on: Sequence[str] = (),
    **shape: Unpack[Shape],
) -> Searches:
    """Search the configurations of a rung for the fastest on one shape and one GPU.

    - name: a rung, or a ladder for its best rungs one after another.
    - trials: configurations to try for each rung, including those tried earlier.
    - arch: the GPU architecture to compile for; by default that of the GPU.
    - machine: "gpu" measures, "cpu" predicts by a simulated SM or a formula, and "auto" takes the GPU if CuPy
      finds one.
    - seed: the seed of the search.
    - records: the file in which every result is kept at once; by default your own file.
    - resume: continue a search from the results in this file.
    - on: computers that ssh reaches, which measure in place of this one.

    Raises BadInput if a name does not exist or an option is not possible, and MissingTool if xgboost or a
    compiler is missing.
    """
    kind_of(name, "tune", RUNG)
    if not name:
        raise BadInput(f"tune takes {', '.join(FAMILIES)} or a rung, such as 'sgemm/multistage'")
    name = name if isinstance(name, str) else name.typed
    options = options_of(
        shape, "tune", arch=arch, name=name, trials=trials, machine=machine, seed=seed,
        records=Path(records or own_records()), resume=resume,
        on=on,
    )  # fmt: skip
    return search(options, spaces_of(options))


def spaces_of(options: Options) -> list[Space[Any, Any]]:
    """The spaces that NAME stands for, all without one. Raises BadInput if a name cannot be tuned."""
    check_numbers(options.trials, options.seed)
    names = DEFAULTS.get(options.name, TUNABLE)
    if options.name and options.name not in FAMILIES:
        names = tuple(rung.id for rung in find(options.name))
    spaces: list[Space[Any, Any]] = [space_of(name) for name in names]
    for space in spaces:
        if space.rung.family not in FAMILIES:
            raise BadInput(
                f"tune searches rungs of {', '.join(FAMILIES)}, whose records others can read, and"
                f" {space.rung.id} is of another ladder: `run` and `bench` take its configurations"
            )
    check_options([space.rung for space in spaces], options)
    return spaces


def search(options: Options, spaces: list[Space[Any, Any]]) -> Searches:
    """Search each space."""
    import_metaschedule()
    machine = machine_of(options)
    jobs = jobs_of(options, spaces, machine)
    options.records.parent.mkdir(parents=True, exist_ok=True)
    database = Database(options.records)
    earlier = found_in(database, jobs, machine)
    check_earlier(options, jobs, earlier)
    runs, interrupted = dict[str, Run](), False
    try:
        for (space, workload, own), before in zip(jobs, earlier):
            runs[space.rung.id] = search_one(space, workload, own, options, database, machine, before)
    except KeyboardInterrupt:
        interrupted = True
    after = found_in(database, jobs, machine)
    new = sum(map(len, after)) - sum(map(len, earlier))
    right, kept = all(one.best for one in after), tuple(one for one in after if len(one))
    return Searches(kept, (options.records,), runs, interrupted, new, ok=right)


def jobs_of(
    options: Options, spaces: list[Space[Any, Any]], machine: Machine | Hosts
) -> list[tuple[Space[Any, Any], Workload, str]]:
    """What is searched: spaces, each on a workload and for an architecture."""
    arch = arch_for(machine, options.arch)
    check_arch(arch)
    if options.name in FAMILIES:
        spaces = [space for space in spaces if runs_on(space.rung, arch)] or spaces
    return [
        (
            space,
            getattr(options, "workload", None)
            or workload_of(space.rung, problem_of(space.rung.family, options), EMIT_SHAPES),
            space.rung.arch_for(arch),
        )
        for space in spaces
    ]


def plan_of_search(options: Options, spaces: list[Space[Any, Any]]) -> Plan:
    """What `tune` will do."""
    machine = machine_of(options)
    jobs = jobs_of(options, spaces, machine)
    earlier: list[Search] = []
    if options.records.exists():
        earlier = found_in(Database(options.records), jobs, machine)
        check_earlier(options, jobs, earlier)
    rows = tuple(
        (space.rung.id, str(workload), arch, str(options.trials), str(len(before)), ", ".join(space.fields))
        for (space, workload, arch), before in zip(jobs, earlier or [()] * len(jobs))
    )
    where = f"on {', '.join(options.on)}" if options.on else f"on {machine.device_name}"
    note = f"measured {where}" if machine.name == "gpu" else "predicted by what the CPU machine counts"
    columns = ("rung", "shape", "arch", "trials", "of them there already", "fields")
    return Plan(columns, rows, (note, f"every result is kept in {options.records}"))


def found_in(database: Database, jobs: Sequence[Job], machine: Machine | Hosts) -> list[Search]:
    """What there is of each search."""
    return [
        search_of(database.records(), space.rung, workload, own, machine) for space, workload, own in jobs
    ]


def runs_on(rung: Rung, arch: str) -> bool:
    """Whether a rung of a ladder can be tuned for an architecture, asked for or not."""
    try:
        rung.check_arch(str(arch))
    except BadInput:
        return False
    return True


def machine_of(options: Options) -> Machine | Hosts:
    """What measures: this computer's GPU or CPU machine, or the hosts of --on."""
    return Hosts(options.on) if options.on else choose(options.machine)


def check_earlier(options: Options, jobs: Sequence[Job], earlier: list[Search]) -> None:
    """Raises BadInput if there are results of a search already and it is not to go on, or if nothing is left
    to try."""
    for (space, workload, _), search in zip(jobs, earlier):
        if len(search) and not options.resume:
            what = f"{options.records} has {len(search)} trials of {space.rung.id} on {workload} already"
            raise BadInput(
                f"{what}: --resume goes on with them, --records FILE begins anew, --show shows them"
            )
    if all(len(search) >= options.trials for search in earlier):
        fewest = min(map(len, earlier))
        raise BadInput(
            f"{options.records} has {fewest} trials of each search already: name more --trials, or see them"
            " with --show"
        )


def search_one(
    space: Space[Any, Any],
    workload: Workload,
    arch: str,
    options: Options,
    database: Database,
    machine: Machine | Hosts,
    earlier: Search,
) -> Run:
    """Run one search, with a bar that shows the best so far."""

    first, start = earlier.best.median if earlier.best else math.inf, time.monotonic()
    medians: list[float] = []
    with progress(max(0, options.trials - len(earlier)), f"{space.rung.id} {workload}") as step:

        def on_trial(record: Record) -> None:
            medians.append(record.median)
            step(f"best {min(first, *medians) * 1e6:.4g} us")

        tuned = run_search(space, workload, arch, options.trials, database, machine, options.seed, on_trial)
    return Run(len(medians), time.monotonic() - start, tuned.model_rank_correlation, tuned.spent)
