"""Pictures of slabs: which row and piece of 16 bytes lies in which banks, and which product reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup

from tir_schedules.insight.banks.pictures import (
    HEIGHT,
    HUES,
    LABEL,
    TEXT_LABEL,
    TEXT_STYLES,
    cell,
    frame,
    heading,
    svg,
    text,
)
from tir_schedules.insight.banks.slabs import GROUPS, PIECE, Cell, Slab
from tir_schedules.insight.banks.wavefronts import BANKS, LINE, WORD

if TYPE_CHECKING:
    from rich.text import Text

LETTERS = "abcdefghijklmnopqrstuvwxyz"
SHARE = PIECE // WORD  # banks of a piece
LINES_SHOWN = 16


def caption(slab: Slab) -> str:
    """What it is, and how a wgmma meets the banks in it."""
    size = f"{slab.rows} rows of {slab.pieces * PIECE} bytes from byte {slab.start}"
    what = {
        "box": f"box of {slab.buffer}: {size}, one of {slab.count}",
        "store": f"box of {slab.buffer} that is written back: {size}, one of {slab.count}",
        "factor": f"factor {slab.buffer} of wgmma: {size}, read by {slab.count} products",
    }[slab.kind]
    banks = (
        f"8 rows of a piece lie in all {BANKS} banks"
        if slab.turns == 1
        else f"8 rows of a piece ask the same 4 banks {slab.turns} times"
    )
    read = {
        True: "; wgmma reads it as the box wrote it",
        False: "; wgmma READS OTHER ROWS OR PIECES",
        None: "",
    }
    return f"{what}; {banks}{read[slab.agrees]}"


LEGEND = (
    "Of slabs: r.p is piece p, of 16 bytes, of row r; a letter: the product of its warpgroup that reads it.",
    "Places are those that were executed; that a wgmma asks for 8 rows of a piece at once is a model.",
)


def lines_of(slab: Slab) -> list[tuple[int, dict[int, Cell]]]:
    """The first lines of 128 bytes: their address, and the cell in each group of four banks."""
    found: dict[int, dict[int, Cell]] = {}
    for one, address in slab.places.items():
        found.setdefault(address // LINE, {})[address % LINE // PIECE] = one
    return [(line * LINE, cells) for line, cells in sorted(found.items())[:LINES_SHOWN]]


def label(slab: Slab, one: Cell) -> str:
    reader = slab.readers.get(one)
    letter = "" if reader is None else LETTERS[reader % len(LETTERS)]
    return f"{one[0]}.{one[1]}{letter}"


def hue_of(slab: Slab, one: Cell) -> int:
    return slab.readers.get(one, 0) % HUES


def slab_svg(slab: Slab, at: int | None = None) -> Markup:
    """An <svg> as `request_svg` of pictures.py makes it: a row for 128 bytes, a cell for each piece."""
    parts, y = [heading()], HEIGHT
    for address, cells in lines_of(slab):
        parts.append(text(f"byte {address}", LABEL - 8, y, "end"))
        parts += [
            cell(group * SHARE, SHARE, label(slab, one), f"p{hue_of(slab, one)}", y)
            for group, one in sorted(cells.items())
        ]
        parts.append(frame(y))
        y += HEIGHT
    return svg(parts, y + 2, caption(slab), at)


def slab_text(slab: Slab, width: int | None = None) -> Text:
    """What `slab_svg` shows. width: of a terminal; a narrower one has narrower cells."""
    from rich.text import Text

    room = SHARE * 3 if not width or TEXT_LABEL + BANKS * 3 <= width else 7
    banks = "".join(f"{f'{k * SHARE}-{(k + 1) * SHARE - 1}':>{room}}" for k in range(GROUPS))
    lines = Text(f"{'bank':>15} |{banks}\n", "dim")
    for address, cells in lines_of(slab):
        lines.append(f"{f'byte {address}':>15} |")
        for group in range(GROUPS):
            one = cells.get(group)
            style = "dim" if one is None else TEXT_STYLES[hue_of(slab, one)]
            lines.append(f"{'.' if one is None else label(slab, one):>{room}}", style)
        lines.append("\n")
    return lines
