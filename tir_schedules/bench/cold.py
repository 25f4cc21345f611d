"""What one launch costs where nothing is ready for it, as programs meet it that launch small work now and
then: its data are not in the L2 cache, and the GPU was idle.

Rates of `bench` are of many launches in a row. What a subject launches, more than one kernel for a sum, is
one CUDA graph here, too, so that all are called in the same way, whoever wrote them.
"""

from __future__ import annotations

import time
from typing import Any

from tir_schedules.bench.binding import CACHES
from tir_schedules.bench.sampling import Trial
from tir_schedules.machines.gpu import Call, GpuMachine
from tir_schedules.subjects.subject import Subject

SAMPLES = 9
IDLE_S = 0.1
"""Seconds for which the GPU does nothing before a first launch."""

COPIES = 4
"""So many times the L2 cache is overwritten. It takes longer than this computer takes to enqueue a launch."""


class Cold:
    """Times single launches. It holds two arrays that together are CACHES times as large as the L2 cache."""

    def __init__(self, machine: GpuMachine) -> None:
        self.machine = machine
        self.source = machine.xp.zeros(CACHES * machine.l2_bytes // 2, "uint8")
        self.target = machine.xp.empty_like(self.source)
        self.calls: dict[Subject, Call] = {}

    def take(self, trial: Trial) -> bool:
        """Add to each of a trial's `single`, in seconds; True.

        cold: on the GPU, right after other work, the data not in the L2 cache. first: on this computer, from
        the call until all is done, after IDLE_S, so with all that a launch waits for.
        """
        if trial.subject not in self.calls:
            self.calls[trial.subject] = self.machine.capture(trial.kept[0].enqueue)
        call = self.calls[trial.subject]
        trial.single.setdefault("cold", []).append(self.machine.seconds(call, before=self.overwrite))
        self.machine.seconds(self.overwrite)
        time.sleep(IDLE_S)
        trial.single.setdefault("first", []).append(self.machine.elapsed(call))
        return True

    def overwrite(self, stream: Any) -> None:
        """Enqueue what leaves nothing of earlier work in the L2 cache."""
        for _ in range(COPIES):
            self.machine.copy(self.target, self.source, stream)
