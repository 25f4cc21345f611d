"""Recorded counters: what the CPU machine predicted beside what Nsight Compute counted, launch by launch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping

from tir_schedules.insight.profile.nsight import NAMES, NOISE, Comparison, Entry, comparisons
from tir_schedules.ladders.registry import FAMILIES
from tir_schedules.model.counters import DATA_PIPE
from tir_schedules.report.recorded import Document, origin

SHOWN = tuple(metric for metric in NAMES if not metric.startswith(DATA_PIPE))
"""Counters of what instructions ask for. Those of the data pipe count other traffic too: they are in the
summary only."""


@dataclass(frozen=True)
class ComparedLaunch:
    """label: "sgemm/naive (schedule)", and ", launch 2" for a further launch of it. kind: of its workload, in
    words. counters: by Nsight's metric."""

    family: str
    label: str
    kind: str
    counters: dict[str, Comparison]

    @property
    def equal(self) -> bool:
        return all(self.counters[metric].difference == 0 for metric in SHOWN)


@dataclass(frozen=True)
class CounterLine:
    """One counter over all launches: how many are equal, within the noise, and beyond it; the largest
    difference; the reasons."""

    name: str
    equal: int
    noisy: int
    beyond: int
    worst: float
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Agreement:
    """Launches in the order of the ladders, of each ladder the last recorded ones; and their origins."""

    launches: list[ComparedLaunch]
    origins: list[str]

    @property
    def equal(self) -> int:
        """How many launches have every counter in SHOWN as predicted."""
        return sum(launch.equal for launch in self.launches)

    def of(self, family: str) -> list[ComparedLaunch]:
        return [launch for launch in self.launches if launch.family == family]

    def lines(self) -> list[CounterLine]:
        return [
            line_of(name, [launch.counters[metric] for launch in self.launches])
            for metric, name in NAMES.items()
        ]


def line_of(name: str, found: list[Comparison]) -> CounterLine:
    sizes = [abs(one.difference) for one in found]
    equal, beyond = sum(size == 0 for size in sizes), sum(size > NOISE for size in sizes)
    reasons = dict.fromkeys(one.reason or "not explained" for one, size in zip(found, sizes) if size > NOISE)
    return CounterLine(name, equal, len(found) - equal - beyond, beyond, max(sizes), tuple(reasons))


def agreement_of(documents: tuple[Document, ...]) -> Agreement:
    """From files of counters, in the order of their dates; probes (single accesses) are left out."""
    latest: dict[str, tuple[Document, list[ComparedLaunch]]] = {}
    for document in documents:
        launches = [
            launch_of(entry) for entry in document["kernels"] if "measured" in entry and "probe" not in entry
        ]
        for family in dict.fromkeys(launch.family for launch in launches):
            latest[family] = document, [launch for launch in launches if launch.family == family]
    families = [family for family in FAMILIES if family in latest]
    origins = list(dict.fromkeys(origin(latest[family][0]) for family in families))
    return Agreement([launch for family in families for launch in latest[family][1]], origins)


def launch_of(entry: Entry) -> ComparedLaunch:
    label, number = entry["label"], entry.get("launch")
    counters = {one.metric: one for one in comparisons(entry)}
    return ComparedLaunch(
        label.partition("/")[0],
        label.replace("(tir)", "(schedule)") + (f", launch {number + 1}" if number else ""),
        kind_of(entry.get("workload") or {}),
        counters,
    )


def kind_of(workload: Mapping[str, int | str]) -> str:
    """ "512x512x256 nt float16" of a recorded workload."""
    extents = "x".join(str(value) for value in workload.values() if isinstance(value, int))
    return " ".join([extents, *(value for value in workload.values() if isinstance(value, str))])
