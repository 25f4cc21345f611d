"""Searches among configurations whose times were recorded: `tune`, and random search."""

from __future__ import annotations

import random
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Iterator, Sequence

from search_points import ARCH, TASKS, Task

from tir_schedules.errors import BadInput, CheckFailed
from tir_schedules.files import Json
from tir_schedules.model.rung import Rung
from tir_schedules.model.workload import Workload
from tir_schedules.tuning.measure.evaluator import Evaluation
from tir_schedules.tuning.records.record import MEASURED
from tir_schedules.tuning.records.timesheet import Timesheet
from tir_schedules.tuning.space.points import Constraint, Point, Space, key

if TYPE_CHECKING:
    from tir_schedules.tuning.search.trials import Trials

SEEDS = range(5)
BUDGET = 64
"""Trials of a search."""

TRAINED = (16, 32, 64)
"""Random configurations that the cost model learns from, before it ranks all others."""

MODEL, RANDOM = "tune", "random search"

Times = dict[str, float | None]
"""Key of a point -> seconds; None where it was refused."""


class Drawn(Space[Any, Any]):
    """The part of a rung's space that was timed. The search does not begin with configurations chosen by
    hand."""

    def by_hand(self) -> list[Point]:
        return []


def drawn(task: Task, times: Times) -> Drawn:
    space = task.space
    was_timed = Constraint(
        "it was not timed", lambda config, workload, arch: key(space.point_of(config)) in times
    )
    return Drawn(space.rung, space.fields, (*space.constraints, was_timed))


@dataclass
class Recorded:
    """An evaluator (see tuning.measure.evaluator) that looks a configuration's time up."""

    space: Space[Any, Any]
    times: Times
    kind: str = MEASURED
    device: str = "recorded"
    builders: int = 1
    places: int = 0
    spent: Timesheet = field(default_factory=Timesheet)

    def check(self, arch: str) -> None:
        """Times are of one architecture."""

    def evaluate(self, rung: Rung, workload: Workload, arch: str) -> Evaluation:
        seconds = self.times[key(self.space.point_of(rung.config))]
        if seconds is None:
            raise CheckFailed("it was refused when it was timed")
        return Evaluation((seconds,), "")

    def compare(self, rungs: Sequence[Rung], workload: Workload, arch: str) -> None:
        """Times would be the same again."""

    def close(self) -> None:
        """It has no processes."""


def times_of(task: Task, results: Json) -> Times:
    """What was recorded of a task's configurations."""
    own = f"{task.rung}:"
    timed = {row["name"]: row["median_us"] / 1e6 for row in results["rows"]}
    refused = {row["name"]: None for row in results["refused"]}
    return {
        key(task.point(name)): seconds for name, seconds in (refused | timed).items() if name.startswith(own)
    }


def progress_of(found: Sequence[float | None], best: float) -> list[float]:
    """After each trial, the rate of the fastest so far as a share of the rate of the fastest of all; 0 while
    all were refused."""
    shares, least = [], float("inf")
    for seconds in found:
        least = min(least, seconds or least)
        shares.append(round(best / least, 4))
    return shares


def random_search(times: Times, seed: int) -> list[float | None]:
    """Seconds of each trial; each configuration is tried once at most."""
    order = random.Random(seed).sample(sorted(times), min(BUDGET, len(times)))
    return [times[name] for name in order]


def trials_of(task: Task, times: Times, folder: str) -> Trials:
    from tir_schedules.tuning.records.database import Database
    from tir_schedules.tuning.search.trials import Trials

    space = drawn(task, times)
    database = Database(Path(folder) / "records.jsonl")
    evaluator = Recorded(space, times)
    return Trials(space, task.workload, ARCH, database, evaluator, BUDGET, lambda record: None)


def tuned(task: Task, times: Times, seed: int) -> list[float | None]:
    """Seconds of each trial of `tune`, in their order."""
    from tir_schedules.tuning.records.database import Database
    from tir_schedules.tuning.search.tuner import tune

    space = drawn(task, times)
    with tempfile.TemporaryDirectory() as folder:
        found = tune(
            space,
            task.workload,
            ARCH,
            min(BUDGET, len(times)),
            Database(Path(folder) / "records.jsonl"),
            seed=seed,
            evaluator=Recorded(space, times),
        )
    return [record.median if record.seconds else None for record in found.records]


def correlations(task: Task, times: Times) -> Iterator[Json]:
    """Spearman's, between the speed of configurations and what the cost model says of them after it learned
    from others."""
    from scipy.stats import spearmanr
    from tvm.s_tir.meta_schedule.runner import RunnerResult

    from tir_schedules.tuning.search.features import cost_model
    from tir_schedules.tuning.search.metaschedule import candidate, tune_context

    with tempfile.TemporaryDirectory() as folder:
        trials = trials_of(task, times, folder)
        space, workload = trials.space, task.workload
        context = tune_context(space, workload, ARCH, None, 0)
        timed = {name: seconds for name, seconds in times.items() if seconds}
        named = {key(point): point for point in space.points(workload, ARCH)}
        candidates = {name: candidate(space, named[name], workload) for name in timed}
        for seed in SEEDS:
            order = random.Random(seed).sample(sorted(candidates), len(candidates))
            for count in TRAINED:
                model = cost_model(trials)
                learned, unseen = order[:count], order[count:]
                results = [RunnerResult([timed[name]], None) for name in learned]
                model.update(context, [candidates[name] for name in learned], results)
                said = model.predict(context, [candidates[name] for name in unseen])
                found: Any = spearmanr(said, [-timed[name] for name in unseen])
                yield {"seed": seed, "trained": count, "spearman": round(float(found.statistic), 4)}


def replayed(results: Json, step: Callable[[str], None]) -> list[Json]:
    """A row for each search of each task, and for each correlation. BadInput for results without a task's
    configurations."""
    rows: list[Json] = []
    for task in TASKS:
        times = times_of(task, results)
        timed = [seconds for seconds in times.values() if seconds]
        if len(timed) < BUDGET:
            raise BadInput(f"{task.rung}: {len(timed)} configurations were timed; a search takes {BUDGET}")
        about = {"rung": task.rung, "shape": str(task.workload), "configurations": len(timed)}
        for seed in SEEDS:
            for search, run in ((RANDOM, random_search), (MODEL, lambda *given: tuned(task, *given))):
                step(f"{task.rung}: {search}, seed {seed}")
                shares = progress_of(run(times, seed), min(timed))
                rows.append({**about, "search": search, "seed": seed, "shares": shares})
        step(f"{task.rung}: the cost model's ranking")
        rows += [{**about, **found} for found in correlations(task, times)]
    return rows
