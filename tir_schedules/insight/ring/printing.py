"""The timeline of a ring, printed: a line for each step, a column for each actor; and as JSON and a page."""

from __future__ import annotations

from dataclasses import asdict
from typing import Sequence

from rich.markup import escape

from tir_schedules.console import print_line, print_table
from tir_schedules.files import Json
from tir_schedules.insight.ring import pictures
from tir_schedules.insight.ring.pictures import LEGEND
from tir_schedules.insight.ring.timeline import Row, Timeline
from tir_schedules.model.kernel import Binary
from tir_schedules.pages import render


def print_timeline(title: str, found: Timeline, steps: int, notes: Sequence[str] = ()) -> None:
    """The first steps."""
    print_line(title)
    print_line(barriers_of(found))
    print_line()
    shown = range(min(steps, found.steps))
    cells = [[str(step), *(escape(cell_of(row, step)) for row in found.rows)] for step in shown]
    print_table(("step", *(row.name for row in found.rows)), cells)
    print_line()
    for line in (*LEGEND, *notes_of(found, steps), *notes):
        print_line(line)


def cell_of(row: Row, step: int) -> str:
    """What an actor does in a step; "..." while it waits."""
    done = [mark.text for mark in row.marks if mark.step == step]
    if done:
        return "; ".join(done)
    return "..." if any(mark.begins <= step < mark.step for mark in row.marks) else ""


def barriers_of(found: Timeline) -> str:
    """ "mbarriers: full 0-3 of 1 arrival each, empty 0-3 of 8"."""
    kinds: dict[tuple[bool, int], list[int]] = {}
    for barrier in found.barriers:
        kinds.setdefault((barrier.full, barrier.arrivals), []).append(barrier.slot)
    told = [
        f"{'full' if full else 'empty'} {min(slots)}-{max(slots)}, {arrivals} arrivals each"
        for (full, arrivals), slots in kinds.items()
    ]
    return f"mbarriers: {'; '.join(told)}".replace("1 arrivals each", "1 arrival each")


def notes_of(found: Timeline, steps: int) -> list[str]:
    notes = [f"the first {steps} of {found.steps} steps; --steps shows more"] if steps < found.steps else []
    return notes + (["only the first events are kept"] if found.cut else [])


def document(suffix: str, title: str, subject: str, found: Timeline, binary: Binary) -> str:
    """The text of a page or of a picture."""
    picture = pictures.timeline_svg(found)
    if suffix == ".svg":
        return picture + "\n"
    kernel = binary.kernel
    made = f"{kernel.label} for {kernel.arch}, executed on the CPU machine; no GPU took part"
    notes = [barriers_of(found), *LEGEND, *notes_of(found, pictures.STEPS_SHOWN)]
    return render(
        "ring.html.j2", title=title, subject=subject, picture=picture, notes=notes, provenance=[made]
    )


def as_json(found: Timeline) -> Json:
    barriers = [
        {"name": str(barrier), "address": barrier.place[1], "arrivals": barrier.arrivals}
        for barrier in found.barriers
    ]
    rows = [
        {
            "name": row.name,
            "marks": [
                asdict(mark) | {"kind": mark.kind.name.lower(), "location": str(mark.location or "")}
                for mark in row.marks
            ],
        }
        for row in found.rows
    ]
    return {"barriers": barriers, "steps": found.steps, "cut": found.cut, "rows": rows}
