"""Processes that build candidates, several at a time: TVM lowers in one thread only, and much of the CPU
machine's work is Python.

    python -m tir_schedules.tuning.building.workers

reads pickled arguments of `build`, one after another, and writes the candidate that it returns, or the error
that it raises, and what that took.
"""

from __future__ import annotations

import os
from typing import Sequence

from tir_schedules.errors import TirSchedulesError
from tir_schedules.model.rung import Rung
from tir_schedules.model.workload import Workload
from tir_schedules.tuning.building.candidate import Candidate, Unbuilt, build
from tir_schedules.tuning.building.hosts import Host
from tir_schedules.tuning.building.pool import Ended, Place, Pool, answering
from tir_schedules.tuning.records.timesheet import AWAITING_BUILDER, Timesheet

MOST = 16
"""Workers for each GPU, on a computer with many cores: each holds a TVM in memory."""

ONE_THREAD: dict[str, str] = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"
)

Answer = tuple[Candidate | Exception, dict[str, float]]
"""What was built, or why not; and the seconds it took, by what on."""


def builders_for(gpus: int = 1) -> int:
    """How many candidates to build at a time, for so many GPUs that measure them."""
    return max(gpus, min(os.cpu_count() or 1, MOST * gpus))


class Workers(Pool):
    """So many processes that build, here or one on each of `hosts`. What their time is spent on is added to
    `spent`."""

    def __init__(self, count: int, spent: Timesheet, hosts: Sequence[Host] = ()) -> None:
        places = [Place(ONE_THREAD, host) for host in hosts] or [Place(ONE_THREAD) for _ in range(count)]
        super().__init__(__name__, places, spent, AWAITING_BUILDER)

    def build(self, rung: Rung, workload: Workload, arch: str) -> Candidate:
        """As candidate.build. Unbuilt when the process ends without an answer or meets a bug."""
        try:
            found, took = self.ask((rung, workload, arch))
        except Ended as error:
            raise Unbuilt(
                f"{rung.id}: the process that builds it ended without an answer ({error})"
            ) from None
        for what, seconds in took.items():
            self.spent.add(what, seconds)
        if isinstance(found, Exception):
            raise found
        return found


def answer(request: tuple[Rung, Workload, str]) -> Answer:
    """What is built, or the error: Unbuilt for an unforeseen one."""
    spent = Timesheet()
    try:
        found = build(*request, spent)
    except TirSchedulesError as error:
        found = error
    except Exception as error:
        found = Unbuilt(f"it cannot be built: {type(error).__name__}: {error}")
    return found, spent.seconds


def unread(error: Exception) -> Answer:
    return Unbuilt(f"it cannot be loaded: {error}"), {}


if __name__ == "__main__":
    answering(answer, unread)
