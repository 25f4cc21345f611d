"""Candidates under way, and what MetaSchedule takes for its builder and runner: by the time it asks them for
a result, the search has waited for it."""

from __future__ import annotations

import time
from collections import deque
from concurrent.futures import Executor, Future
from typing import TYPE_CHECKING, Any, Callable, Iterable, Sequence, cast

from tvm.ir.utils import derived_object
from tvm.s_tir.meta_schedule.builder import BuilderResult, PyBuilder
from tvm.s_tir.meta_schedule.runner import LocalRunnerFuture, PyRunner

from tir_schedules.tuning.search.metaschedule import point_in
from tir_schedules.tuning.search.trials import Trials
from tir_schedules.tuning.space.points import Point, key

if TYPE_CHECKING:
    from tvm.s_tir.meta_schedule import MeasureCandidate
    from tvm.s_tir.meta_schedule.builder import BuilderInput
    from tvm.s_tir.meta_schedule.runner import RunnerFuture, RunnerInput

Seconds = Sequence[float] | None
REFUSED = "refused, see the record"


class UnderWay:
    """Candidates that are being evaluated, in the order in which they were chosen.

    Each is evaluated in a thread of `pool`, and recorded as soon as it is done. stored: makes of a point what
    MetaSchedule would store of its result. results: by key of a point, those that were waited for. awaited:
    seconds of waiting.
    """

    def __init__(self, trials: Trials, pool: Executor, stored: Callable[[Point], list[Any]]) -> None:
        self.trials, self.pool, self.stored = trials, pool, stored
        self.queue: deque[tuple[MeasureCandidate, str, Future[Seconds]]] = deque()
        self.results: dict[str, Seconds] = {}
        self.begun, self.awaited = 0, 0.0

    def __len__(self) -> int:
        return len(self.queue)

    def begin(self, candidate: MeasureCandidate, point: Point) -> None:
        work = self.pool.submit(self.seconds, point, self.stored(point))
        self.queue.append((candidate, key(point), work))
        self.begun += 1

    def oldest(self, count: int) -> list[MeasureCandidate]:
        """At most so many, those that were chosen first; they are done when this returns."""
        start, found = time.monotonic(), []
        for _ in range(min(count, len(self.queue))):
            candidate, name, work = self.queue.popleft()
            self.results[name] = work.result()
            found.append(candidate)
        self.awaited += time.monotonic() - start
        return found

    def seconds(self, point: Point, stored: list[Any]) -> Seconds:
        """What the evaluator finds, which is recorded at once; None when it refuses the candidate."""
        trials, task = self.trials, (self.trials.workload, self.trials.arch)
        found = trials.attempt(point, lambda: trials.evaluator.evaluate(trials.space.rung_at(point), *task))
        if found is None:
            return None
        trials.guarded(lambda: trials.add(point, found.seconds, "", found.source, stored), even_then=True)
        return found.seconds


@derived_object
class Builder(PyBuilder):
    """Hands on the key of a candidate's point as the path of an artifact."""

    def build(self, build_inputs: list[BuilderInput]) -> list[BuilderResult]:
        """Results come in the order of the inputs."""
        return [BuilderResult(key(point_in(build_input.mod)), None) for build_input in build_inputs]


def futures(answers: Iterable[Seconds]) -> list[RunnerFuture]:
    """Answers as a runner returns them."""
    done = (LocalRunnerFuture(list(each)) if each else LocalRunnerFuture(None, REFUSED) for each in answers)
    return cast("list[RunnerFuture]", [*done])  # derived_object hides its base


@derived_object
class Runner(PyRunner):
    """results: key of a point -> what its candidate took."""

    def __init__(self, results: dict[str, Seconds]) -> None:
        super().__init__()
        self.results = results

    def run(self, runner_inputs: list[RunnerInput]) -> list[RunnerFuture]:
        """All are done when it returns."""
        return futures(self.results.pop(str(runner_input.artifact_path)) for runner_input in runner_inputs)
