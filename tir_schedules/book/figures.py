"""Figures of a chapter, drawn from an execution of the rung's schedule: who computes what, where words lie in
banks, and who waits for whom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterator

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
from tir_schedules.model.kernel import Binary
from tir_schedules.model.workload import Workload

MOST = 400_000
"""Characters of a picture; a larger one would make the page slow."""

BLOCK = (0, 0, 0)


@dataclass(frozen=True)
class Figure:
    """title: of the section. picture: an <svg>. caption: what it shows, as it was executed."""

    title: str
    picture: Markup
    caption: str


def figures_of(binaries: list[Binary], place: int, workload: Workload) -> list[Figure]:
    """place: of the rung's own launch among all."""
    found = [
        *who_computes_what(binaries, workload),
        *banks_of(binaries[place], workload),
        *ring_of(binaries[place], workload),
    ]
    return [one for one in found if len(one.picture) <= MOST]


def who_computes_what(binaries: list[Binary], workload: Workload) -> Iterator[Figure]:
    """Of a product who stores C, of a sum who loads X: the block by warp, a warp of it by lane."""
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
    caption = f"Elements of {array} by the lane of warp {warp} that {does} them. {said}"
    yield Figure("Who computes what", threads_svg(by_lane), caption)


def banks_of(binary: Binary, workload: Workload) -> Iterator[Figure]:
    """Of the loads and of the stores of a warp those that lose most wavefronts; of Hopper's units a tile."""
    try:
        execution, inputs = watch_block(binary, workload, BLOCK, 0)
    except CheckFailed:
        return
    patterns = patterns_of(binary, execution, inputs, workload.outputs, None)
    worst: dict[str, Pattern] = {}
    for one in sorted(patterns, key=lost):
        worst[one.action] = one
    for one in worst.values():
        picture = banks.svg_of(banks.request_picture(one))
        caption = f"{capital(banks.caption(one))}. {' '.join(banks.LEGEND)}"
        yield Figure("Shared memory, bank by bank", picture, caption)
    for tile in shared_tiles.find_shared_tiles(execution.events)[:1] if execution.events else ():
        picture = banks.svg_of(shared_tiles.tile_picture(tile))
        yield Figure("A tile in shared memory", picture, f"{capital(shared_tiles.caption(tile))}.")


def lost(pattern: Pattern) -> tuple[int, int]:
    return (pattern.wavefronts - pattern.ideal) * pattern.requests, pattern.requests


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def ring_of(binary: Binary, workload: Workload) -> Iterator[Figure]:
    """Of a kernel with mbarriers."""
    if "mbarrier" not in binary.ptx:
        return
    events = watch_units(binary, workload, BLOCK).events
    found = timeline(events) if events is not None else None
    if found and found.rows:
        caption = (
            f"Who waits for whom, step by step; {barriers_of(found)}. A colour is a slot of the ring. Filled: it"
            " copies, lands, or multiplies. With a border: it has waited, arrives, or meets others. A dashed"
            " line: it waits. A step is an order, not a time."
        )
        yield Figure("The pipeline", timeline_svg(found), caption)
