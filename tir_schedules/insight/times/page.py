"""Predicted times as a page: a timeline of a block's warps, and what each line of source waits for."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Iterator, Mapping, Sequence

import numpy as np
from markupsafe import Markup

from tir_schedules.compiler.source_text import SourceText, language_of, places_of
from tir_schedules.errors import BadInput
from tir_schedules.insight.inspection.listing import extent, home_of, line_name
from tir_schedules.insight.times.timed import CostlyLine, Target, Timed
from tir_schedules.insight.times.views import gpu_line, heading, limit_text, micros, states_text
from tir_schedules.pages import render
from tir_schedules.pages.code import HighlightedSource
from tir_schedules.timing.abi import Reason
from tir_schedules.timing.states import MEANINGS, SELECTED, STATES

COLOURS = {
    SELECTED: 0, "long scoreboard": 1, "short scoreboard": 5, "MIO throttle": 2, "barrier": 4, "wait": 7,
    "math pipe throttle": 3, "dispatch stall": 6, "no instruction": 8, "not selected": 9,
    "mbarrier": 1, "GMMA": 3, "bulk copies": 2, "cluster barrier": 4,
}  # fmt: skip
"""State -> number of its colour; 0 is that of text, 9 that of lines. States of TMA and wgmma have the colour
of what they take the place of."""

LEFT = 8
DIGITS = 2


@dataclass(frozen=True)
class Shown:
    """A line of source. share: of all cycles. parts: colours and widths in percent. said: the same in
    words."""

    place: str
    code: Markup
    share: str = ""
    said: str = ""
    parts: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True)
class Picture:
    """A kernel. rows: of each warp, (cycle, number of a state or -1, number of an instruction) of what it
    issues. code: the instructions, with their lines. states: names and colours. cut: what is left out."""

    name: str
    said: str
    rows: list[list[tuple[int, int, int]]]
    code: list[str]
    states: list[tuple[str, int]]
    lines: list[Shown]
    cut: str

    @property
    def cycles(self) -> int:
        return max(row[-1][0] for row in self.rows) + 1

    @property
    def rows_text(self) -> str:
        return json.dumps(self.rows, separators=(",", ":"))

    @property
    def code_text(self) -> str:
        return json.dumps(self.code, separators=(",", ":"))

    @property
    def states_text(self) -> str:
        return json.dumps(self.states, separators=(",", ":"))


def colour_of(state: str) -> int:
    return COLOURS.get(state, LEFT)


def document(rows: Sequence[Timed], target: Target, most: int) -> str:
    """A page of kernels that were predicted. most: issues that were asked for. BadInput where there is no
    kernel."""
    shown = [row for row in rows if row.prediction]
    if not shown:
        reasons = "; ".join(dict.fromkeys(row.reason for row in rows))
        raise BadInput(f"no kernel was predicted, so that there is nothing to draw: {reasons}")
    pictures = [picture_of(row, most) for row in shown]
    known = {state for row in shown for state in row.states}
    colours = {state: colour_of(state) for state in (*COLOURS, *sorted(known - {*COLOURS}))}
    names = list(dict.fromkeys(row.name for row in shown))
    return render(
        "time.html.j2", title=f"{', '.join(names)}: predicted time", subject=heading(shown[0]),
        kernels=pictures, colours=colours, meanings=MEANINGS,
        provenance=[f"predicted for {gpu_line(target)}; no GPU took part"],
    )  # fmt: skip


def picture_of(timed: Timed, most: int) -> Picture:
    launch = timed.launch
    assert timed.clock is not None, "it was predicted"
    reasons = [STATES.get(one.name.lower(), one.name.lower().replace("_", " ")) for one in Reason][:-1]
    numbers = np.unique(launch.issues["number"])
    places = {int(number): place for place, number in enumerate(numbers)}
    rows = [
        [
            (int(one["cycle"]), int(one["reason"]) if one["reason"] < len(reasons) else -1,
             places[int(one["number"])])
            for one in launch.issues[launch.issues["warp"] == warp]
        ]
        for warp in np.unique(launch.issues["warp"])
    ]  # fmt: skip
    text = SourceText(timed.binaries[timed.costliest].kernel)
    code = [
        f"line {text.place(*one.source)[1]}: {one.opcode} {', '.join(one.operands)}"
        for one in map(launch.code.__getitem__, numbers)
    ]
    said = (
        f"{micros(timed.microseconds or 0)} us, {launch.cycles:,.0f} cycles at {timed.clock.mhz:.0f} MHz"
        f" ({timed.clock.why}). Limited by {limit_text(timed)}."
    )
    cut = ", as far as it is kept" if len(launch.issues) == most else ""
    cut = cut or ("" if launch.whole else ", without turns of its loop that are like others")
    return Picture(
        timed.label, said, rows, code, [(name, colour_of(name)) for name in reasons], [*source_of(timed)], cut
    )  # fmt: skip


def source_of(timed: Timed) -> Iterator[Shown]:
    """Every line of the kernel, and executed lines outside it."""
    kernel = timed.binaries[timed.costliest].kernel
    costly = {(line.file, line.number): line for line in timed.lines}
    total = sum(line.cycles for line in timed.lines) or 1
    text, home = SourceText(kernel), home_of(kernel)
    code = HighlightedSource(kernel.source, language_of(kernel))
    for row in extent(kernel):
        file, number = places_of(kernel)[row - 1]
        line = costly.pop(("" if file == home else file, number), None)
        yield shown_line(line, line_name("", number), code.line(row, text.texts[row - 1]), total)
    for (file, number), line in sorted(costly.items()):
        row = text.rows.get((file or home, number), 0)
        yield shown_line(line, line.place, code.line(row, text.line(file or home, number)), total)


def shown_line(line: CostlyLine | None, place: str, code: Markup, total: int) -> Shown:
    if not line:
        return Shown(place, code)
    share = f"{100 * line.cycles / total:.1f} %"
    return Shown(place, code, share, states_text(line.states), tuple(parts_of(line.states, total)))


def parts_of(states: Mapping[str, int], total: int = 0) -> list[tuple[int, float]]:
    """Colours and widths in percent of a bar, the longest first. total: cycles of a whole bar, 0 for all."""
    width = 100 / (total or sum(states.values()) or 1)
    return [
        (colour_of(state), round(cycles * width, DIGITS))
        for state, cycles in sorted(states.items(), key=lambda one: -one[1])
        if cycles * width >= 10**-DIGITS
    ]
