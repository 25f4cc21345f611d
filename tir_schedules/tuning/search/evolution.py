"""How the next candidates are found: by evolution, ranked by the cost model before any is built."""

from __future__ import annotations

import math
import random
from itertools import chain
from typing import TYPE_CHECKING, Any, Sequence

from tvm.ir.utils import derived_object
from tvm.s_tir.meta_schedule.runner import RunnerResult
from tvm.s_tir.meta_schedule.search_strategy import PySearchStrategy

from tir_schedules.tuning.search.metaschedule import candidate, point_in
from tir_schedules.tuning.search.trials import Trials, fastest
from tir_schedules.tuning.space.points import Point, key

if TYPE_CHECKING:
    from tvm.s_tir.meta_schedule import CostModel, MeasureCandidate, SearchStrategy, TuneContext
    from tvm.s_tir.meta_schedule.cost_model import XGBModel

    from tir_schedules.tuning.search.builder_runner import UnderWay

WARM_UP = 12
"""Trials before the model is asked: the hand-chosen configurations, what was best for other shapes, and
random points."""

ELITES, CHILDREN, GENERATIONS = 12, 96, 3
FRESH = 0.25
"""Share of random points, in each generation and in each batch: what keeps the search from one corner of the
space."""

ATTEMPTS = 50
"""Draws of a point that has not been tried yet, before all points are looked through for one."""


@derived_object
class Evolution(PySearchStrategy):
    """First the hand-chosen configurations, what was best for other shapes, and random points; then the
    descendants of the fastest that the cost model ranks highest.

    While results of some are awaited, others are under way, `window` at most. The choice depends on the
    results of the candidates that were chosen a window before, in that order, and not on which results have
    arrived. So a search with the same seed and the same results chooses the same candidates.

    model: MetaSchedule's XGBModel, which the task's scheduler teaches. scores: key of a point -> what the
    model said of it before it was built, the higher the faster. taken: points that were chosen or refused, in
    earlier runs, too. known: records that the search has taken account of. size: candidates that are chosen
    together.
    """

    context: TuneContext  # from _initialize_with_tune_context
    used_up = False

    def __init__(
        self, trials: Trials, model: XGBModel, seed: int, under_way: UnderWay, size: int, window: int
    ) -> None:
        super().__init__()
        self.trials, self.model, self.rng = trials, model, random.Random(seed)
        self.under_way, self.size, self.window = under_way, size, window
        self.task = (trials.workload, trials.arch)
        self.scores: dict[str, float] = {}
        self.taken, self.known = set(trials.records), dict(trials.records)
        self.candidates: dict[str, MeasureCandidate] = {}

    def _initialize_with_tune_context(self, context: TuneContext) -> None:
        self.context = context

    def pre_tuning(
        self,
        max_trials: int,
        num_trials_per_iter: int,
        design_spaces: list[Any],
        database: Any = None,
        cost_model: CostModel | None = None,
    ) -> None:
        """Results of earlier runs teach the model first."""
        self.trials.guarded(self.learn)

    def learn(self) -> None:
        records = self.trials.records.values()
        results = [RunnerResult([*record.seconds] or None, record.error or None) for record in records]
        if results:
            self.model.update(self.context, [self.candidate_at(one.point) for one in records], results)

    def post_tuning(self) -> None:
        self.candidates.clear()

    def generate_measure_candidates(self) -> list[MeasureCandidate] | None:
        """The next batch; None when the budget is used up, every point has been tried, or the search has
        failed."""
        return self.trials.guarded(self.next_batch)

    def next_batch(self) -> list[MeasureCandidate] | None:
        """The oldest batch under way, once others are under way as well. None when all have been returned."""
        while self.left and len(self.under_way) + self.size <= self.window:
            self.begin(self.chosen(min(self.size, self.left)))
        return self.under_way.oldest(self.size) or None

    @property
    def left(self) -> int:
        """How many may still be chosen."""
        return 0 if self.trials.failure or self.used_up else max(0, self.trials.budget - len(self.taken))

    def begin(self, points: list[Point]) -> None:
        """Have candidates evaluated."""
        self.used_up = not points
        self.taken |= set(map(key, points))
        for point in points:
            self.under_way.begin(self.candidate_at(point), point)

    def notify_runner_results(
        self, measure_candidates: list[MeasureCandidate], results: list[RunnerResult]
    ) -> None:
        """Take account of results, which Trials have already."""
        names = [key(point_in(candidate.sch.mod)) for candidate in measure_candidates]
        self.known |= {name: self.trials.records[name] for name in names if name in self.trials.records}

    def clone(self) -> SearchStrategy:
        raise NotImplementedError("one search has one strategy")

    def candidate_at(self, point: Point) -> MeasureCandidate:
        name = key(point)
        if name not in self.candidates:
            self.candidates[name] = candidate(self.trials.space, point, self.trials.workload)
        return self.candidates[name]

    def chosen(self, count: int) -> list[Point]:
        """At most so many points that have not been tried, best first."""
        if self.model.booster is None or len(self.known) < WARM_UP:
            known = [point for point in self.known_good() if key(point) not in self.taken][:count]
            return known + self.fresh(count - len(known), set(map(key, known)))
        pool = self.descendants()
        ranked = sorted(pool, key=lambda name: -self.scores[name])[: count - math.ceil(FRESH * count)]
        fresh = self.score(self.fresh(count - len(ranked), set(ranked)))
        return [pool[name] for name in ranked] + list(fresh.values())

    def known_good(self) -> list[Point]:
        """The rung's own configurations and what was best for other shapes, where valid for this one."""
        space = self.trials.space
        points = space.by_hand() + self.trials.best_elsewhere()
        valid = [point for point in points if not space.refusal(point, *self.task)]
        return list({key(point): point for point in valid}.values())

    def descendants(self) -> dict[str, Point]:
        """Points that have not been tried, by key, of some generations.

        The parents of the first are the fastest trials, those of the next what the model then ranks highest.
        """
        parents = [record.point for record in fastest(self.known.values(), ELITES)]
        pool: dict[str, Point] = {}
        for _ in range(GENERATIONS):
            children = {key(child): child for child in (self.child(parents) for _ in range(CHILDREN))}
            pool |= self.score(
                [child for name, child in children.items() if name not in self.taken | pool.keys()]
            )
            highest = sorted(pool, key=lambda name: -self.scores[name])[:ELITES]
            parents = [pool[name] for name in highest] or parents
        return pool

    def child(self, parents: Sequence[Point]) -> Point:
        """A random point, a mutation of a parent, or a crossover of two."""
        space, draw = self.trials.space, self.rng.random()
        if draw < FRESH or not parents:
            return space.sample(self.rng, *self.task)
        if draw < (1 + FRESH) / 2:
            return space.mutate(self.rng.choice(parents), self.rng, *self.task)
        return space.crossover(self.rng.choice(parents), self.rng.choice(parents), self.rng, *self.task)

    def fresh(self, count: int, besides: set[str]) -> list[Point]:
        """Random points that have not been tried. besides: keys of others to leave out."""
        found: dict[str, Point] = {}
        drawn = (self.trials.space.sample(self.rng, *self.task) for _ in range(ATTEMPTS * count))
        for point in chain(drawn, self.trials.space.points(*self.task)):
            if len(found) >= count:
                break
            if key(point) not in self.taken | besides:
                found[key(point)] = point
        return list(found.values())

    def score(self, points: Sequence[Point]) -> dict[str, Point]:
        """The points by key; `scores` has what the model says of them."""
        named = {key(point): point for point in points}
        if named:
            candidates = [self.candidate_at(point) for point in named.values()]
            self.scores |= zip(named, self.model.predict(self.context, candidates).tolist())
        return named
