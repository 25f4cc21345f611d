"""The clock of the GPU while it is timed: what NVML tells of it, of power and of reasons to slow down, and
what the SMs count themselves.

NVML tells a clock that it reads every few milliseconds, and says 1980 MHz of an H200 whose power limit has
long lowered it. So a thread on each SM notes the cycles of the SM and the nanoseconds of the GPU, before a
sample and behind it, outside the events that time it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Callable, Iterable

from tir_schedules.files import Json
from tir_schedules.machines.gpu import Call, GpuMachine
from tir_schedules.model.kernel import Binary, Kernel, Resources

REASONS = {
    0x04: "power cap",
    0x08: "hardware slowdown",
    0x20: "software thermal",
    0x40: "hardware thermal",
    0x80: "hardware power brake",
}
"""NVML's bits of clocks event reasons that make a measurement doubtful; an idle GPU and chosen clocks do
not."""


@dataclass(frozen=True)
class Reading:
    """One look at the GPU: clock of the SMs, power, what holds the clock down. None is what NVML
    does not tell."""

    sm_mhz: int | None
    power_w: float | None
    throttled: tuple[str, ...] | None


class Monitor:
    """Reads one GPU. nvml: the pynvml module. handle: NVML's of the GPU."""

    def __init__(self, nvml: Any, handle: Any):
        self.nvml, self.handle = nvml, handle

    def read(self) -> Reading | None:
        return Reading(
            self.ask(lambda: self.nvml.nvmlDeviceGetClockInfo(self.handle, self.nvml.NVML_CLOCK_SM)),
            self.ask(lambda: self.nvml.nvmlDeviceGetPowerUsage(self.handle) / 1000),
            self.ask(lambda: names_of(self.reasons(self.handle))),
        )

    @property
    def reasons(self) -> Callable[[Any], int]:
        """NVML's question for the reasons, under its newer or its older name."""
        newer = getattr(self.nvml, "nvmlDeviceGetCurrentClocksEventReasons", None)
        return newer or self.nvml.nvmlDeviceGetCurrentClocksThrottleReasons

    def ask(self, question: Callable[[], Any]) -> Any:
        """The answer, or None where this GPU or driver has none."""
        try:
            return question()
        except self.nvml.NVMLError:
            return None


class NoMonitor:
    """In place of a Monitor where NVML is missing."""

    def read(self) -> None:
        return None


def open_monitor(bus_id: str) -> Monitor | NoMonitor:
    """A monitor of the GPU at a PCI bus address such as "0000:17:00.0", or of the first one where NVML does
    not know that address."""
    try:
        import pynvml  # pyright: ignore[reportMissingImports] (of the extra `gpu`)
    except ImportError:
        return NoMonitor()
    try:
        pynvml.nvmlInit()
        try:
            return Monitor(pynvml, pynvml.nvmlDeviceGetHandleByPciBusId(bus_id))
        except pynvml.NVMLError:
            return Monitor(pynvml, pynvml.nvmlDeviceGetHandleByIndex(0))
    except pynvml.NVMLError:
        return NoMonitor()


def names_of(bits: int) -> tuple[str, ...]:
    """Names of the reasons that are set and matter."""
    return tuple(name for bit, name in REASONS.items() if bits & bit)


def summary(readings: Iterable[Reading | None]) -> Json:
    """The part of a row of results that readings give: clock's range, greatest power, every reason met; what
    NVML never told is absent."""
    readings = [reading for reading in readings if reading]
    clocks = [reading.sm_mhz for reading in readings if reading.sm_mhz is not None]
    powers = [reading.power_w for reading in readings if reading.power_w is not None]
    reasons = [reading.throttled for reading in readings if reading.throttled is not None]
    facts: Json = {}
    if clocks:
        facts["sm_mhz"] = [min(clocks), max(clocks)]
    if powers:
        facts["power_w"] = round(max(powers), 1)
    if reasons:
        facts["throttled"] = [name for name in REASONS.values() if any(name in met for met in reasons)]
    return facts


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
