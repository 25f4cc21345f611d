"""All advice on a launch, and how it is printed."""

from __future__ import annotations

from typing import Sequence

from tir_schedules.console import print_line
from tir_schedules.insight.advice.conflicts import conflicts
from tir_schedules.insight.advice.items import Advice
from tir_schedules.insight.advice.launch import launch
from tir_schedules.insight.advice.memory import memory
from tir_schedules.insight.advice.pipeline import pipeline
from tir_schedules.insight.advice.subject import Subject, record

SHOWN = 6
NOTHING = "advice: none: no line costs more than it would ideally"
UNKNOWN = "the accesses of block 0,0,0 are not known: alone it does not end, or it makes too many"


def advise(subject: Subject) -> list[Advice]:
    """Advice, what saves most first; then reasons for which there is no remedy."""
    recording = record(subject)
    found = [*conflicts(subject, recording), *memory(subject, recording)] if recording else []
    if not recording:
        found.append(Advice("not known", None, UNKNOWN))
    return sorted([*found, *pipeline(subject), *launch(subject)], key=lambda one: -one.saved)


def print_advice(found: Sequence[Advice]) -> None:
    """A paragraph for each, up to a handful."""
    if not found:
        print_line(NOTHING)
    for one in found[:SHOWN]:
        print_line(f"{one.where}{one.reason}")
        for remedy in one.remedies:
            print_line(f"  {remedy}")
        if one.tried:
            print_line(f"  {one.tried}")
    if len(found) > SHOWN:
        print_line(f"and {len(found) - SHOWN} more, which --json has")
