"""What a candidate costs: seconds measured on a GPU by the benchmark's timer, or predicted from what the CPU machine counts."""
from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Sequence

from tvm.ir.utils import derived_object
from tvm.s_tir.meta_schedule.runner import PyRunner, PyRunnerFuture, RunnerResult

from tir_schedules.bench.sampling import Policy
from tir_schedules.bench.subjects import Subject
from tir_schedules.errors import CheckFailed
from tir_schedules.tuning.building import Built, built
from tir_schedules.tuning.prediction import predicted_seconds
from tir_schedules.tuning.records import MEASURED, PREDICTED, device_of
from tir_schedules.tuning.space import Point
from tir_schedules.tuning.trials import Trials

POLICY = Policy(settle_s=0.5, max_samples=9, precision=0.01, budget_s=1.0)
"""Shorter than the benchmark's: a search compares candidates, and its winners are timed anew."""


class Predicting:
    """Without a GPU. A timer has a kind and a device, as records have them, and how many kernels it takes at a time; built(emitted) gives
    what seconds(...) is asked of. CheckFailed from either when a kernel is refused."""

    kind, device, at_once = PREDICTED, device_of(), 1
    built = staticmethod(built)

    def seconds(self, candidate: Built) -> tuple[float, ...]:
        return (predicted_seconds(candidate),)


class Measuring:
    """On a GPU machine, one kernel at a time."""

    kind, at_once = MEASURED, 1
    built = staticmethod(built)

    def __init__(self, machine: Any):
        self.machine, self.device = machine, device_of(machine)

    def seconds(self, candidate: Built) -> tuple[float, ...]:
        """Of the whole workload, on which it is verified again."""
        return timed(subject_of(candidate), self.machine)


def subject_of(candidate: Built) -> Subject:
    """A candidate as the benchmark has it."""
    rung = candidate.emitted.rung
    return Subject(rung.family, rung.id, "schedule", candidate.emitted.workload, (candidate.binary,))


def timed(subject: Subject, machine: Any, policy: Policy = POLICY) -> tuple[float, ...]:
    """Samples in seconds of a subject on a GPU machine, which verifies it before and after. CheckFailed when it refuses it."""
    from tir_schedules.bench.clocks import open_monitor
    from tir_schedules.bench.measure import Bench
    from tir_schedules.bench.vendor import Vendors

    bench = Bench(machine, policy, lambda what: None, Vendors(machine, None), open_monitor(machine.bus_id))
    rows, refused = bench.measure_workload([subject])
    if not rows:
        raise CheckFailed(refused[0]["reason"])
    return tuple(sample / 1e6 for sample in rows[0]["samples_us"])


def timer_for(machine: Any) -> Any:
    """The timer of a machine: a GPU measures, without one there are predictions."""
    return Measuring(machine) if machine is not None and machine.name == "gpu" else Predicting()


@derived_object
class Done(PyRunnerFuture):
    """A result that is there."""

    def __init__(self, seconds: Sequence[float] | None):
        super().__init__()
        self.seconds = seconds

    def done(self) -> bool:
        return True

    def result(self) -> RunnerResult:
        return RunnerResult(list(self.seconds), None) if self.seconds else RunnerResult(None, "refused, see the record")


@derived_object
class Runner(PyRunner):
    """MetaSchedule's runner: asks the timer of the trials, and records the answer at once.

    built: key of a point -> what the timer made of it, which the builder fills. record: makes of a point and seconds what MetaSchedule would store.
    """

    def __init__(self, trials: Trials, built: dict[str, Built], record: Callable[[Point, Sequence[float]], Any]):
        super().__init__()
        self.trials, self.built, self.record = trials, built, record

    def run(self, runner_inputs: Sequence[Any]) -> list[Done]:
        """All are done when it returns."""
        names = [str(runner_input.artifact_path) for runner_input in runner_inputs]
        at_once = self.trials.timer.at_once
        with ThreadPoolExecutor(at_once) as pool:
            each = pool.map if at_once > 1 else map
            found = self.trials.guarded(lambda: list(each(self.seconds, names)))
        return [Done(seconds) for seconds in found or [None] * len(names)]

    def seconds(self, name: str) -> Sequence[float] | None:
        """Of a built point, which is then forgotten; None when it is refused."""
        kernels, point = self.built.pop(name), json.loads(name)
        source = kernels.emitted.source
        found = self.trials.attempt(point, lambda: self.trials.timer.seconds(kernels), source)
        if found:
            self.trials.guarded(lambda: self.trials.add(point, found, source=source, metaschedule=self.record(point, found)))
        return found
