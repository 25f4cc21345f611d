"""Two launches side by side: the counters that differ most, and the lines of each that cause them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterator, Sequence

from tir_schedules.console import fits, print_line, print_whole, side_by_side
from tir_schedules.files import Json
from tir_schedules.insight.inspection.listing import AnnotatedLine, annotate_lines
from tir_schedules.insight.metrics.counting import (
    COPIES,
    GLOBAL,
    GLOBAL_LOADS,
    GLOBAL_STORES,
    LOADS,
    SHARED,
    STORES,
    Metrics,
    total,
)
from tir_schedules.insight.metrics.formats import MIX, number, pair
from tir_schedules.model.counters import LineCounters

LEAST = 0.02
"""Share of all wavefronts, sectors or instructions that a difference must have to be shown."""

MOST = 6
LINES = 3
LEAST_LINE = 0.1
"""Share of a counter that a line must have to be shown."""


@dataclass(frozen=True)
class Counter:
    """What is compared. classes: of access, or of instruction. of: all that its share is taken of. accesses:
    whether it counts what accesses cost."""

    name: str
    unit: str
    classes: Sequence[str]
    of: Sequence[str]
    accesses: bool = True

    def value(self, launch: Metrics) -> int:
        return self.sum_of(launch, self.classes)

    def whole(self, launch: Metrics) -> int:
        return self.sum_of(launch, self.of)

    def sum_of(self, launch: Metrics, classes: Sequence[str]) -> int:
        if self.accesses:
            return launch.access(*classes).cost
        return sum(launch.counters.mix.get(name, 0) for name in classes)

    def of_line(self, line: LineCounters) -> int:
        if self.accesses:
            return total(line.accesses, self.classes).cost
        return sum(line.mix.get(name, 0) for name in self.classes)

    def shown(self, line: LineCounters) -> str:
        """A line's count, with the ideal where there is one."""
        return pair(total(line.accesses, self.classes)) if self.accesses else number(self.of_line(line))


EVERY = tuple(name for classes in MIX.values() for name in classes)
COUNTERS = (
    Counter("shared loads", "wavefronts", LOADS, SHARED),
    Counter("shared stores", "wavefronts", STORES, SHARED),
    Counter("shared cp.async", "wavefronts", COPIES, SHARED),
    Counter("shared atomics", "wavefronts", ("shared_atomic",), SHARED),
    Counter("wgmma", "wavefronts", ("wgmma",), SHARED),
    Counter("global loads", "sectors", GLOBAL_LOADS, GLOBAL),
    Counter("global stores", "sectors", GLOBAL_STORES, GLOBAL),
    *(Counter(name, "thread instructions", classes, EVERY, False) for name, classes in MIX.items()),
)


@dataclass(frozen=True)
class Difference:
    """A counter of two launches. share: of the larger of their totals. lines: of each, those that cause it,
    the costliest first."""

    counter: Counter
    values: tuple[int, int]
    share: float
    lines: tuple[tuple[AnnotatedLine, ...], ...]

    @property
    def title(self) -> str:
        one, other = map(number, self.values)
        return f"{self.counter.name}: {one} {self.counter.unit} beside {other}"

    def as_json(self) -> Json:
        lines = [
            [{"file": line.file, "line": line.number, "text": line.text.strip(),
              "value": self.counter.of_line(line.counters)} for line in some if line.counters]
            for some in self.lines
        ]  # fmt: skip
        return vars(self) | {"counter": self.counter.name, "unit": self.counter.unit, "lines": lines}


def differences(one: Metrics, other: Metrics) -> list[Difference]:
    """The counters that differ most, as a share of all of their unit; at most MOST."""
    annotations = (annotate_lines(one), annotate_lines(other))
    found = []
    for counter in COUNTERS:
        values = counter.value(one), counter.value(other)
        share = abs(values[0] - values[1]) / max(1, counter.whole(one), counter.whole(other))
        if share > LEAST:
            lines = tuple(causes(counter, value, some) for value, some in zip(values, annotations))
            found.append(Difference(counter, values, share, lines))
    return sorted(found, key=lambda difference: -difference.share)[:MOST]


def causes(counter: Counter, value: int, lines: Sequence[AnnotatedLine]) -> tuple[AnnotatedLine, ...]:
    """The lines that have most of a counter."""
    counted = [(counter.of_line(line.counters), line) for line in lines if line.counters]
    large = [(count, line) for count, line in counted if count and count >= LEAST_LINE * value]
    return tuple(line for _, line in sorted(large, key=lambda pair: -pair[0])[:LINES])


def print_differences(names: Sequence[str], found: Sequence[Difference]) -> None:
    """Each counter with the lines of both sides."""
    if not found:
        print_line("no counter differs by more than 2 % of all of its kind")
        return
    print_line("what differs most, and the lines that have most of it")
    for difference in found:
        print_line()
        print_line(difference.title)
        rows = [
            (f"  {name}", line.place, difference.counter.shown(line.counters), line.text.strip())
            for name, lines in zip(names, difference.lines)
            for line in lines
            if line.counters
        ]
        aligned = list(side_by_side(list(zip(*rows)))) if rows else []
        if fits(aligned):
            print_whole("\n".join(aligned))
        else:
            for line in narrow(rows):
                print_whole(line)


def narrow(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Rows on a terminal that has no room for them: the code below the rest."""
    for *cells, text in rows:
        yield " ".join(cells)
        yield f"    {text}"
