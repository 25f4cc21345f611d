"""MetaSchedule's builder and runner: one starts the evaluation of a candidate, the other waits for it."""

from __future__ import annotations

from concurrent.futures import Executor, Future
from typing import TYPE_CHECKING, Any, Callable, Iterable, Sequence, cast

from tvm.ir.utils import derived_object
from tvm.s_tir.meta_schedule.builder import BuilderResult, PyBuilder
from tvm.s_tir.meta_schedule.runner import PyRunner, PyRunnerFuture, RunnerResult

from tir_schedules.tuning.search.metaschedule import point_in
from tir_schedules.tuning.search.trials import Trials
from tir_schedules.tuning.space.points import Point, key

if TYPE_CHECKING:
    from tvm.s_tir.meta_schedule.builder import BuilderInput
    from tvm.s_tir.meta_schedule.runner import RunnerFuture, RunnerInput

Seconds = Sequence[float] | None
REFUSED = "refused, see the record"


@derived_object
class Builder(PyBuilder):
    """Hands each candidate to the evaluator of the trials, in a thread of `pool`.

    What it hands on as the path of an artifact is the key of a point in `pending`. stored: makes of a point
    what MetaSchedule would store of its result.
    """

    def __init__(self, trials: Trials, pool: Executor, stored: Callable[[Point], list[Any]]) -> None:
        super().__init__()
        self.trials, self.pool, self.stored = trials, pool, stored
        self.pending: dict[str, Future[Seconds]] = {}

    def build(self, build_inputs: list[BuilderInput]) -> list[BuilderResult]:
        """Results come in the order of the inputs."""
        points = [point_in(build_input.mod) for build_input in build_inputs]
        for point in points:
            self.pending[key(point)] = self.pool.submit(self.seconds, point, self.stored(point))
        return [BuilderResult(key(point), None) for point in points]

    def seconds(self, point: Point, stored: list[Any]) -> Seconds:
        """What the evaluator finds, which is recorded at once; None when it refuses the candidate."""
        trials, task = self.trials, (self.trials.workload, self.trials.arch)
        found = trials.attempt(point, lambda: trials.evaluator.evaluate(trials.space.rung_at(point), *task))
        if found is None:
            return None
        trials.guarded(lambda: trials.add(point, found.seconds, "", found.source, stored), even_then=True)
        return found.seconds


@derived_object
class Done(PyRunnerFuture):
    """An answer that is there."""

    def __init__(self, seconds: Seconds) -> None:
        super().__init__()
        self.seconds = seconds

    def done(self) -> bool:
        return True

    def result(self) -> RunnerResult:
        return RunnerResult(list(self.seconds), None) if self.seconds else RunnerResult(None, REFUSED)


def futures(answers: Iterable[Seconds]) -> list[RunnerFuture]:
    """Answers as a runner returns them."""
    return cast("list[RunnerFuture]", [Done(seconds) for seconds in answers])  # derived_object hides its base


@derived_object
class Runner(PyRunner):
    """pending: key of a point -> the work on it, which the builder started."""

    def __init__(self, trials: Trials, pending: dict[str, Future[Seconds]]) -> None:
        super().__init__()
        self.trials, self.pending = trials, pending

    def run(self, runner_inputs: list[RunnerInput]) -> list[RunnerFuture]:
        """All are done when it returns."""
        work = [self.pending.pop(str(runner_input.artifact_path)) for runner_input in runner_inputs]
        found = self.trials.guarded(lambda: [each.result() for each in work])
        return futures(found or [None] * len(work))
