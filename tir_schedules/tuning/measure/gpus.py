"""Several GPUs, of this computer or of others, a process for each.

    python -m tir_schedules.tuning.measure.gpus

reads pickled subjects and whether they are to be compared, one request after another, and writes what the GPU
that it sees took for each of them. It takes no more requests after a kernel that left the GPU unusable.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Sequence, cast

from tir_schedules.errors import CheckFailed, TirSchedulesError, one_line
from tir_schedules.subjects.subject import Subject
from tir_schedules.tuning.building.candidate import Unbuilt
from tir_schedules.tuning.building.pool import Ended, Late, Place, Pool, Useless, answering
from tir_schedules.tuning.measure.gpu_timing import Timed, policy_for, time_together
from tir_schedules.tuning.records.timesheet import AWAITING_GPU, TIMED, Timesheet

if TYPE_CHECKING:
    from tir_schedules.machines.gpu import GpuMachine

ATTEMPTS = 2
"""How often subjects are timed whose process ends: a second time it is their own fault."""

SECONDS = 120
"""What timing may take; the process is then killed."""

Request = tuple[Sequence[Subject], bool]


class Gpus(Pool):
    """So many processes that time. What their time is spent on is added to `spent`."""

    def __init__(self, places: Sequence[Place], spent: Timesheet) -> None:
        super().__init__(__name__, places, spent, AWAITING_GPU, TIMED, SECONDS)

    def timed(self, subjects: Sequence[Subject], together: bool) -> list[Timed]:
        """Samples of each, from the next GPU that is free. CheckFailed when they end its process, Unbuilt
        when the fault may be the computer's, Lost when none of the GPUs can be used."""
        reason = ""
        for _ in range(ATTEMPTS):
            try:
                found = self.ask((subjects, together))
            except Late as error:
                raise CheckFailed(str(error)) from None
            except Ended as error:
                reason = f"the GPU's process ended ({error})"
                continue
            if isinstance(found, Exception):
                raise found
            return found
        raise CheckFailed(f"{reason}, {ATTEMPTS} times")


class Session:
    """What the process holds: its GPU, from the first request on. lost: whether it can use that no more."""

    machine: GpuMachine | None = None
    lost = False

    def answer(self, request: Request) -> list[Timed] | Exception:
        from tir_schedules.machines.choice import choose

        subjects, together = request
        try:
            self.machine = self.machine or cast("GpuMachine", choose("gpu"))
        except Exception as error:
            return Useless(f"GPU {os.environ['CUDA_VISIBLE_DEVICES']} cannot be used: {one_line(error)}")
        try:
            return time_together(subjects, self.machine, policy_for(together))
        except CheckFailed as error:
            return error
        except Exception as error:
            self.lost = True
            kind = "" if isinstance(error, TirSchedulesError) else f"{type(error).__name__}: "
            return Unbuilt(one_line(f"{kind}{error}"))
        finally:
            self.lost |= bool(self.machine.broken)


if __name__ == "__main__":
    session = Session()
    answering(session.answer, lambda error: Unbuilt(one_line(error)), lambda: session.lost)
