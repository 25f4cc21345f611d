"""Pictures of requests to shared memory: which lane each bank serves in which wavefront, and where the lanes'
words lie.

Columns are the 32 banks. A picture is inline SVG, in colours for light and dark, or text. Each phase has a
colour; another colour marks the words that wait for a further wavefront.
"""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING, Any, Callable, Iterator, Sequence

from markupsafe import Markup

from tir_schedules.insight.banks.wavefronts import BANKS, LINE, WORD, Wavefront, cost, words_of
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
TEXT_STYLES = ("cyan", "green", "magenta", "yellow")
CONFLICT_STYLE = "bold red"
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

BankSpan = tuple[int, int, tuple[int, ...]]
"""Neighbouring banks that serve the same lanes: the first bank, how many, and the lanes."""

Drawn = tuple[str, Callable[[Any, int], Markup], Any]
"""A caption, what draws a picture so far below the top, and what it draws."""

Cells = dict[int, tuple[str, str]]
"""Bank -> its lanes, as text, and a style of rich."""


def caption(pattern: Pattern) -> str:
    """What a pattern costs: "load of A: 8 requests of 16 bytes per lane, 4 wavefronts each, no bank
    conflicts"."""
    waves = f"{plural(pattern.wavefronts, 'wavefront')} each, no bank conflicts"
    if not pattern.by_banks:
        by_banks = cost(pattern.phases)
        waves = (
            f"{pattern.wavefronts} wavefronts each; those of a copy depend on its source as well, its banks"
            f" alone take {by_banks}"
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


def request_svg(pattern: Pattern, at: int | None = None) -> Markup:
    """A row for each wavefront, a column for each bank, in the cells the lanes; a phase has one colour.

    An <svg> of 848 px width, for a box that scrolls; or for another <svg>, `at` px below its top.
    """
    parts, y = [heading()], HEIGHT
    for number, phase in enumerate(pattern.phases):
        for turn, wavefront in enumerate(phase.wavefronts):
            label = f"wait {turn}" if turn else lane_names(phase.lanes)
            colour = "hot" if turn else hue(number)
            parts.append(text(label, LABEL - 8, y, "end"))
            parts += [
                cell(first, count, name_of(lanes, count), colour, y)
                for first, count, lanes in bank_spans(wavefront)
            ]
            parts.append(frame(y))
            y += HEIGHT
        y += GAP
    return svg(parts, y, f"{pattern.action} of {pattern.name}: wavefronts and banks", at)


def tile_svg(pattern: Pattern, at: int | None = None) -> Markup:
    """Where the lanes' words lie: a row for 128 bytes of shared memory, a column for each bank. An <svg> as
    `request_svg` makes it."""
    parts, y, before = [heading()], HEIGHT, None
    for row, spans in tile_rows(pattern):
        if before is not None and row > before + 1:
            parts.append(text("...", LABEL - 8, y, "end"))
            y += HEIGHT
        parts.append(text(place_of_row(row), LABEL - 8, y, "end"))
        parts += [
            cell(first, count, name_of(lanes, count), colour, y) for first, count, lanes, colour in spans
        ]
        parts.append(frame(y))
        y, before = y + HEIGHT, row
    return svg(parts, y + 2, f"{pattern.action} of {pattern.name}: words of the lanes", at)


def document_svg(patterns: Sequence[Pattern], title: str, others: Sequence[Drawn] = ()) -> str:
    """One SVG file of all patterns, and of others: captions and pictures, one below the other."""
    parts, y = [text(title, 8, 4, "start")], 2 * HEIGHT
    for pattern in patterns:
        for line in (*textwrap.wrap(caption(pattern), COLUMNS), *textwrap.wrap(place_of(pattern), COLUMNS)):
            parts.append(text(line, 8, y, "start"))
            y += HEIGHT
        for draw in (request_svg, tile_svg):
            drawn = draw(pattern, y)
            parts.append(drawn)
            y += height_of(drawn) + HEIGHT
        y += HEIGHT
    for said, draw_other, other in others:
        for line in textwrap.wrap(said, COLUMNS):
            parts.append(text(line, 8, y, "start"))
            y += HEIGHT
        drawn = draw_other(other, y)
        parts.append(drawn)
        y += height_of(drawn) + 2 * HEIGHT
    return svg([element("rect", class_="paper", width="100%", height="100%"), *parts], y, title) + "\n"


def height_of(drawn: Markup) -> int:
    found = re.search(r'height="(\d+)"', drawn)
    assert found, "svg() writes it"
    return int(found[1])


def svg(parts: Sequence[Markup], height: int, title: str, at: int | None = None) -> Markup:
    width = LABEL + BANKS * CELL + 8
    box = {"width": width, "height": height, "viewBox": f"0 0 {width} {height}", "role": "img"}
    style = f"max-width:none;min-width:{width}px"
    inside = (element("title", title), element("style", STYLE), *parts)
    return element(
        "svg", *inside, y=at, class_="banks", xmlns="http://www.w3.org/2000/svg", **box, style=style
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


def cell(first: int, count: int, content: str, colour: str, y: int) -> Markup:
    x, width = LABEL + first * CELL, count * CELL
    label = element("text", content, class_="cell", x=f"{x + width / 2:g}", y=y + HEIGHT - 5)
    return element("rect", class_=colour, x=x, y=y, width=width, height=HEIGHT) + label


def frame(y: int) -> Markup:
    """The grid of a row: a line around it, and a tick every four banks."""
    ticks = "".join(f"M{LABEL + bank * CELL} {y}v{HEIGHT}" for bank in range(4, BANKS, 4))
    return element("path", class_="rule", d=f"M{LABEL} {y}h{BANKS * CELL}v{HEIGHT}h-{BANKS * CELL}z{ticks}")


def hue(number: int) -> str:
    return f"p{number % HUES}"


def bank_spans(wavefront: Wavefront) -> Iterator[BankSpan]:
    """Neighbouring banks that serve the same lanes, such as of one wide access, taken together."""
    bank = 0
    while bank < BANKS:
        if bank not in wavefront:
            bank += 1
            continue
        first, one = bank, wavefront[bank]
        bank += 1
        while (
            bank in wavefront
            and wavefront[bank].lanes == one.lanes
            and wavefront[bank].word - one.word == bank - first
        ):
            bank += 1
        yield first, bank - first, one.lanes


def tile_rows(pattern: Pattern) -> list[tuple[int, list[tuple[int, int, tuple[int, ...], str]]]]:
    """Touched rows of 128 bytes: their banks, lanes, and the colour of the phase that serves them."""
    rows: dict[int, dict[int, tuple[list[int], str]]] = {}
    for number, phase in enumerate(pattern.phases):
        for lane in phase.lanes:
            for word in words_of(pattern.addresses[lane], pattern.width):
                row = rows.setdefault(word * WORD // LINE, {})
                row.setdefault(word % BANKS, ([], hue(number)))[0].append(lane)
    return [(row, list(join_words(words))) for row, words in sorted(rows.items())]


def join_words(words: dict[int, tuple[list[int], str]]) -> Iterator[tuple[int, int, tuple[int, ...], str]]:
    """Neighbouring words of the same lanes, taken together."""
    banks = sorted(words)
    while banks:
        first = banks.pop(0)
        count = 1
        while banks and banks[0] == first + count and words[banks[0]] == words[first]:
            count, _ = count + 1, banks.pop(0)
        lanes, colour = words[first]
        yield first, count, tuple(lanes), colour


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


def request_text(pattern: Pattern, width: int | None = None) -> Text:
    """What `request_svg` shows, in lines of 113 characters, three for each bank. width: of a terminal; a
    narrower one has the banks in several pictures, one below the other."""
    rows: list[tuple[str, Cells | None]] = []
    for number, phase in enumerate(pattern.phases):
        for turn, wavefront in enumerate(phase.wavefronts):
            style = CONFLICT_STYLE if turn else TEXT_STYLES[number % HUES]
            label = f"wait {turn}" if turn else lane_names(phase.lanes)
            rows.append((label, {bank: (name_of(one.lanes), style) for bank, one in wavefront.items()}))
    return text_of(rows, width)


def tile_text(pattern: Pattern, width: int | None = None) -> Text:
    """What `tile_svg` shows."""
    rows: list[tuple[str, Cells | None]] = []
    before = None
    for row, found in tile_rows(pattern):
        if before is not None and row > before + 1:
            rows.append(("...", None))
        cells: Cells = {}
        for first, count, lanes, colour in found:
            style = TEXT_STYLES[int(colour[1:])]
            cells |= dict.fromkeys(range(first, first + count), (name_of(lanes), style))
        rows.append((place_of_row(row), cells))
        before = row
    return text_of(rows, width)


def text_of(rows: Sequence[tuple[str, Cells | None]], width: int | None) -> Text:
    """Rows below the numbers of the banks: a label and the cells; None for what is left out between two
    rows."""
    from rich.text import Text

    count = next(
        (count for count in (BANKS, BANKS // 2, BANKS // 4) if not width or TEXT_LABEL + 3 * count <= width),
        BANKS // 8,
    )
    lines = Text()
    for first in range(0, BANKS, count):
        banks = range(first, first + count)
        numbers = "".join(f"{bank:3}" for bank in banks)
        lines.append("\n" * (first > 0) + f"{AXIS:>15} |{numbers}\n", "dim")
        for label, cells in rows:
            if cells is None:
                lines.append(f"{label:>15}\n", "dim")
                continue
            lines.append(f"{label:>15} |")
            for content, style in (cells.get(bank, (".", "dim")) for bank in banks):
                lines.append(f"{content:>3}", style)
            lines.append("\n")
    return lines
