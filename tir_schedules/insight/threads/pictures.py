"""Pictures of who accesses which element: text, in which a character is an element or several that are alike,
and inline SVG, in colours for light and dark."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Sequence

import numpy as np
from markupsafe import Markup

from tir_schedules.errors import fold_paragraph
from tir_schedules.insight.metrics.formats import plural
from tir_schedules.insight.threads.mapping import ThreadMap
from tir_schedules.insight.threads.regions import NOBODY, SEVERAL, Grid, Rectangle, grid_of, rectangles_of
from tir_schedules.pages import element

if TYPE_CHECKING:
    from rich.text import Text

SYMBOLS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
UNTOUCHED, MIXED = ".", "*"
STYLES = ("cyan", "green", "magenta", "yellow", "blue", "red")
LABEL = 9  # characters before the first element
TICKS = 8  # characters from one number of a column to the next
USUAL_WIDTH = 80  # where no terminal says
MOST_LINES = 64
CUT = "are shown"
LESS = "--warp, --lane, --tile or a smaller size show less at once."
MOST_FOLDED = 1 << 10  # elements along one side of what a character stands for


@dataclass(frozen=True)
class Picture:
    """Elements coloured by `by`, see mapping.BY. found: the accesses that it shows."""

    found: ThreadMap
    by: str
    title: str


def picture_of(found: ThreadMap, by: str, warp: int | None = None, lane: int | None = None) -> Picture:
    """The picture of the block, or of one of its warps, or of a lane of that warp."""
    of = "all blocks" if found.block is None else "the block"
    if warp is not None:
        found, of = found.among(found.accesses["warp"] == warp), f"warp {warp}"
        if lane is not None:
            found, of = found.among(found.accesses["lane"] == lane), f"lane {lane} of {of}"
    return Picture(found, by, f"elements of {of} by {by}")


def first_of(found: ThreadMap, warp: int | None, lane: int | None) -> tuple[int, int]:
    """A warp and a lane of it; the first that access the array where none is named."""
    if warp is None:
        warp = int(found.accesses["warp"].min())
    own = found.accesses[found.accesses["warp"] == warp]
    return warp, lane if lane is not None else int(own["lane"].min()) if len(own) else 0


# ---- text ---
def text_of(picture: Picture, width: int | None = None) -> tuple[Text, list[str]]:
    """The picture, and what else must be known of it. width: of a terminal."""
    from rich.text import Text

    grid, notes = grid_of(picture.found, picture.by), []
    down, across, grid, note = folded(grid, max(TICKS, (width or USUAL_WIDTH) - LABEL))
    if down * across > 1:
        size = f"{plural(down, 'row')} x {plural(across, 'column')}"
        notes.append(f"a character stands for {size} of elements, all alike")
    notes += [note] if note else []
    lines, flat, places = Text(), picture.found.flat, places_of(grid)
    count = grid.keys.shape[1]
    ticks = "".join(f"{grid.column + at * across:<{TICKS}}" for at in range(0, count, TICKS))
    lines.append(" " * LABEL + ticks.rstrip() + "\n", "dim")
    for at, keys in enumerate(grid.keys):
        row = int(grid.rows[at])
        if at and row != grid.rows[at - 1] + down:
            lines.append(f"{'...':>{LABEL - 2}}\n", "dim")
        lines.append(f"{row * picture.found.shape[1] if flat else row:>{LABEL - 2}}  ", "dim")
        for key in keys.tolist():
            symbol, style = UNTOUCHED, "dim"
            if key != NOBODY:
                symbol = MIXED if key == SEVERAL else SYMBOLS[places[key]]
                style = "" if key == SEVERAL else STYLES[key % len(STYLES)]
            lines.append(symbol, style)
        lines.append("\n")
    return lines, [legend(picture, grid), *notes]


def places_of(grid: Grid) -> dict[int, int]:
    """For each key, in rising order, the number of its symbol: the key itself or, if some key has no symbol,
    its rank among the keys that are drawn. After the last symbol the first follows again."""
    keys = sorted({*np.unique(grid.keys).tolist()} - {NOBODY, SEVERAL})
    ranked = bool(keys) and keys[-1] >= len(SYMBOLS)
    return {key: (at if ranked else key) % len(SYMBOLS) for at, key in enumerate(keys)}


def legend(picture: Picture, grid: Grid) -> str:
    """What the symbols of a picture mean."""
    places, told = places_of(grid), []
    keys = [*places]
    names = "warp schedulers" if picture.by == "scheduler" else f"{picture.by}s"
    if keys:
        symbols = ranges_of(sorted({*places.values()}))
        numbers = ", ".join(span_of(run) for run in runs_in_list(keys))
        again = f", {SYMBOLS[-1]} is followed by 0 again" if len(keys) > len(SYMBOLS) else ""
        told.append(f"{symbols}: {names if len(keys) > 1 else names[:-1]} {numbers}{again}")
        if picture.by == "block":
            told.append("blocks are numbered with x fastest, then y, then z")
    told += [f"{MIXED}: several {names}"] if (grid.keys == SEVERAL).any() else []
    told += [f"{UNTOUCHED}: not accessed"] if (grid.keys == NOBODY).any() else []
    return "; ".join(told)


def runs_in_list(values: Sequence[int]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for value in values:
        if found and found[-1][1] == value - 1:
            found[-1] = found[-1][0], value
        else:
            found.append((value, value))
    return found


def span_of(run: tuple[int, int]) -> str:
    return str(run[0]) if run[0] == run[1] else f"{run[0]}-{run[1]}"


def ranges_of(places: Sequence[int]) -> str:
    """ "0-9 A-V": symbols by their places."""
    parts = []
    for first, last in ((0, 9), (10, 35), (36, 61)):
        for run in runs_in_list([place for place in places if first <= place <= last]):
            parts.append(SYMBOLS[run[0]] if run[0] == run[1] else f"{SYMBOLS[run[0]]}-{SYMBOLS[run[1]]}")
    return " ".join(parts)


def folded(grid: Grid, room: int) -> tuple[int, int, Grid, str]:
    """How many rows and columns of elements a character stands for, one for each; what is drawn; and a note
    where something is left out."""
    note, across, whole = "", 1, grid.keys.shape
    while -(-grid.keys.shape[1] // across) > room and across < MOST_FOLDED:
        across *= 2
    if fold(grid, 1, across) is None:
        across, shown = 1, room // TICKS * TICKS
        grid = replace(grid, keys=grid.keys[:, :shown])
    fitting = powers(min(2 * across, len(grid.rows)))
    down = max(each for each in fitting if fold(grid, each, across) is not None)
    while -(-len(grid.rows) // down) > MOST_LINES and fold(grid, 2 * down, across) is not None:
        down *= 2
    small = fold(grid, down, across)
    assert small is not None, "each row by itself can be drawn"
    if len(small.rows) > MOST_LINES:
        small = replace(small, rows=small.rows[:MOST_LINES], keys=small.keys[:MOST_LINES])
    rows = min(whole[0], len(small.rows) * down)
    if rows < whole[0] or grid.keys.shape[1] < whole[1]:
        note = cut_note((rows, grid.keys.shape[1]), whole)
    return down, across, small, note


def powers(largest: int) -> list[int]:
    return [1 << at for at in range(largest.bit_length()) if 1 << at <= largest]


def fold(grid: Grid, down: int, across: int) -> Grid | None:
    """A key for so many rows and columns; None where they are not alike, or rows are left out between."""
    rows, columns = grid.keys.shape
    padded = np.pad(grid.keys, ((0, -rows % down), (0, -columns % across)), mode="edge")
    parts = padded.reshape(padded.shape[0] // down, down, padded.shape[1] // across, across)
    if (parts != parts[:, :1, :, :1]).any():
        return None
    starts = grid.rows[::down]
    if down > 1 and any(grid.rows[at : at + down][-1] - grid.rows[at] != len(grid.rows[at : at + down]) - 1
                        for at in range(0, rows, down)):  # fmt: skip
        return None
    return Grid(starts, grid.column, parts[:, 0, :, 0])


# ---- SVG ---
WIDTH = 768  # px for all columns
LEAST, MOST = 2, 26  # px for an element
LETTERS = 120  # of a line of text
SIDE, TOP = 60, 20  # px for the numbers of rows and columns
HUES = 32
ROOM = 14  # px that a number needs
MOST_RECTANGLES = 1 << 14
STYLE = Markup(
    """
.threads { --light: 82%; --ink: #16191d; --dim: #565d66; --line: #16191d; --several: #c4cad1;
  --paper: #fff; }
@media (prefers-color-scheme: dark) {
  .threads { --light: 24%; --ink: #f0f2f4; --dim: #aab2bc; --line: #f0f2f4; --several: #4a515a;
    --paper: #15171a; }
}
.threads text { fill: var(--ink); text-anchor: middle;
  font: 11px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
.threads .dim { fill: var(--dim); } .threads .row { text-anchor: end; }
.threads rect { stroke: var(--paper); stroke-width: .5; }
.threads .warps { stroke: var(--line); stroke-width: 1.5; fill: none; }
.threads .several { fill: var(--several); } .threads .paper { fill: var(--paper); stroke: none; }
"""
    + "\n".join(
        f".threads .k{at} {{ fill: hsl({at * 360 // HUES} 62% var(--light)); }}" for at in range(HUES)
    )
)


def class_of(by: str, key: int) -> str:
    """Lanes and steps run round the circle of colours; neighbouring warps and blocks lie far apart on it."""
    if key == SEVERAL:
        return "several"
    return f"k{key % HUES if by in ('lane', 'step') else key * 13 % HUES}"


def svg_of(picture: Picture, y: int | None = None) -> Markup:
    """An <svg> for a box that scrolls, in which each piece says its warp, lane and steps; or for another
    <svg>, y px below its top."""
    found, grid = picture.found, grid_of(picture.found, picture.by)
    levels = {"lane": ("warp", "lane"), "step": ("warp", "lane", "step")}.get(picture.by, (picture.by,))
    grids = {level: grid if level == picture.by else grid_of(found, level) for level in levels}
    merged = grid
    for level in levels[:-1]:
        merged = grids[level].joined(merged) if (grids[level].keys != SEVERAL).any() else merged
    hidden = merged.keys if merged is grid else np.where(grid.keys == NOBODY, NOBODY, merged.keys)
    whole, rectangles = grid, at_most(Grid(grid.rows, grid.column, hidden))
    if rectangles is None:  # then one for neighbours of one colour, whoever else they differ in
        grid = fitting(grid)
        grids = {level: each.first(*grid.keys.shape) for level, each in grids.items()}
        rectangles = list(rectangles_of(grid))
    scale = max(LEAST, min(MOST, WIDTH // grid.keys.shape[1]))
    parts = [axes(grid, scale, found)]
    for each in rectangles:
        key = int(grid.keys[each.top, each.left])
        x, top = SIDE + each.left * scale, TOP + each.top * scale
        width, height = (each.right - each.left) * scale, (each.bottom - each.top) * scale
        told = [
            name_of(found, level, each.key_in(grids[level]), f"{level} ", f"several {level}s")
            for level in levels
        ]
        where = place_text(found, grid, each.top, each.bottom, each.left, each.right)
        title = element("title", f"{', '.join(told)}: {where}")
        parts.append(
            element("rect", title, class_=class_of(picture.by, key), x=x, y=top, width=width, height=height)
        )
        if key >= 0 and height >= ROOM - 2 and width >= ROOM + 4 * (len(name_of(found, picture.by, key)) - 2):
            middle = f"{x + width / 2:g}", f"{top + height / 2 + 3.5:g}"
            parts.append(element("text", name_of(found, picture.by, key), x=middle[0], y=middle[1]))
    if "warp" in grids and picture.by != "warp":
        parts.append(element("path", class_="warps", d=borders(grids["warp"], scale)))
    if grid.keys.shape != whole.keys.shape:
        below = TOP + grid.keys.shape[0] * scale + 14
        left = {"class_": "dim row", "style": "text-anchor:start", "x": SIDE}
        told = f"{cut_note(grid.keys.shape, whole.keys.shape)}. {LESS}"
        parts.append(element("text", told, **left, y=below))
    width, height = SIDE + grid.keys.shape[1] * scale + 8, TOP + grid.keys.shape[0] * scale + 20
    inside = (element("title", picture.title), element("style", STYLE), *parts)
    return element(
        "svg", *inside, y=y, class_="threads", xmlns="http://www.w3.org/2000/svg", width=width, height=height,
        viewBox=f"0 0 {width} {height}", role="img", style=f"max-width:none;min-width:{width}px",
    )  # fmt: skip


def at_most(grid: Grid) -> list[Rectangle] | None:
    """Its rectangles; None where they are more than a picture holds."""
    found = list(islice(rectangles_of(grid), MOST_RECTANGLES + 1))
    return found if len(found) <= MOST_RECTANGLES else None


def fitting(grid: Grid) -> Grid:
    """As many of the first rows, or of the columns of the first, as a picture holds."""
    while at_most(grid) is None:
        rows, columns = grid.keys.shape
        grid = grid.first(-(-rows // 2), columns if rows > 1 else columns // 2)
    return grid


def cut_note(part: tuple[int, int], whole: tuple[int, int]) -> str:
    """What of a picture is shown: rows and columns."""
    return f"the first {part[0]} of {whole[0]} rows and {part[1]} of {whole[1]} columns {CUT}"


def is_whole(picture: Picture) -> bool:
    """Whether an SVG has room for all that a picture shows."""
    return at_most(grid_of(picture.found, picture.by)) is not None


def name_of(found: ThreadMap, by: str, key: int, before: str = "", several: str = "several") -> str:
    if key == SEVERAL:
        return several
    return before + (found.block_name(key) if by == "block" else str(key))


def place_text(found: ThreadMap, grid: Grid, top: int, bottom: int, left: int, right: int) -> str:
    first, last = int(grid.rows[top]), int(grid.rows[bottom - 1])
    if found.flat:
        start = first * found.shape[1]
        return f"elements {start + grid.column + left} to {last * found.shape[1] + grid.column + right - 1}"
    columns = span_of((grid.column + left, grid.column + right - 1))
    return f"row {span_of((first, last))}, column {columns}"


def axes(grid: Grid, scale: int, found: ThreadMap) -> Markup:
    """Numbers of rows and columns, as many as have room."""
    step = next(each for each in powers(1 << 16) if each * scale >= 40)
    rows = next(each for each in powers(1 << 16) if each * scale >= ROOM)
    parts = [
        element("text", grid.column + at, class_="dim", x=f"{SIDE + (at + 0.5) * scale:g}", y=TOP - 6)
        for at in range(0, grid.keys.shape[1], step)
    ]
    for at in range(len(grid.rows)):
        broken = at and grid.rows[at] != grid.rows[at - 1] + 1
        if at % rows == 0 or broken:
            number = int(grid.rows[at]) * (found.shape[1] if found.flat else 1)
            y = f"{TOP + (at + 0.5) * scale + 3.5:g}"
            parts.append(element("text", number, class_="dim row", x=SIDE - 6, y=y))
        if broken:
            line = f"M{SIDE - 50} {TOP + at * scale}h46"
            parts.append(element("path", class_="warps", d=line))
    return Markup("").join(parts)


def borders(grid: Grid, scale: int) -> str:
    """A line between elements of different warps, and around those of each."""
    keys = np.pad(grid.keys, 1, constant_values=NOBODY)
    found = []
    for across in (False, True):
        ours = keys.T if across else keys
        for at in range(1, ours.shape[1]):
            edge = np.flatnonzero(ours[1:-1, at - 1] != ours[1:-1, at])
            for first, last in runs_in_list(edge.tolist()):
                length, begin, line = (last - first + 1) * scale, first * scale, (at - 1) * scale
                x, y = (SIDE + begin, TOP + line) if across else (SIDE + line, TOP + begin)
                found.append(f"M{x} {y}{'h' if across else 'v'}{length}")
    return "".join(found)


def document_svg(pictures: Sequence[Picture], said: Sequence[str], title: str) -> str:
    """One SVG file: sentences, and pictures one below the other."""
    parts, y, width = [], 20, WIDTH + SIDE + MOST
    for line in (part for text in (title, *said) for part in fold_paragraph(text, LETTERS)):
        parts.append(element("text", line, class_="row", style="text-anchor:start", x=8, y=y))
        y += 18
    for picture in pictures:
        parts.append(element("text", picture.title, style="text-anchor:start", x=8, y=y + 14))
        drawn = svg_of(picture, y + 20)
        parts.append(drawn)
        y += 40 + int(str(drawn).split('height="', 1)[1].split('"', 1)[0])
    paper = element("rect", class_="paper", width="100%", height="100%")
    inside = (element("title", title), element("style", STYLE), paper, *parts)
    return element(
        "svg", *inside, class_="threads", xmlns="http://www.w3.org/2000/svg", width=width, height=y,
        viewBox=f"0 0 {width} {y}", role="img",
    ) + "\n"  # fmt: skip
