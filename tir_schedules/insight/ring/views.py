"""The timeline of a ring shown: printed, a line for each step and a column for each actor; and as a picture
or a page, a row for each actor, a column for each step, a colour for each slot."""

from __future__ import annotations

from markupsafe import Markup
from rich.markup import escape

from tir_schedules.console import print_line, print_table
from tir_schedules.insight.banks import pictures
from tir_schedules.insight.banks.pictures import svg
from tir_schedules.insight.banks.views import made_by
from tir_schedules.insight.ring.timeline import Mark, Row, Timeline
from tir_schedules.machines.cpu.abi import Happening
from tir_schedules.model.kernel import Binary
from tir_schedules.pages import element, render


def print_timeline(title: str, found: Timeline, steps: int) -> None:
    """The first steps."""
    print_line(title)
    print_line(barriers_of(found))
    print_line()
    shown = range(min(steps, found.steps))
    cells = [[str(step), *(escape(cell_of(row, step)) for row in found.rows)] for step in shown]
    print_table(("step", *(row.name for row in found.rows)), cells)
    print_line()
    for line in (*LEGEND, *notes_of(found, steps)):
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
    picture = timeline_svg(found)
    if suffix == ".svg":
        return picture + "\n"
    notes = [barriers_of(found), *LEGEND, *notes_of(found, STEPS_SHOWN)]
    made = [made_by(binary)]
    return render("ring.html.j2", title=title, subject=subject, picture=picture, notes=notes, provenance=made)


CELL, HEIGHT, LABEL, GAP = 66, 30, 120, 8  # px: a step, a row, what stands before it, between rows
STEPS_SHOWN = 160
SHORT = {
    Happening.PASSED: "wait",
    Happening.TESTED: "stuck",
    Happening.ARRIVED: "arrive",
    Happening.EXPECTED: "copy",
    Happening.BEGUN: "copy",
    Happening.LANDED: "lands",
    Happening.MULTIPLIED: "wgmma",
    Happening.COMMITTED: "commit",
    Happening.DRAINED: "done",
    Happening.STORED: "store",
    Happening.STORES_COMMITTED: "commit",
    Happening.STORES_DRAINED: "stored",
    Happening.MET: "meet",
}
FILLED = (Happening.EXPECTED, Happening.BEGUN, Happening.LANDED, Happening.MULTIPLIED)
"""What is in the colour of its slot; all else has a border of it."""
SLOT_COLOURS = ("#2f68a8", "#267a45", "#7450b5", "#86590b", "#a8432b", "#1a7070", "#94397f", "#5f5f2a")
STYLE = pictures.STYLE + Markup("""
.banks .wait { stroke: var(--dim); stroke-dasharray: 3 3; }
.banks .mark { fill: none; stroke-width: 1.6; }
.banks .on { fill: #fff; }
.banks .stuck { fill: var(--hot); }
""")

LEGEND = (
    "Steps follow from what mbarriers wait for; they are not times. What may happen at once has one step.",
    "full s: the mbarrier that the copies to slot s tell of their bytes; empty s: the one that frees it.",
    "A phase is counted from 0; a wait names it by its parity, phase % 2. unused: no copy used it yet.",
)


def timeline_svg(found: Timeline) -> Markup:
    """An <svg> for a box that scrolls: a filled mark copies, lands or multiplies; a dashed line waits."""
    steps = min(found.steps, STEPS_SHOWN)
    width, height = LABEL + steps * CELL + 8, HEIGHT + len(found.rows) * (HEIGHT + GAP) + 8
    parts = [text("step", LABEL - 8, 0, "end", "dim")]
    parts += [text(str(step), middle(step), 0, "middle", "dim") for step in range(steps)]
    for number, row in enumerate(found.rows):
        parts += draw_row(row, HEIGHT + number * (HEIGHT + GAP), steps)
    return svg(parts, height, "who waits for whom", width=width, style=STYLE)


def draw_row(row: Row, y: int, steps: int) -> list[Markup]:
    parts = [text(row.name, LABEL - 8, y, "end")]
    landing: dict[int, int] = {}
    for mark in row.marks:
        if mark.begins < mark.step and mark.begins < steps:
            end = middle(min(mark.step, steps)) - CELL / 2
            line = f"M{middle(mark.begins) - CELL / 2:g} {y + HEIGHT / 2:g}H{end:g}"
            parts.append(element("path", class_="wait", d=line))
        if mark.step < steps:
            parts.append(draw_mark(mark, y, landing.get(mark.step, 0)))
            landing[mark.step] = landing.get(mark.step, 0) + 1
    return parts


def draw_mark(mark: Mark, y: int, before: int) -> Markup:
    """before: how many marks of the row have the same step."""
    x = LABEL + mark.step * CELL + 1 + 3 * before
    colour = "var(--rule)" if mark.slot is None else SLOT_COLOURS[mark.slot % len(SLOT_COLOURS)]
    filled = mark.kind in FILLED
    style = f"fill:{colour}" if filled else f"stroke:{colour}"
    class_ = "stuck" if not mark.over else "full" if filled else "mark"
    box = element(
        "rect",
        class_=class_,
        x=x,
        y=y,
        width=CELL - 2,
        height=HEIGHT,
        rx=3,
        style=style if mark.over else None,
    )
    slot = "" if mark.slot is None else f" {mark.slot}"
    label = text(SHORT[mark.kind] + slot, middle(mark.step), y, "middle", "on" if filled else "")
    where = f"; line {mark.location.line}" if mark.location and mark.location.line else ""
    return element("g", element("title", f"step {mark.step}: {mark.text}{where}"), box, label)


def middle(step: int) -> float:
    return LABEL + step * CELL + CELL / 2


def text(content: str, x: float, y: int, anchor: str, style: str = "") -> Markup:
    return pictures.text(content, x, y + (HEIGHT - pictures.HEIGHT) // 2, anchor, style)
