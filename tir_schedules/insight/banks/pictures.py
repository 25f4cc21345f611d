"""Pictures of requests to shared memory: which lane each bank serves in which wavefront, and where the lanes'
words lie.

Columns are the 32 banks. A picture is inline SVG, in colours for light and dark, or text. Each phase has a
colour; another colour marks the words that wait for a further wavefront.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Iterator, Mapping, Sequence

from markupsafe import Markup

from tir_schedules.insight.banks.wavefronts import BANKS, LINE, WORD, words_of
from tir_schedules.insight.metrics.formats import plural
from tir_schedules.pages import element

if TYPE_CHECKING:
    from rich.text import Text

    from tir_schedules.insight.banks.requests import Pattern

CELL, HEIGHT, LABEL = 23, 19, 104  # px: a bank, a row, and what stands before a row
COLUMNS = 116  # characters beside each other in a picture
HUES = 4
GAP = 6  # px between phases
AXIS = "bank"  # what is numbered from left to right
TEXT_LABEL = 17  # characters before the first bank
TEXT_STYLES = ("cyan", "green", "magenta", "yellow", "bold red")
CLASSES = ("p0", "p1", "p2", "p3", "hot")
NARROW = 7  # characters of a column of four banks, on a narrow terminal
STYLE = Markup("""
.banks { --p0: #cfe3f8; --p1: #d2ecd6; --p2: #e6dbf5; --p3: #f6e9bd; --hot: #f3aa92;
  --ink: #16191d; --rule: #c4cad1; --dim: #565d66; --paper: #fff; }
@media (prefers-color-scheme: dark) {
  .banks { --p0: #1d4364; --p1: #1c4c33; --p2: #453267; --p3: #55470f; --hot: #8e3a1f;
    --ink: #f0f2f4; --rule: #4a515a; --dim: #aab2bc; --paper: #15171a; }
}
.banks text { fill: var(--ink);
  font: 11.5px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
.banks .cell { text-anchor: middle; }
.banks .dim { fill: var(--dim); }
.banks .rule { stroke: var(--rule); fill: none; }
.banks .p0 { fill: var(--p0); } .banks .p1 { fill: var(--p1); }
.banks .p2 { fill: var(--p2); } .banks .p3 { fill: var(--p3); }
.banks .hot { fill: var(--hot); }
.banks rect { stroke: var(--rule); }
.banks .paper { fill: var(--paper); stroke: none; }
""")

HOT = -1
"""Place of the style of words that wait, among TEXT_STYLES and CLASSES."""


@dataclass(frozen=True)
class Cell:
    """Neighbouring banks that show the same. text: where they are drawn as one; narrow: in each column of a
    terminal. hue: place of its style among TEXT_STYLES and CLASSES."""

    first: int
    count: int
    text: str
    narrow: str
    hue: int


@dataclass(frozen=True)
class Row:
    """label: what stands before it. cells: none where rows are left out. below: px to the next row."""

    label: str
    cells: tuple[Cell, ...] = ()
    below: int = 0


@dataclass(frozen=True)
class Picture:
    """Rows under the numbers of the banks, drawn by `svg_of` and `text_of`. share: banks of a column of
    text."""

    title: str
    rows: tuple[Row, ...]
    share: int = 1


def caption(pattern: Pattern) -> str:
    """What a pattern costs: "load of A: 8 requests of 16 bytes per lane, 4 wavefronts each, no bank
    conflicts"."""
    waves = f"{plural(pattern.wavefronts, 'wavefront')} each, no bank conflicts"
    if pattern.by_banks != pattern.wavefronts:
        waves = (
            f"{pattern.wavefronts} wavefronts each; those of a copy depend on its source as well, its banks"
            f" alone take {pattern.by_banks}"
        )
    elif pattern.wavefronts > pattern.ideal:
        waves = f"{pattern.wavefronts} wavefronts each, {pattern.ideal} without bank conflicts"
    stride = pattern.stride
    apart = f", neighbouring lanes {stride} bytes apart" if stride not in (None, 0, pattern.width) else ""
    starts = (
        f"bank {' or '.join(map(str, pattern.starts))}"
        if len(pattern.starts) < 5
        else f"one of {len(pattern.starts)} banks"
    )
    shifted = f"; they begin at {starts}, the pictures show the first" if len(pattern.starts) > 1 else ""
    requests = f"{plural(pattern.requests, 'request')} of {pattern.width} bytes per lane{apart}"
    return f"{pattern.action} of {pattern.name}: {requests}, {waves}{shifted}"


def place_of(pattern: Pattern) -> str:
    """The CUDA lines that make the requests, and the first one's text unless it is operands of inline PTX."""
    first = pattern.locations[0]
    if not first.line:
        return str(first)
    lines = ", ".join(str(location.line) for location in pattern.locations)
    return f"{first.file}:{lines}: {'inline PTX' if first.text.startswith(':') else first.text}"


LEGEND = (
    "Columns are banks. A number is the lane that a bank serves; n+ is lane n and others with the same word.",
    'A bank serves one word per wavefront. Rows "wait 1" and further are wavefronts for words that waited.',
)


def request_picture(pattern: Pattern) -> Picture:
    """A row for each wavefront, a column for each bank, in the cells the lanes; a phase has one colour."""
    rows = []
    for number, phase in enumerate(pattern.phases):
        for turn, wavefront in enumerate(phase.wavefronts):
            hue = HOT if turn else number % HUES
            banks = {bank: (one.lanes, hue, one.word - bank) for bank, one in wavefront.items()}
            last = turn == len(phase.wavefronts) - 1
            label = f"wait {turn}" if turn else lane_names(phase.lanes)
            rows.append(Row(label, tuple(join_banks(banks)), GAP * last))
    return Picture(f"{pattern.action} of {pattern.name}: wavefronts and banks", tuple(rows))


def tile_picture(pattern: Pattern) -> Picture:
    """Where the lanes' words lie: a row for 128 bytes of shared memory, a column for each bank."""
    touched: dict[int, dict[int, tuple[list[int], int]]] = {}
    for number, phase in enumerate(pattern.phases):
        for lane in phase.lanes:
            for word in words_of(pattern.addresses[lane], pattern.width):
                row = touched.setdefault(word * WORD // LINE, {})
                row.setdefault(word % BANKS, ([], number % HUES))[0].append(lane)
    rows, before = [], None
    for row, words in sorted(touched.items()):
        banks = {bank: (tuple(lanes), hue, 0) for bank, (lanes, hue) in words.items()}
        if before is not None and row > before + 1:
            rows.append(Row("..."))
        rows.append(Row(place_of_row(row), tuple(join_banks(banks)), 2 * (row == max(touched))))
        before = row
    return Picture(f"{pattern.action} of {pattern.name}: words of the lanes", tuple(rows))


def pictures_of(pattern: Pattern) -> tuple[Picture, Picture]:
    return request_picture(pattern), tile_picture(pattern)


def svg_of(picture: Picture, at: int | None = None) -> Markup:
    """An <svg> of 848 px width, for a box that scrolls; or for another <svg>, `at` px below its top."""
    parts, y = [heading()], HEIGHT
    for row in picture.rows:
        parts.append(text(row.label, LABEL - 8, y, "end"))
        parts += [box(one, y) for one in row.cells]
        parts += [frame(y)] if row.cells else []
        y += HEIGHT + row.below
    return svg(parts, y, picture.title, at)


def document_svg(sections: Sequence[tuple[Sequence[str], Sequence[Picture]]], title: str) -> str:
    """One SVG file: texts and the pictures that they are of, one below the other."""
    parts, y = [text(title, 8, 4, "start")], 2 * HEIGHT
    for said, pictures in sections:
        for line in (line for told in said for line in textwrap.wrap(told, COLUMNS)):
            parts.append(text(line, 8, y, "start"))
            y += HEIGHT
        for picture in pictures:
            drawn = svg_of(picture, y)
            parts.append(drawn)
            y += height_of(drawn) + HEIGHT
        y += HEIGHT
    return svg([element("rect", class_="paper", width="100%", height="100%"), *parts], y, title) + "\n"


def height_of(drawn: Markup) -> int:
    found = re.search(r'height="(\d+)"', drawn)
    assert found, "svg() writes it"
    return int(found[1])


def svg(
    parts: Sequence[Markup],
    height: int,
    title: str,
    at: int | None = None,
    width: int = LABEL + BANKS * CELL + 8,
    style: Markup = STYLE,
) -> Markup:
    """style: CSS."""
    box = {"width": width, "height": height, "viewBox": f"0 0 {width} {height}", "role": "img"}
    room = f"max-width:none;min-width:{width}px"
    inside = (element("title", title), element("style", style), *parts)
    return element(
        "svg", *inside, y=at, class_="banks", xmlns="http://www.w3.org/2000/svg", **box, style=room
    )


def heading() -> Markup:
    """The numbers of the banks."""
    numbers = (
        element("text", bank, class_="cell dim", x=f"{LABEL + bank * CELL + CELL / 2:g}", y=HEIGHT - 6)
        for bank in range(BANKS)
    )
    return text(AXIS, LABEL - 8, 0, "end", "dim") + Markup("").join(numbers)


def text(content: str, x: float, y: int, anchor: str, style: str = "") -> Markup:
    return element("text", content, class_=style, x=f"{x:g}", y=y + HEIGHT - 5, text_anchor=anchor)


def box(one: Cell, y: int) -> Markup:
    x, width = LABEL + one.first * CELL, one.count * CELL
    label = element("text", one.text, class_="cell", x=f"{x + width / 2:g}", y=y + HEIGHT - 5)
    return element("rect", class_=CLASSES[one.hue], x=x, y=y, width=width, height=HEIGHT) + label


def frame(y: int) -> Markup:
    """The grid of a row: a line around it, and a tick every four banks."""
    ticks = "".join(f"M{LABEL + bank * CELL} {y}v{HEIGHT}" for bank in range(4, BANKS, 4))
    return element("path", class_="rule", d=f"M{LABEL} {y}h{BANKS * CELL}v{HEIGHT}h-{BANKS * CELL}z{ticks}")


Served = tuple[tuple[int, ...], int, int]
"""Lanes and hue of a bank, and what else neighbours have in common that are one cell."""


def join_banks(banks: Mapping[int, Served]) -> Iterator[Cell]:
    """Neighbouring banks that serve the same lanes, such as of one wide access, are one cell."""
    numbered = enumerate(sorted(banks.items()))
    for ((lanes, hue, _), _), group in groupby(numbered, key=lambda one: (one[1][1], one[1][0] - one[0])):
        found = [bank for _, (bank, _) in group]
        yield Cell(found[0], len(found), name_of(lanes, len(found)), name_of(lanes), hue)


def place_of_row(row: int) -> str:
    """Where a row of 128 bytes begins."""
    return f"byte {row * LINE}"


def lane_names(lanes: Sequence[int]) -> str:
    """ "lanes 0-7", or the number of lanes where some between are missing."""
    if len(lanes) == 1:
        return f"lane {lanes[0]}"
    whole = lanes[-1] - lanes[0] + 1 == len(lanes)
    return f"lanes {lanes[0]}-{lanes[-1]}" if whole else f"{len(lanes)} of {lanes[0]}-{lanes[-1]}"


def name_of(lanes: Sequence[int], room: int = 1) -> str:
    """The lanes of a cell: "3"; of several "0-7" where there is room, else "0+"."""
    if len(lanes) == 1:
        return str(lanes[0])
    whole = lanes[-1] - lanes[0] + 1 == len(lanes)
    return f"{lanes[0]}-{lanes[-1]}" if room > 1 and whole else f"{lanes[0]}+"


def text_of(picture: Picture, width: int | None = None) -> Text:
    """What `svg_of` draws, in lines of 113 characters, three for each bank. width: of a terminal; a narrower
    one has the banks in several pictures, one below the other, or narrower columns where these are of several
    banks."""
    from rich.text import Text

    share, room, count = picture.share, 3 * picture.share, BANKS
    if width and share > 1 and TEXT_LABEL + 3 * BANKS > width:
        room = NARROW
    while width and share == 1 and count > BANKS // 8 and TEXT_LABEL + room * count > width:
        count //= 2
    lines = Text()
    for first in range(0, BANKS, count):
        columns = range(first, first + count, share)
        names = (str(bank) if share == 1 else f"{bank}-{bank + share - 1}" for bank in columns)
        numbers = "".join(f"{name:>{room}}" for name in names)
        lines.append("\n" * (first > 0) + f"{AXIS:>15} |{numbers}\n", "dim")
        for row in picture.rows:
            if not row.cells:
                lines.append(f"{row.label:>15}\n", "dim")
                continue
            lines.append(f"{row.label:>15} |")
            shown = {bank: one for one in row.cells for bank in range(one.first, one.first + one.count)}
            for bank in columns:
                one = shown.get(bank)
                lines.append(f"{one.narrow if one else '.':>{room}}", TEXT_STYLES[one.hue] if one else "dim")
            lines.append("\n")
    return lines
