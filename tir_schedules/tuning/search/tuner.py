"""A search through a space, driven by MetaSchedule: its task scheduler and XGBoost model, our strategy,
builder and runner."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Iterator, Sequence, cast

from tir_schedules import interrupts
from tir_schedules.console import print_error
from tir_schedules.errors import BadInput
from tir_schedules.model.machine import Machine
from tir_schedules.model.workload import Workload
from tir_schedules.processes import temporary_folder
from tir_schedules.tuning.building.hosts import Hosts
from tir_schedules.tuning.measure.evaluator import Evaluator
from tir_schedules.tuning.records.database import Database, best
from tir_schedules.tuning.records.record import Record
from tir_schedules.tuning.records.timesheet import Spent
from tir_schedules.tuning.space.points import Space, key

if TYPE_CHECKING:
    from tvm.s_tir.meta_schedule import SearchStrategy

    from tir_schedules.tuning.search.trials import Trials

BATCH = 8
"""Candidates that are chosen together, for each GPU, or half as many in a short search; after each
batch the model learns."""

AHEAD = 6
"""Batches that are under way at most: while one is timed, others are built. One candidate takes several times
as long to build as another, and results are waited for in order: with 3 batches, GPUs waited, too."""

LESSONS = 4
"""One in so many candidates of a search may be under way: they were chosen without each other's results."""

BUILT = 2
"""Candidates for each GPU that may be built and wait, so that it never does."""

FINALISTS, ROUNDS = 5, 3
"""How many of the fastest are timed again, side by side; and how often at most, until the fastest was."""

FEWEST = 3
"""Trials that a rank correlation takes."""


@dataclass(frozen=True)
class Tuned:
    """best: the fastest, None when all were refused. records: of the task, earlier ones too, in the order
    they were tried.

    model_rank_correlation: Spearman's, between the model's ranking of candidates before they were built and
    their cost, 1 for the same order; None when the model ranked fewer than FEWEST. spent: where the time
    went, None when nothing was left to search.
    """

    best: Record | None
    records: tuple[Record, ...]
    model_rank_correlation: float | None
    spent: Spent | None = None


def tune(
    space: Space,
    workload: Workload,
    arch: str,
    trials: int,
    database: Database,
    machine: Machine | Hosts | None = None,
    seed: int = 0,
    on_trial: Callable[[Record], None] = lambda record: None,
    evaluator: Evaluator | None = None,
) -> Tuned:
    """Search until the database has `trials` records of the task; those it has already teach the model, and
    are not tried again.

    machine: what measures, GPUs of this computer or of others; without one, the cost model predicts.
    evaluator: in place of the machine's. on_trial: called with each new record, which is in the database by
    then. Ctrl-C leaves all of them there, and is raised. BadInput for a space without a point for the
    workload, or an architecture nvcc or the rung does not take; MissingTool without xgboost or nvcc.
    """
    from tir_schedules.compiler.toolchain import check_arch
    from tir_schedules.tuning.search.metaschedule import import_metaschedule

    check_numbers(trials, seed)
    check_arch(arch)
    space.rung.check_arch(arch)
    import_metaschedule()
    from tir_schedules.tuning.measure.evaluator import evaluator_for
    from tir_schedules.tuning.search.trials import Trials

    evaluator = evaluator or evaluator_for(machine)
    evaluator.check(arch)
    space.size(workload, arch)
    tried = Trials(space, workload, arch, database, evaluator, trials, on_trial)
    scores, spent = {}, None
    if tried.left:
        start = time.monotonic()
        try:
            scores, awaited = search(tried, seed)
            if tried.failure:
                raise tried.failure
            searched, on = time.monotonic(), dict(evaluator.spent.seconds)
            decide(tried)
            end, candidates = time.monotonic(), len(tried.records) - tried.earlier
            both = evaluator.builders, evaluator.places
            spent = Spent(end - start, awaited, end - searched, candidates, on, *both)
        finally:
            evaluator.close()
    if tried.passed_over:
        count, last = len(tried.passed_over), list(tried.passed_over.values())[-1]
        print_error(
            f"{count} candidates were not built and not recorded, a later run may try them again; the last:"
            f" {last}"
        )
    records = tuple(tried.records.values())
    return Tuned(best(records), records, rank_correlation(scores, records), spent)


def check_numbers(trials: int, seed: int) -> None:
    """BadInput for those that no search can have."""
    if trials < 1:
        raise BadInput(f"--trials is {trials}; it must be at least 1")
    if seed < 0:
        raise BadInput(f"--seed is {seed}; it must be at least 0")


def search(tried: Trials, seed: int) -> tuple[dict[str, float], float]:
    """Fill the budget. Returns the model's scores of candidates before they were built, by key of a point,
    and the seconds that it waited for results."""
    from tir_schedules.tuning.search.builder_runner import Builder, Runner, UnderWay
    from tir_schedules.tuning.search.evolution import Evolution
    from tir_schedules.tuning.search.features import cost_model
    from tir_schedules.tuning.search.metaschedule import import_metaschedule, tune_context, tuning_record

    meta_schedule = import_metaschedule()
    model, evaluator = cost_model(tried), tried.evaluator
    batch, window = together(tried.left, evaluator.places)
    threads = ThreadPoolExecutor(evaluator.builders + BUILT * evaluator.places or 1)
    with temporary_folder() as folder, threads as pool, ending_on_ctrl_c(tried):
        under_way = UnderWay(
            tried, pool, lambda point: tuning_record(tried.space, point, tried.workload, context)
        )
        strategy = Evolution(tried, model, seed, under_way, batch, window)
        searching = cast("SearchStrategy", strategy)  # derived_object hides its base
        context = tune_context(tried.space, tried.workload, tried.arch, searching, seed)
        meta_schedule.tune.tune_tasks(
            tasks=[context],
            task_weights=[1.0],
            work_dir=str(folder),
            max_trials_global=tried.left,
            num_trials_per_iter=batch,
            builder=Builder(),
            runner=Runner(under_way.results),
            database="memory",
            cost_model=model,
            task_scheduler="round-robin",
            measure_callbacks=[meta_schedule.measure_callback.UpdateCostModel()],
        )
    return strategy.scores, under_way.awaited


def together(trials: int, places: int) -> tuple[int, int]:
    """How many candidates are chosen together, and how many are under way at most, in a search of so many.

    It depends on the GPUs, and not on how many processes build for them: what a search tries is
    the same however many there are.
    """
    most = BATCH * max(1, places)
    window = max(BATCH, min(AHEAD * most, trials // LESSONS))
    return min(most, window // 2), window


@contextmanager
def ending_on_ctrl_c(tried: Trials) -> Iterator[None]:
    """Ctrl-C ends the search in order, once what is under way is recorded."""

    def end() -> None:
        tried.failure = tried.failure or KeyboardInterrupt()
        if not interrupts.stopping():
            print_error("interrupted: candidates under way are finished first")

    with interrupts.in_order(end):
        yield


def decide(tried: Trials) -> None:
    """Time the fastest and the rung's own choice side by side: a search times each at another moment."""
    space, timed = tried.space, set()
    own = key(space.point_of(space.rung.fitted(tried.workload).config))
    for _ in range(ROUNDS):
        finalists = tried.best(FINALISTS)
        if not finalists or key(finalists[0].point) in timed:
            return
        finalists += [record for record in tried.best(tried.budget)[FINALISTS:] if key(record.point) == own]
        found = tried.evaluator.compare(
            [space.rung_at(record.point) for record in finalists], tried.workload, tried.arch
        )
        if found is None:
            return
        for record, result in zip(finalists, found):
            tried.settle(record, result)
        timed |= {key(record.point) for record in finalists}


def rank_correlation(scores: dict[str, float], records: Sequence[Record]) -> float | None:
    """Spearman's, of scores (higher is faster) and the speed of those that have seconds."""
    from scipy.stats import spearmanr  # which xgboost needs, too

    both = [
        (scores[key(record.point)], -record.median)
        for record in records
        if record.seconds and key(record.point) in scores
    ]
    if len(both) < FEWEST:
        return None
    said, turned_out = zip(*both)
    alike = 1 in (len(set(said)), len(set(turned_out)))
    return None if alike else float(cast("Any", spearmanr(said, turned_out)).statistic)
