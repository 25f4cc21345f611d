"""The clock of the SMs during a sample, by their own counters of cycles.

NVML tells a clock that it reads every few milliseconds, and says 1980 MHz of an H200 whose power limit has
long lowered it. Here a thread on each SM notes the SM's cycles and the GPU's nanoseconds, before a sample and
behind it, outside the events that time it.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from tir_schedules.machines.gpu import Call, GpuMachine
from tir_schedules.model.kernel import Binary, Kernel, Resources

SMS = 1024
"""More than a GPU has."""

BLOCKS = 4
"""For each SM, so that none is left out."""

PTX = """\
.version 6.0
.target sm_70
.address_size 64
.visible .entry note(.param .u64 notes)
{
    .reg .u32 %sm;
    .reg .u64 %at, %offset, %cycles, %nanoseconds;
    ld.param.u64 %at, [notes];
    mov.u32 %sm, %smid;
    mul.wide.u32 %offset, %sm, 16;
    add.u64 %at, %at, %offset;
    mov.u64 %cycles, %clock64;
    mov.u64 %nanoseconds, %globaltimer;
    st.global.v2.u64 [%at], {%cycles, %nanoseconds};
    ret;
}
"""


class Cycles:
    """Counts cycles between two points of a stream. notes: (2, SMS, 2), cycles and nanoseconds of each SM at
    both points."""

    def __init__(self, machine: GpuMachine) -> None:
        blocks = BLOCKS * machine.describe()["multiprocessors"]
        kernel = Kernel("note", PTX, "note", ("notes",), (blocks, 1, 1), (1, 1, 1), machine.arch)
        self.machine = machine
        self.binary = Binary(kernel, PTX, PTX.encode(), Resources(registers=0, shared=0))
        self.notes = machine.xp.zeros((2, SMS, 2), "int64")

    @property
    def points(self) -> tuple[Call, Call]:
        """What enqueues the noting of either point."""
        return partial(self.note, self.notes[0]), partial(self.note, self.notes[1])

    def note(self, notes: Any, stream: Any) -> None:
        """Enqueue the noting of one point."""
        self.machine.enqueue(self.binary, {"notes": notes}, stream)

    def mhz(self) -> float | None:
        """Cycles per microsecond between the points, the median of all SMs; None where none was noted."""
        passed = self.notes[1] - self.notes[0]
        passed = passed[passed[:, 1] > 0]
        return 1000 * float(self.machine.xp.median(passed[:, 0] / passed[:, 1])) if passed.size else None
