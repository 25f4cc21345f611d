"""What has been tried of a space on one workload. Every result goes into the database at once."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any, Callable, Iterable, Sequence, TypeVar

from tir_schedules.errors import CheckFailed, TooLarge, one_line
from tir_schedules.model.workload import Workload
from tir_schedules.provenance import git_revision
from tir_schedules.tuning.building.candidate import Unbuilt
from tir_schedules.tuning.measure.evaluator import Evaluator
from tir_schedules.tuning.measure.gpu_timing import Timed
from tir_schedules.tuning.records.database import Database, best, shipped_records
from tir_schedules.tuning.records.journal import canonical
from tir_schedules.tuning.records.record import Record, Task, versions_now
from tir_schedules.tuning.space.points import Point, Space, key

ENOUGH = 4
"""Candidates at the start of a run that cannot be built: so many are not a fault of their own."""

Result = TypeVar("Result")


class Trials:
    """Results of one task: those that the database has of it, and those of this run. Safe to use from several
    threads.

    evaluator: gives the seconds of a candidate; records of another kind, device or architecture are of
    another task. budget: records the task is to have in the end. on_trial: called with each new record.
    passed_over: by key of their point, why candidates were not built that may well be right; a later run
    tries them again. failure: the error that ends the search; its caller raises it.
    """

    def __init__(
        self,
        space: Space,
        workload: Workload,
        arch: str,
        database: Database,
        evaluator: Evaluator,
        budget: int,
        on_trial: Callable[[Record], None],
    ) -> None:
        self.space, self.workload, self.arch, self.evaluator = space, workload, arch, evaluator
        self.database, self.budget, self.on_trial = database, budget, on_trial
        self.task = Task.of(space.rung, workload, arch, evaluator.device, evaluator.kind)
        self.versions, self.revision = versions_now(), git_revision()
        known = [record for record in database.records() if self.is_of_space(record)]
        self.records = {key(record.point): record for record in known if record.task == self.task}
        self.others = [*filter(self.is_of_space, shipped_records(evaluator.device)), *known]
        self.earlier = len(self.records)
        self.passed_over: dict[str, str] = {}
        self.failure: BaseException | None = None
        self.lock = threading.Lock()

    def is_of_space(self, record: Record) -> bool:
        """Whether its point is of this space, not of one that it was earlier."""
        return record.rung == self.task.rung and record.point.keys() == self.space.fields.keys()

    @property
    def left(self) -> int:
        """How many more there may be; none once something failed."""
        return 0 if self.failure else max(0, self.budget - len(self.records) - len(self.passed_over))

    def best(self, count: int) -> list[Record]:
        """The fastest so far, fastest first; fewer where fewer were timed."""
        return fastest(self.records.values(), count)

    def best_elsewhere(self) -> list[Point]:
        """The fastest of each other shape that there are records of, own or shipped."""
        shapes = {canonical(record.workload): record.workload for record in self.others}
        tasks = (replace(self.task, workload=workload) for workload in shapes.values())
        found = (best(self.others, **vars(task)) for task in tasks if task != self.task)
        return [record.point for record in found if record]

    def add(
        self,
        point: Point,
        seconds: Sequence[float] = (),
        error: str = "",
        source: str = "",
        metaschedule: list[Any] | None = None,
    ) -> None:
        """Record a result, or why there is none. source: sha256 of the CUDA emitted for the workload.

        metaschedule: see metaschedule.tuning_record.
        """
        with self.lock:
            record = Record(
                **vars(self.task),
                versions=self.versions,
                revision=self.revision,
                date=now(),
                trial=len(self.records),
                point=point,
                seconds=tuple(seconds),
                error=error,
                source=source,
                metaschedule=set_seconds(metaschedule, seconds),
            )
            self.database.append(record)
            self.records[key(point)] = record
        self.on_trial(record)

    def settle(self, record: Record, found: Timed) -> None:
        """Record another result of a candidate, which takes the place of the first."""
        refused = isinstance(found, CheckFailed)
        seconds, error = ((), one_line(found)) if refused else (found, "")
        again = replace(
            record,
            versions=self.versions,
            revision=self.revision,
            date=now(),
            seconds=seconds,
            error=error,
            metaschedule=set_seconds(record.metaschedule, seconds),
        )
        self.database.append(again)
        self.records[key(record.point)] = again

    def attempt(self, point: Point, action: Callable[[], Result]) -> Result | None:
        """What the action returns. None when it fails: a kernel that is found wrong is recorded, one that is
        not built is passed over, any other error ends the search."""

        def recorded() -> Result | None:
            try:
                return action()
            except Unbuilt as error:
                self.pass_over(point, error)
                return None
            except (CheckFailed, TooLarge) as error:
                self.add(point, error=one_line(error))
                return None

        return self.guarded(recorded)

    def pass_over(self, point: Point, error: Unbuilt) -> None:
        """CheckFailed, which ends the search, when all of this run's first candidates fail to build: then the
        fault is not in them."""
        self.passed_over[key(point)] = reason = one_line(error)
        if len(self.passed_over) >= ENOUGH and len(self.records) == self.earlier:
            raise CheckFailed(
                f"the first {len(self.passed_over)} candidates cannot be built, so the search ends; the last:"
                f" {reason}"
            )

    def guarded(self, action: Callable[[], Result], even_then: bool = False) -> Result | None:
        """What the action returns; None when an error ends the search, or has ended it.

        TVM's loop, which called, then ends in order.

        even_then: do it also when the search has ended.
        """
        try:
            return None if self.failure and not even_then else action()
        except BaseException as error:
            self.failure = self.failure or error
            return None


def fastest(records: Iterable[Record], count: int) -> list[Record]:
    """So many of the records that have seconds, fastest first."""
    timed = [record for record in records if record.seconds]
    return sorted(timed, key=lambda record: record.median)[:count]


def set_seconds(metaschedule: list[Any] | None, seconds: Sequence[float]) -> list[Any] | None:
    """A result as MetaSchedule has it, [trace, seconds, target, arguments], with other seconds."""
    return [metaschedule[0], list(seconds), *metaschedule[2:]] if metaschedule and seconds else None


def now() -> str:
    """UTC, as records have it."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
