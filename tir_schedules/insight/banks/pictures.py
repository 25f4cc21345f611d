"""Pictures of requests to shared memory: which lane each bank serves in which wavefront, and where the lanes'
words lie.

As inline SVG, self-contained, in colours for light and dark; and as text of 32 columns. A colour is a phase;
the colour of conflict marks words that have to wait for another wavefront.
"""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING, Iterator, Sequence

from markupsafe import Markup

from tir_schedules.insight.banks.banks import BANKS, LINE, WORD, Wavefront, cost, words_of
from tir_schedules.pages.markup import element

if TYPE_CHECKING:
    from rich.text import Text

    from tir_schedules.insight.banks.layout import Pattern

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
.banks text { font: 11.5px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: var(--ink); }
.banks .cell { text-anchor: middle; }
.banks .dim { fill: var(--dim); }
.banks .rule { stroke: var(--rule); fill: none; }
.banks .p0 { fill: var(--p0); } .banks .p1 { fill: var(--p1); } .banks .p2 { fill: var(--p2); } .banks .p3 { fill: var(--p3); }
.banks .hot { fill: var(--hot); }
.banks rect { stroke: var(--rule); }
.banks .paper { fill: var(--paper); stroke: none; }
""")

Run = tuple[int, int, tuple[int, ...]]
"""First bank, number of banks beside each other that serve the same lanes, and these lanes."""


def caption(pattern: Pattern) -> str:
    """What a pattern's requests are and what they cost, such as "load of A: 8 requests of 16 bytes per lane,
    4 wavefronts each, no bank conflicts"."""
    waves = f"{counted(pattern.wavefronts, 'wavefront')} each, no bank conflicts"
    if not pattern.by_banks:
        by_banks = cost(pattern.phases)
        waves = (
            f"{pattern.wavefronts} wavefronts each, which of a copy depend on its source as well; its banks"
            f" alone take {by_banks}"
        )
    elif pattern.wavefronts > pattern.ideal:
        waves = f"{pattern.wavefronts} wavefronts each where {pattern.ideal} would do without bank conflicts"
    stride = pattern.stride
    apart = f", neighbouring lanes {stride} bytes apart" if stride not in (None, 0, pattern.width) else ""
    starts = (
        f"bank {' or '.join(map(str, pattern.starts))}"
        if len(pattern.starts) < 5
        else f"one of {len(pattern.starts)} banks"
    )
    shifted = f"; they begin in {starts}, the pictures show the first" if len(pattern.starts) > 1 else ""
    requests = f"{counted(pattern.requests, 'request')} of {pattern.width} bytes per lane{apart}"
    return f"{pattern.action} of {pattern.name}: {requests}, {waves}{shifted}"


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def place_of(pattern: Pattern) -> str:
    """The CUDA lines that make the requests, with the text of the first, unless that is but the operands of
    inline PTX."""
    first = pattern.locations[0]
    if not first.line:
        return str(first)
    lines = ", ".join(str(location.line) for location in pattern.locations)
    return f"{first.file}:{lines}: {'inline PTX' if first.text.startswith(':') else first.text}"


LEGEND = (
    (
        "A cell is a bank in one wavefront, the number the lane it serves; n+ stands for lane n and others"
        " that get the same word."
    ),
    (
        'A bank gives one word per wavefront: "wait 1" and further rows are wavefronts for words that had to'
        " wait."
    ),
)


# ---- SVG ---
def request_svg(pattern: Pattern, at: int | None = None) -> Markup:
    """Wavefront by wavefront, the banks that serve and the lanes they serve; lanes of one phase have one
    colour.

    An <svg> of 848 px width, to be put into a box that scrolls; or into another <svg>, at px below its top.
    """
    parts, y = [heading()], HEIGHT
    for number, phase in enumerate(pattern.phases):
        for turn, wavefront in enumerate(phase.wavefronts):
            label = f"wait {turn}" if turn else lane_names(phase.lanes)
            colour = "hot" if turn else hue(number)
            parts.append(text(label, LABEL - 8, y, "end"))
            parts += [
                cell(first, count, name_of(lanes, count), colour, y)
                for first, count, lanes in runs(wavefront)
            ]
            parts.append(frame(y))
            y += HEIGHT
        y += GAP
    return svg(parts, y, f"{pattern.action} of {pattern.name}: wavefronts and banks", at)


def tile_svg(pattern: Pattern, at: int | None = None) -> Markup:
    """Shared memory in rows of 128 bytes, one word in each bank: where the words lie that the lanes ask for.
    As `request_svg`."""
    parts, y, before = [heading()], HEIGHT, None
    for row, runs_in_row in tile_rows(pattern):
        if before is not None and row > before + 1:
            parts.append(text("...", LABEL - 8, y, "end"))
            y += HEIGHT
        parts.append(text(place_of_row(row), LABEL - 8, y, "end"))
        parts += [
            cell(first, count, name_of(lanes, count), colour, y)
            for first, count, lanes, colour in runs_in_row
        ]
        parts.append(frame(y))
        y, before = y + HEIGHT, row
    return svg(parts, y + 2, f"{pattern.action} of {pattern.name}: words of the lanes", at)


def document_svg(patterns: Sequence[Pattern], title: str) -> str:
    """One SVG file of all patterns: captions and pictures, one below the other."""
    parts, y = [text(title, 8, 4, "start")], 2 * HEIGHT
    for pattern in patterns:
        for line in (*textwrap.wrap(caption(pattern), COLUMNS), *textwrap.wrap(place_of(pattern), COLUMNS)):
            parts.append(text(line, 8, y, "start"))
            y += HEIGHT
        for draw in (request_svg, tile_svg):
            drawn = draw(pattern, y)
            parts.append(drawn)
            y += int(re.search(r'height="(\d+)"', drawn)[1]) + HEIGHT
        y += HEIGHT
    return svg([element("rect", class_="paper", width="100%", height="100%"), *parts], y, title) + "\n"


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


# ---- what is drawn
# -------------------------------------------------------------------------------------------------------
def runs(wavefront: Wavefront) -> Iterator[Run]:
    """Banks beside each other that serve the same lanes, as of one wide access, as one."""
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
    """Rows of 128 bytes that are touched -> their runs, with the colour of the phase that serves them."""
    rows: dict[int, dict[int, tuple[list[int], str]]] = {}
    for number, phase in enumerate(pattern.phases):
        for lane in phase.lanes:
            for word in words_of(pattern.addresses[lane], pattern.width):
                rows.setdefault(word * WORD // LINE, {}).setdefault(word % BANKS, ([], hue(number)))[
                    0
                ].append(lane)
    return [(row, list(joined(words))) for row, words in sorted(rows.items())]


def joined(words: dict[int, tuple[list[int], str]]) -> Iterator[tuple[int, int, tuple[int, ...], str]]:
    """Neighbouring words of the same lanes as one."""
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
    """The lanes of a cell: one as it is; of several the first and the last where there is room for it, else
    the first with a "+"."""
    if len(lanes) == 1:
        return str(lanes[0])
    whole = lanes[-1] - lanes[0] + 1 == len(lanes)
    return f"{lanes[0]}-{lanes[-1]}" if room > 1 and whole else f"{lanes[0]}+"


# ---- text ---
def request_text(pattern: Pattern, width: int | None = None) -> Text:
    """What `request_svg` shows, in lines of 113 characters: three for each bank. width: of a terminal; a
    narrower one has the banks in several pictures, one below the other."""
    rows = []
    for number, phase in enumerate(pattern.phases):
        for turn, wavefront in enumerate(phase.wavefronts):
            style = CONFLICT_STYLE if turn else TEXT_STYLES[number % HUES]
            label = f"wait {turn}" if turn else lane_names(phase.lanes)
            rows.append((label, {bank: (name_of(one.lanes), style) for bank, one in wavefront.items()}))
    return text_of(rows, width)


def tile_text(pattern: Pattern, width: int | None = None) -> Text:
    """What `tile_svg` shows."""
    rows, before = [], None
    for row, found in tile_rows(pattern):
        if before is not None and row > before + 1:
            rows.append(("...", None))
        cells = {}
        for first, count, lanes, colour in found:
            cells |= dict.fromkeys(
                range(first, first + count), (name_of(lanes), TEXT_STYLES[int(colour[1:])])
            )
        rows.append((place_of_row(row), cells))
        before = row
    return text_of(rows, width)


def text_of(rows: Sequence[tuple[str, dict[int, tuple[str, str]] | None]], width: int | None) -> Text:
    """Rows below the numbers of the banks: before each a label, in each bank's place the lanes, with their
    style; None for what is left out between two rows."""
    from rich.text import Text

    count = next(
        (count for count in (BANKS, BANKS // 2, BANKS // 4) if not width or TEXT_LABEL + 3 * count <= width),
        BANKS // 8,
    )
    lines = Text()
    for first in range(0, BANKS, count):
        banks = range(first, first + count)
        lines.append(
            "\n" * (first > 0) + f"{AXIS:>15} |" + "".join(f"{bank:3}" for bank in banks) + "\n", "dim"
        )
        for label, cells in rows:
            if cells is None:
                lines.append(f"{label:>15}\n", "dim")
                continue
            lines.append(f"{label:>15} |")
            for content, style in (cells.get(bank, (".", "dim")) for bank in banks):
                lines.append(f"{content:>3}", style)
            lines.append("\n")
    return lines
