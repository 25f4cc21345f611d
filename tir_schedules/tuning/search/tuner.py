"""A search through a space, driven by MetaSchedule: its task scheduler, its XGBoost model, and our strategy,
builder and runner."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Iterator, Sequence

from tir_schedules import interrupts
from tir_schedules.console import print_error
from tir_schedules.errors import BadInput
from tir_schedules.processes import temporary_folder
from tir_schedules.tuning.records.records import Database, Record, best
from tir_schedules.tuning.space.space import Space, key

if TYPE_CHECKING:
    from tir_schedules.tuning.search.trials import Trials

BATCH = 8
"""Fewest candidates that are chosen together; after each batch the model learns."""

LESSONS = 4
"""Batches of a search at least, however many candidates could be worked on at a time."""

FINALISTS, ROUNDS = 5, 3
"""The fastest so many are timed anew, at most so often: until the fastest is one that was."""

FEWEST = 3
"""Trials of which a rank correlation says anything."""


@dataclass(frozen=True)
class Tuned:
    """best: the fastest, None when all were refused. records: of the task, earlier ones too, in the order
    they were tried.

    model_rank_correlation: Spearman's, between the model's ranking of candidates before they were built and
    their cost, 1 for the same order; None when the model ranked fewer than FEWEST.
    """

    best: Record | None
    records: tuple[Record, ...]
    model_rank_correlation: float | None


def tune(
    space: Space,
    workload: Any,
    arch: str,
    trials: int,
    database: Database,
    machine: Any = None,
    seed: int = 0,
    on_trial: Callable[[Record], None] = lambda record: None,
    timer: Any = None,
) -> Tuned:
    """Search until the database has `trials` records of the task; those it has already teach the model, and
    are not tried again.

    machine: a GPU machine that measures; without one costs are predictions. timer: in place of the machine's,
    see running.py.
    on_trial: called with each new record, which is in the database by then. Ctrl-C leaves all of them there,
    and is raised. BadInput for a space without a point for the workload, or an architecture nvcc or the rung
    does not take; MissingTool without xgboost or nvcc.
    """
    from tir_schedules.compiler.toolchain import check_arch
    from tir_schedules.tuning.search.metaschedule import import_metaschedule

    check_numbers(trials, seed)
    check_arch(arch)
    space.rung.check_arch(arch)
    import_metaschedule()
    from tir_schedules.tuning.measure.running import timer_for
    from tir_schedules.tuning.search.trials import Trials

    timer = timer or timer_for(machine)
    timer.check(arch)
    space.size(workload, arch)
    tried = Trials(space, workload, arch, database, timer, trials, on_trial)
    scores = {}
    if tried.left:
        try:
            scores = search(tried, seed)
            if tried.failure:
                raise tried.failure
            decide(tried)
        finally:
            timer.close()
    if tried.passed_over:
        count, last = len(tried.passed_over), list(tried.passed_over.values())[-1]
        print_error(
            f"{count} candidates were not built and not recorded, a later run may try them again; the last:"
            f" {last}"
        )
    records = tuple(tried.records.values())
    return Tuned(best(records), records, rank_correlation(scores, records))


def check_numbers(trials: int, seed: int) -> None:
    """BadInput for those that no search can have."""
    if trials < 1:
        raise BadInput(f"--trials is {trials}; it must be at least 1")
    if seed < 0:
        raise BadInput(f"--seed is {seed}; it must be at least 0")


def search(tried: "Trials", seed: int) -> dict[str, float]:
    """Fill the budget. Returns what the model said of candidates before they were built, by key of their
    point."""
    from tir_schedules.tuning.search.metaschedule import import_metaschedule, stored, tune_context
    from tir_schedules.tuning.search.pipeline import Builder, Runner
    from tir_schedules.tuning.search.strategy import Evolution

    meta_schedule = import_metaschedule()
    model = cost_model(tried)
    strategy = Evolution(tried, model, seed)
    context = tune_context(tried.space, tried.workload, tried.arch, strategy, seed)
    batch = max(BATCH, min(tried.timer.at_once, tried.left // LESSONS))
    threads = ThreadPoolExecutor(tried.timer.at_once)
    with temporary_folder() as folder, threads as pool, ending_on_ctrl_c(tried):
        builder = Builder(tried, pool, lambda point: stored(tried.space, point, tried.workload, context))
        meta_schedule.tune.tune_tasks(
            tasks=[context], task_weights=[1.0], work_dir=str(folder), max_trials_global=tried.left,
                num_trials_per_iter=batch,
            builder=builder, runner=Runner(tried, builder.pending), database="memory", cost_model=model,
            task_scheduler="round-robin",
            measure_callbacks=[meta_schedule.measure_callback.UpdateCostModel()],
        )  # fmt: skip
    return strategy.scores


@contextmanager
def ending_on_ctrl_c(tried: "Trials") -> Iterator[None]:
    """Ctrl-C ends the search in order, once what is under way is recorded; a command does not wait for
    that."""

    def end() -> None:
        tried.failure = tried.failure or KeyboardInterrupt()
        if not interrupts.stopping():
            print_error("interrupted: candidates under way are finished first")

    with interrupts.in_order(end):
        yield


def decide(tried: "Trials") -> None:
    """Have the fastest timed side by side, the rung's own choice among them: the times of a search are each
    of another moment."""
    space, timed = tried.space, set()
    own = key(space.point_of(space.rung.fitted(tried.workload).config))
    for _ in range(ROUNDS):
        finalists = tried.best(FINALISTS)
        if not finalists or key(finalists[0].point) in timed:
            return
        finalists += [record for record in tried.best(tried.budget)[FINALISTS:] if key(record.point) == own]
        found = tried.timer.compared(
            [space.rung_at(record.point) for record in finalists], tried.workload, tried.arch
        )
        if found is None:
            return
        for record, result in zip(finalists, found):
            tried.settle(record, result)
        timed |= {key(record.point) for record in finalists}


def cost_model(tried: "Trials") -> Any:
    """MetaSchedule's XGBModel with features of ours. Shallower trees that learn more slowly than by default
    rank unseen points better after a dozen trials."""
    from tir_schedules.tuning.search.metaschedule import import_metaschedule
    from tir_schedules.tuning.search.strategy import Features

    models = import_metaschedule().cost_model
    trees = models.xgb_model.XGBConfig(max_depth=6, eta=0.1)
    return models.XGBModel(
        extractor=Features(tried), config=trees, num_warmup_samples=1, verbose_eval=0, num_tuning_cores=1
    )


def rank_correlation(scores: dict[str, float], records: Sequence[Record]) -> float | None:
    """Spearman's, of scores (higher is faster) and the speed of those that have seconds."""
    import numpy as np

    both = [
        (scores[key(record.point)], -record.median)
        for record in records
        if record.seconds and key(record.point) in scores
    ]
    if len(both) < FEWEST:
        return None
    ranks = [np.unique(column, return_inverse=True)[1] for column in zip(*both)]
    return float(np.corrcoef(ranks)[0, 1]) if all(rank.any() for rank in ranks) else None
