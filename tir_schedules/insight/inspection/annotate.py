"""A kernel's CUDA source with what each line cost on the CPU machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterator

from tir_schedules.compiler.source_text import shown_name
from tir_schedules.insight.inspection.extent import extent
from tir_schedules.insight.metrics.counting import SHARED, Metrics
from tir_schedules.model.counters import Access, LineCounters


@dataclass(frozen=True)
class AnnotatedLine:
    """A line of source.

    file: empty for the kernel's own. text: empty for a header's. counters: None where nothing was executed.
    share: of the launch's thread instructions, 0 to 1.
    """

    file: str
    number: int
    text: str
    counters: LineCounters | None
    share: float

    @property
    def place(self) -> str:
        """Its number, after the file where that is not the kernel's own."""
        if not self.number:
            return "unknown"
        return f"{self.file}:{self.number}" if self.file else str(self.number)


@dataclass(frozen=True)
class Conflict:
    """Accesses of one class on one line that cost more wavefronts than without bank conflicts."""

    line: AnnotatedLine
    kind: str
    access: Access


def annotated(launch: Metrics) -> list[AnnotatedLine]:
    """Every line of the kernel; then executed lines outside it, of functions it calls and of headers."""
    kernel, counters = launch.binary.kernel, launch.counters
    own = shown_name(kernel)
    inside = extent(kernel)
    executed = {(line.file, line.line): line for line in counters.lines}

    def annotate(file: str, number: int) -> AnnotatedLine:
        line = executed.get((file, number))
        share = sum(line.mix.values()) / counters.thread_instructions if line else 0.0
        return AnnotatedLine("" if file == own else file, number, launch.text_of(file, number), line, share)

    others = [place for place in sorted(executed) if place[0] != own or place[1] not in inside]
    return [annotate(own, number) for number in inside] + [annotate(*place) for place in others]


def conflicting(launch: Metrics) -> Iterator[Conflict]:
    """Accesses with bank conflicts, line by line."""
    for line in annotated(launch):
        for kind, access in line.counters.accesses.items() if line.counters else ():
            if kind in SHARED and access.cost > access.ideal:
                yield Conflict(line, kind, access)
