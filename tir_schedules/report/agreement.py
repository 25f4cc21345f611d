"""What the CPU machine predicted beside what Nsight Compute counted, launch by launch, from recorded
counters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tir_schedules.insight.profile.nsight import DATA_PIPE, NAMES, NOISE, Comparison, comparisons
from tir_schedules.ladders.registry import FAMILIES
from tir_schedules.report.recorded import Document, origin

SHOWN = tuple(metric for metric in NAMES if not metric.startswith(DATA_PIPE))
"""Counters of what instructions asked for; those of the data pipe, which count other traffic too, are only
summed up."""


@dataclass(frozen=True)
class Launch:
    """label: "sgemm/naive (schedule)". kind: of its workload, in words. counters: by Nsight Compute's
    metric."""

    family: str
    label: str
    kind: str
    counters: dict[str, Comparison]

    @property
    def equal(self) -> bool:
        return all(self.counters[metric].difference == 0 for metric in SHOWN)


@dataclass(frozen=True)
class Line:
    """One counter over all launches: how many are equal, unequal within the noise, and beyond it; the largest
    difference; reasons given."""

    name: str
    equal: int
    noisy: int
    beyond: int
    worst: float
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Agreement:
    """Launches in the order of the ladders, of each ladder those recorded last; and where they come from."""

    launches: list[Launch]
    origins: list[str]

    @property
    def equal(self) -> int:
        """How many launches have every counter of what instructions asked for as predicted."""
        return sum(launch.equal for launch in self.launches)

    def of(self, family: str) -> list[Launch]:
        return [launch for launch in self.launches if launch.family == family]

    def lines(self) -> list[Line]:
        return [
            line_of(name, [launch.counters[metric] for launch in self.launches])
            for metric, name in NAMES.items()
        ]


def line_of(name: str, found: list[Comparison]) -> Line:
    sizes = [abs(one.difference) for one in found]
    equal, beyond = sum(size == 0 for size in sizes), sum(size > NOISE for size in sizes)
    reasons = dict.fromkeys(one.reason or "not explained" for one, size in zip(found, sizes) if size > NOISE)
    return Line(name, equal, len(found) - equal - beyond, beyond, max(sizes), tuple(reasons))


def agreement_of(documents: tuple[Document, ...]) -> Agreement:
    """From files of counters, in the order of their dates; single accesses, which are probes, are left
    out."""
    latest: dict[str, tuple[Document, list[Launch]]] = {}
    for document in documents:
        launches = [
            launch_of(entry) for entry in document["kernels"] if "measured" in entry and "probe" not in entry
        ]
        for family in dict.fromkeys(launch.family for launch in launches):
            latest[family] = document, [launch for launch in launches if launch.family == family]
    families = [family for family in FAMILIES if family in latest]
    origins = list(dict.fromkeys(origin(latest[family][0]) for family in families))
    return Agreement([launch for family in families for launch in latest[family][1]], origins)


def launch_of(entry: dict[str, Any]) -> Launch:
    label = entry["label"]
    counters = {one.metric: one for one in comparisons(entry)}
    return Launch(
        label.partition("/")[0],
        label.replace("(tir)", "(schedule)"),
        kind_of(entry.get("workload") or {}),
        counters,
    )


def kind_of(workload: dict[str, Any]) -> str:
    """ "512x512x256 nt float16" of a recorded workload."""
    extents = "x".join(str(value) for value in workload.values() if isinstance(value, int))
    return " ".join([extents, *(value for value in workload.values() if isinstance(value, str))])
