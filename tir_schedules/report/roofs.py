"""The roofline of a report: the most a GPU can do, and where rungs stand under it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Mapping

from tir_schedules.bench.views import Group, Row
from tir_schedules.insight.metrics.counting import GLOBAL_LOADS, GLOBAL_STORES, SECTOR
from tir_schedules.insight.metrics.roofline import GPUS, Gpu
from tir_schedules.ladders.known import ladder_of, workload_class
from tir_schedules.model.ladder import TFLOPS
from tir_schedules.model.workload import Workload
from tir_schedules.report.counted import Counted
from tir_schedules.report.recorded import Document
from tir_schedules.subjects.results import device_name


@dataclass(frozen=True)
class Roofs:
    """peak: TFLOPS, None where it is not known for this arithmetic. bandwidth: GB/s. source: of both, in
    words."""

    peak: float | None
    bandwidth: float
    source: str

    @property
    def ridge(self) -> float:
        """Arithmetic intensity (flop/byte) from which on arithmetic is the limit."""
        return self.peak * 1e3 / self.bandwidth if self.peak else float("inf")

    def limit(self, intensity: float) -> float:
        """TFLOPS at most at an arithmetic intensity (flop/byte of device memory)."""
        return min(intensity * self.bandwidth / 1e3, self.peak or float("inf"))


@dataclass(frozen=True)
class Point:
    """label: a rung or a size. intensity: flop/byte. rate: TFLOPS."""

    label: str
    intensity: float
    rate: float


def roofs_of(group: Group, document: Document) -> Roofs | None:
    """Measured copy bandwidth, and the peak of the group's arithmetic; None without a measured bandwidth."""
    limits = {limit["name"]: limit for limit in document["limits"]}
    copy = limits.get("copy bandwidth")
    if not copy or not copy["rate"]:
        return None
    sources = [f"copy bandwidth measured, {copy['rate']:.0f} {copy['unit']}"]
    peak, ladder = None, ladder_of(group.family)
    if ladder.limit in limits and limits[ladder.limit]["unit"] == TFLOPS:
        peak = limits[ladder.limit]["rate"]
        sources.append(f"{ladder.limit} from the clock seen, {peak:.1f} TFLOPS")
    elif not ladder.limit and (gpu := datasheet(device_name(document))):
        peak = gpu.peak(workload_of(next(iter(group.cells.values()))))
        sources.append(f"tensor cores' peak from the datasheet of the {gpu.name}, {peak:.0f} TFLOPS")
    return Roofs(peak, copy["rate"], "; ".join(sources))


def datasheet(device: str) -> Gpu | None:
    """The figures of a GPU as its driver names it ("NVIDIA H200"), or None."""
    words = re.findall(r"[a-z0-9]+", device.lower())
    pairs = map("".join, zip(words, words[1:]))
    return next((GPUS[word] for word in [*pairs, *words] if word in GPUS), None)


def workload_of(row: Row) -> Workload:
    return workload_class(row["family"])(**row["workload"])


def tflops(row: Row) -> float:
    return workload_of(row).flops / row["median_us"] / 1e6


def best_schedules(group: Group) -> list[Point]:
    """The fastest schedule at each size, by the compulsory bytes."""
    points = []
    for size in group.sizes:
        rows = [row for (_, form, at), row in group.cells.items() if (form, at) == ("schedule", size)]
        if rows:
            row = min(rows, key=lambda row: row["median_us"])
            workload = workload_of(row)
            points.append(Point(size, workload.flops / workload.bytes, tflops(row)))
    return points


def rungs_at_largest(group: Group, counted: Mapping[tuple[str, str], Counted]) -> list[Point]:
    """Schedules at the largest size, by the bytes that their accesses ask of the L1 cache; only those that
    the CPU machine counted."""
    points = []
    for name in group.names:
        row, kernel = group.cells.get((name, "schedule", group.sizes[-1])), counted.get((name, "schedule"))
        if row and kernel:
            moved = SECTOR * kernel.access(*GLOBAL_LOADS, *GLOBAL_STORES).cost
            points.append(Point(name, kernel.subject.workload.flops / moved, tflops(row)))
    return points
