"""Figures of a chapter, drawn from an execution of the rung's schedule: who computes what, where words lie in
banks, who waits for whom; and what warps wait for, from a prediction."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Iterator, Sequence

from markupsafe import Markup

from tir_schedules.errors import BadInput, CheckFailed
from tir_schedules.insight.banks import pictures as banks
from tir_schedules.insight.banks import shared_tiles
from tir_schedules.insight.banks.requests import Pattern, patterns_of, watch_block
from tir_schedules.insight.ring.timeline import timeline, watch_units
from tir_schedules.insight.ring.views import barriers_of, timeline_svg
from tir_schedules.insight.threads.mapping import Asked, launches_of_rung, thread_map
from tir_schedules.insight.threads.pictures import first_of, picture_of
from tir_schedules.insight.threads.pictures import svg_of as threads_svg
from tir_schedules.insight.threads.regions import summary
from tir_schedules.insight.times import page
from tir_schedules.insight.times.timed import Target, inputs_of, time_subject
from tir_schedules.model.kernel import Binary
from tir_schedules.model.workload import Workload
from tir_schedules.pages import element
from tir_schedules.subjects.subject import Subject

MOST = 400_000
"""Characters of a picture; a larger one would make the page slow."""

BLOCK = (0, 0, 0)

SHOWN = f"The picture has the first {shared_tiles.LINES_SHOWN} lines of 128 bytes, or all if there are fewer."

INSTRUCTIONS = ("cp.async", "ldmatrix", "load_matrix_sync", "mma", "stmatrix", "wgmma")

Mark = tuple[int, int, int]
"""First cycle, the cycle after the last, and the number of a state; -1 where instructions issue."""


@dataclass(frozen=True)
class Figure:
    """title: of the section. picture: an <svg>. caption: what it shows, as it was executed."""

    title: str
    picture: Markup
    caption: str

    @property
    def width(self) -> int:
        """Of the picture, in px."""
        found = re.search(r'<svg[^>]* width="(\d+)', self.picture)
        assert found, "a picture says how wide it is"
        return int(found[1])


def figures_of(binaries: list[Binary], place: int, workload: Workload) -> list[Figure]:
    """place: of the rung's own launch among all."""
    found = [
        *who_computes_what(binaries, workload),
        *banks_of(binaries[place], workload),
        *ring_of(binaries[place], workload),
    ]
    return [one for one in found if len(one.picture) <= MOST]


def who_computes_what(binaries: list[Binary], workload: Workload) -> Iterator[Figure]:
    """Who stores C of a product, or loads X of a sum: the block by warp, one of its warps by lane. No picture
    of one thread that does it all."""
    array = "X" if "X" in workload.inputs else workload.outputs[0]
    asked = Asked(array)
    try:
        found = thread_map(launches_of_rung(binaries, workload, asked), asked, str(workload))
    except (BadInput, CheckFailed):
        return
    warp, lane = first_of(found, None, None)
    said = " ".join(summary(found, warp, lane))
    does = "loads" if found.access == "load" else "stores"
    by_warp, by_lane = picture_of(found, "warp"), picture_of(found, "lane", warp)
    if len({*found.accesses["warp"].tolist()}) > 1:
        caption = f"Elements of {array} by the warp that {does} them, in the first block of {workload}."
        yield Figure("Who computes what", threads_svg(by_warp), caption)
    if len({*found.accesses["lane"].tolist()}) == 1:
        return
    caption = f"Elements of {array} by the lane of warp {warp} that {does} them. {said}"
    yield Figure("Who computes what", threads_svg(by_lane), caption)


def banks_of(binary: Binary, workload: Workload) -> Iterator[Figure]:
    """The loads and the stores of a warp that lose most wavefronts; for Hopper's units, a tile."""
    try:
        execution, inputs = watch_block(binary, workload, BLOCK, 0)
    except CheckFailed:
        return
    found = patterns_of(binary, execution, inputs, workload.outputs, None)
    patterns = [one for one in found if len(one.lanes) > 1]
    worst: dict[str, Pattern] = {}
    for one in sorted(patterns, key=lost):
        worst[one.action] = one
    for at, one in enumerate(worst.values()):
        picture = banks.svg_of(banks.request_picture(one))
        told = banks.caption(one)
        if "load_matrix_sync" in binary.kernel.source:
            told = told.replace("ldmatrix of", "load_matrix_sync (PTX: ldmatrix) of")
        caption = " ".join([f"{capital(told)}.", *(banks.LEGEND if at == 0 else ())])
        yield Figure("Shared memory, bank by bank", picture, caption)
    for tile in shared_tiles.find_shared_tiles(execution.events)[:1] if execution.events else ():
        picture = banks.svg_of(shared_tiles.tile_picture(tile))
        caption = " ".join([f"{capital(shared_tiles.caption(tile))}.", *shared_tiles.LEGEND, SHOWN])
        yield Figure("A tile in shared memory", picture, caption)


def lost(pattern: Pattern) -> tuple[int, int]:
    return (pattern.wavefronts - pattern.ideal) * pattern.requests, pattern.requests


def capital(text: str) -> str:
    """A sentence's beginning, unless that is an instruction's name."""
    return text if text.startswith(INSTRUCTIONS) else text[:1].upper() + text[1:]


def ring_of(binary: Binary, workload: Workload) -> Iterator[Figure]:
    """The ring of a kernel with mbarriers."""
    if "mbarrier" not in binary.ptx:
        return
    events = watch_units(binary, workload, BLOCK).events
    found = timeline(events) if events is not None else None
    if found and found.rows:
        caption = (
            f"Who waits for whom, step by step; {barriers_of(found)}. full n says that the copy to stage n"
            " has landed, and empty n that its readers are done. A colour is a stage. Filled: a copy starts"
            " or lands, or a product runs. With a border: a warp has waited, arrives, or is at a barrier of"
            " the block (meet). A dashed line: it waits. A step is an order, not a time."
        )
        yield Figure("The pipeline", timeline_svg(found), caption)


WIDTH, LABEL, HIGH, TOP = 1000, 64, 20, 24
ISSUES = 1 << 14
LEAST = 1.2
"""px of a mark: what is shorter is drawn together with its neighbour."""

PART = 6
"""One part of so many of a kernel's cycles is drawn, from its middle."""


def warps_in_time(subject: Subject, target: Target) -> Iterator[Figure]:
    """What each warp of a block does, cycle by cycle, as `time` predicts it. subject: compiled for the
    target."""
    timed = time_subject(subject, inputs_of(subject), target, ISSUES)
    if timed.prediction is None or not len(timed.launch.issues):
        return
    found = page.picture_of(timed, ISSUES)
    size = max(200, found.cycles // PART)
    first = max(0, (found.cycles - size) // 2)
    scale = WIDTH / size
    used: dict[int, None] = {}
    parts: list[Markup] = []
    for number, row in enumerate(found.rows):
        y = TOP + number * HIGH
        parts.append(words(f"warp {number}", LABEL - 8, y + HIGH - 6, "end"))
        for begin, end, state in marks(row, first, first + size, LEAST / scale):
            used |= {} if state < 0 else {state: None}
            colour = "var(--fg)" if state < 0 else colour_name(found.states[state][1])
            x, width = LABEL + (begin - first) * scale, (end - begin) * scale
            parts.append(
                element(
                    "rect",
                    x=f"{x:.1f}",
                    y=y + 2,
                    width=f"{width:.1f}",
                    height=HIGH - 4,
                    style=f"fill:{colour}",
                )
            )
    for at in range(5):
        cycle = first + size * at // 5
        parts.append(words(f"{cycle:,}", LABEL + (cycle - first) * scale, 14, "start"))
    y, x = TOP + len(found.rows) * HIGH + 8, LABEL
    for state, name in [(-1, "issues"), *((each, found.states[each][0]) for each in sorted(used))]:
        colour = "var(--fg)" if state < 0 else colour_name(found.states[state][1])
        parts.append(element("rect", x=x, y=y, width=11, height=11, style=f"fill:{colour}"))
        parts.append(words(name, x + 16, y + 10, "start"))
        x += 40 + 7 * len(name)
    width, height = max(LABEL + WIDTH + 8, x), y + 20
    title = element("title", f"what warps of {timed.label} wait for")
    svg = element(
        "svg", title, *parts, width=width, height=height, viewBox=f"0 0 {width} {height}", role="img",
        style=f"max-width:none;min-width:{width}px",
    )  # fmt: skip
    others = (
        "Other blocks on the SM take their turns between."
        if timed.launch.resident > 1
        else "The SM has only this block."
    )
    caption = (
        f"What each warp of a block does in {size:,} cycles from the middle of the kernel, predicted for"
        f" {target.table.device} at {timed.workload}. A dark mark is an instruction that issues. A colour is"
        f" what the warp waits for most before the next one. {others}"
    )
    yield Figure("The pipeline, cycle by cycle", svg, caption)


def marks(row: Sequence[tuple[int, int, int]], first: int, last: int, least: float) -> Iterator[Mark]:
    """Times of a warp in a window, and what it does in them. least: cycles of a mark that can be seen."""
    before, found = first, list[Mark]()
    for cycle, state, _ in row:
        if cycle < first:
            before = cycle + 1
        elif cycle < last:
            if state >= 0 and cycle > before:
                found.append((max(before, first), cycle, state))
            found.append((cycle, cycle + 1, -1))
            before = cycle + 1
    drawn: list[Mark] = []
    for begin, end, state in found:
        if drawn and (drawn[-1][2] == state and begin - drawn[-1][1] < least or end - drawn[-1][0] < least):
            longer = state if end - begin > drawn[-1][1] - drawn[-1][0] else drawn[-1][2]
            drawn[-1] = drawn[-1][0], end, longer
        else:
            drawn.append((begin, end, state))
    yield from drawn


def colour_name(number: int) -> str:
    """The name of a state's colour in the style of pages."""
    return "var(--fg)" if number == 0 else "var(--line)" if number == 9 else f"var(--c{number})"


def words(content: str, x: float, y: float, anchor: str) -> Markup:
    style = "fill:var(--fg);font:11.5px ui-monospace,Menlo,Consolas,monospace"
    return element("text", content, x=f"{x:g}", y=f"{y:g}", text_anchor=anchor, style=style)
