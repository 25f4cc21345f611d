"""Where the time of a search went."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Iterator

AWAITING_BUILDER, BUILDING, VERIFYING = "awaiting_builder", "building", "verifying"
AWAITING_GPU, TIMED = "awaiting_gpu", "timed"
"""What a candidate's time is spent on, in this order. BUILDING: TVM and nvcc. VERIFYING: on the CPU
machine."""

SAID = {
    AWAITING_BUILDER: "waiting for a builder",
    BUILDING: "building",
    VERIFYING: "verifying",
    AWAITING_GPU: "waiting for a GPU",
    TIMED: "at a GPU",
}

SHOWN = 0.01
"""Fewest seconds that are shown."""


class Timesheet:
    """Seconds that candidates spent, by what on. Safe to use from several threads."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.lock = threading.Lock()

    def add(self, what: str, seconds: float) -> None:
        with self.lock:
            self.seconds[what] = self.seconds.get(what, 0.0) + seconds

    @contextmanager
    def during(self, what: str) -> Iterator[None]:
        """Count what happens within, also where it fails."""
        start = time.monotonic()
        try:
            yield
        finally:
            self.add(what, time.monotonic() - start)


@dataclass(frozen=True)
class Spent:
    """Where the seconds of a search went.

    seconds: of all. awaited: those in which the search waited for results. compared: those in which it timed
    the fastest side by side. The rest was its own work. candidates: how many were evaluated. on: what their
    time was spent on, in sum, by the names above. builders, places: processes that build, and GPUs.
    """

    seconds: float
    awaited: float
    compared: float
    candidates: int
    on: dict[str, float] = field(default_factory=dict)
    builders: int = 0
    places: int = 0

    @property
    def own(self) -> float:
        """Seconds that the search itself worked, choosing candidates and teaching its model."""
        return max(0.0, self.seconds - self.awaited - self.compared)

    @property
    def lines(self) -> Iterator[str]:
        """All of it in two lines; none for a search that evaluated nothing."""
        if not self.candidates:
            return
        compared = f", {self.compared:.3g} s comparing the fastest" if self.compared >= SHOWN else ""
        yield (
            f"of {self.seconds:.3g} s: {self.awaited:.3g} s waiting for candidates, {self.own:.3g} s choosing"
            f" them{compared}"
        )
        spent = [
            f"{self.on[what] / self.candidates:.2g} s {said}"
            for what, said in SAID.items()
            if self.on.get(what, 0.0) / self.candidates >= SHOWN
        ]
        yield f"a candidate, in the mean: {', '.join(spent)}{'; ' * bool(spent)}{'; '.join(self.busy)}"

    @property
    def busy(self) -> Iterator[str]:
        """What share of the time before the comparison builders worked, and GPUs."""
        searching = max(self.seconds - self.compared, 1e-9)
        built = self.on.get(BUILDING, 0.0) + self.on.get(VERIFYING, 0.0)
        for count, worked, name in (
            (self.builders, built, "builder"),
            (self.places, self.on.get(TIMED, 0.0), "GPU"),
        ):
            if count:
                named = f"{count} {name}{'s' if count > 1 else ''}"
                yield f"{named} busy {worked / searching / count:.0%}"
