"""Searches: the records of one task in the order they were made, and what a command did for one."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Iterable

from tir_schedules.model.machine import Device
from tir_schedules.model.rung import Rung
from tir_schedules.model.workload import Workload
from tir_schedules.tuning.records.database import best, latest
from tir_schedules.tuning.records.journal import Entry
from tir_schedules.tuning.records.record import MEASURED, PREDICTED, Record, Task, device_of
from tir_schedules.tuning.records.timesheet import Spent


@dataclass(frozen=True)
class Search:
    """Records of one task. rung: its id. shipped: whether they came with this package."""

    rung: str
    records: tuple[Record, ...]
    shipped: bool = False

    def __len__(self) -> int:
        return len(self.records)

    @property
    def best(self) -> Record | None:
        return best(self.records)

    @property
    def refused(self) -> int:
        """How many candidates were refused."""
        return sum(bool(record.error) for record in self.records)

    @property
    def title(self) -> str:
        first = self.records[0]
        target = first.device if first.kind == MEASURED else first.arch
        return f"{self.rung} on {first.problem}, {first.kind} for {target}"

    @property
    def stem(self) -> str:
        """The part of a file's name that tells its plot from those of other searches."""
        first, source = self.records[0], " shipped" if self.shipped else ""
        words = f"{self.rung.replace('/', '_')} {first.problem} {first.arch} {first.kind}{source}".split()
        return "_".join(words)


@dataclass(frozen=True)
class Run:
    """What a command did for one search. trials: new ones. seconds: that they took.

    servers: how many measured, 0 where this computer did. correlation, spent: see tuner.Tuned.
    """

    trials: int
    seconds: float
    servers: int
    correlation: float | None
    spent: Spent | None = None

    @property
    def pace(self) -> str:
        by = f", by {self.servers} server{'s' if self.servers > 1 else ''}" if self.servers else ""
        what = f"{self.trials} trial{'s' if self.trials > 1 else ''}"
        return f"{what} in {self.seconds:.0f} s{by}: {60 * self.trials / self.seconds:.3g} per minute"

    def as_json(self) -> Entry:
        spent = asdict(self.spent) if self.spent else None
        return {"trials": self.trials, "seconds": self.seconds, "servers": self.servers, "spent": spent}


def searches_of(records: Iterable[Record], shipped: bool = False) -> list[Search]:
    """Records by search, in the order searches are first met. shipped: whether they came with this
    package."""
    groups: dict[str, list[Record]] = {}
    for record in latest(records):
        groups.setdefault(record.task.key, []).append(record)
    return [Search(group[0].rung, tuple(group), shipped) for group in groups.values()]


def of_task(records: Iterable[Record], rung: Rung, workload: Workload, arch: str, device: Device) -> Search:
    """The search of a rung on a workload by a device; without records when there was none."""
    task = Task.of(rung, workload, arch, device_of(device), MEASURED if device.name == "gpu" else PREDICTED)
    return Search(rung.id, tuple(record for record in latest(records) if record.task == task))


def as_json(search: Search, run: Run | None) -> Entry:
    """A search as JSON, of its records the best alone. run: that just ended; None when it is only shown."""
    first, found = search.records[0], search.best
    return {
        "rung": search.rung,
        "workload": first.workload,
        "arch": first.arch,
        "device": first.device,
        "kind": first.kind,
        "shipped": search.shipped,
        "trials": len(search),
        "refused": search.refused,
        "best": asdict(found) if found else None,
        "model_rank_correlation": run.correlation if run else None,
        "run": run.as_json() if run else None,
    }
