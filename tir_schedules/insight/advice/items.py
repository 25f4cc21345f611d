"""One piece of advice, and how numbers in it are written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Sequence

from tir_schedules.insight.advice.subject import Line


@dataclass(frozen=True)
class Advice:
    """reason: what a line costs and why, in numbers. remedies: what costs less and its price, as a replay of
    the recorded accesses or the occupancy rules tell; empty where none was found. tried: what became of the
    first in a changed copy of the source; empty where it was not tried. saved: wavefronts or sectors (`unit`)
    of the launch. facts: the numbers, by name."""

    kind: str
    place: Line | None
    reason: str
    remedies: tuple[str, ...] = ()
    tried: str = ""
    saved: int = 0
    unit: str = ""
    facts: dict[str, object] = field(default_factory=dict)

    @property
    def where(self) -> str:
        return f"{self.place[0]}:{self.place[1]}: " if self.place and self.place[1] else ""

    def as_json(self) -> dict[str, object]:
        place = {"file": self.place[0], "line": self.place[1]} if self.place else {}
        return {
            "kind": self.kind, **place, "reason": self.reason, "remedies": self.remedies, "tried": self.tried,
            "saved": self.saved, "unit": self.unit, **self.facts,
        }  # fmt: skip


def plural(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def each(cost: int, requests: int) -> str:
    """Of one request: "4", or "3.5"."""
    return f"{cost / requests:.1f}".removesuffix(".0") if requests else "0"


def listed(lines: Sequence[Line], own: str) -> str:
    """ "lines 3, 5 and common.cuh:7"; own: the file that need not be named."""
    names = [str(line) if file == own else f"{file}:{line}" for file, line in sorted(set(lines))]
    text = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    return f"line{'s' if len(names) > 1 else ''} {text}"
