"""Pictures of tiles in shared memory: the banks of each piece of 16 bytes, and the product that reads it."""

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
from tir_schedules.insight.banks.shared_tiles import GROUPS, PIECE, Cell, SharedTile
from tir_schedules.insight.banks.wavefronts import BANKS, LINE, WORD

if TYPE_CHECKING:
    from rich.text import Text

LETTERS = "abcdefghijklmnopqrstuvwxyz"
SHARE = PIECE // WORD  # banks of a piece
LINES_SHOWN = 16


def caption(tile: SharedTile) -> str:
    """What it is, and how a wgmma meets the banks in it."""
    size = f"{tile.rows} rows of {tile.pieces * PIECE} bytes from byte {tile.start}"
    what = {
        "box": f"box of {tile.buffer}: {size}, one of {tile.count}",
        "store": f"box of {tile.buffer} that is written back: {size}, one of {tile.count}",
        "factor": f"factor {tile.buffer} of wgmma: {size}, read by {tile.count} products",
    }[tile.kind]
    banks = (
        f"8 rows of a piece lie in all {BANKS} banks"
        if tile.turns == 1
        else f"8 rows of a piece ask the same 4 banks {tile.turns} times"
    )
    read = {
        True: "; wgmma reads it as the box wrote it",
        False: "; wgmma READS OTHER ROWS OR PIECES",
        None: "",
    }
    return f"{what}; {banks}{read[tile.agrees]}"


LEGEND = (
    "Of tiles: r.p is piece p, of 16 bytes, of row r; a letter: the product of its warpgroup that reads it.",
    "Places are those that were executed; that a wgmma asks for 8 rows of a piece at once is a model.",
)


def lines_of(tile: SharedTile) -> list[tuple[int, dict[int, Cell]]]:
    """The first lines of 128 bytes: their address, and the cell in each group of four banks."""
    found: dict[int, dict[int, Cell]] = {}
    for one, address in tile.places.items():
        found.setdefault(address // LINE, {})[address % LINE // PIECE] = one
    return [(line * LINE, cells) for line, cells in sorted(found.items())[:LINES_SHOWN]]


def label(tile: SharedTile, one: Cell) -> str:
    reader = tile.readers.get(one)
    letter = "" if reader is None else LETTERS[reader % len(LETTERS)]
    return f"{one[0]}.{one[1]}{letter}"


def hue_of(tile: SharedTile, one: Cell) -> int:
    return tile.readers.get(one, 0) % HUES


def tile_svg(tile: SharedTile, at: int | None = None) -> Markup:
    """An <svg> as `request_svg` of pictures.py makes it: a row for 128 bytes, a cell for each piece."""
    parts, y = [heading()], HEIGHT
    for address, cells in lines_of(tile):
        parts.append(text(f"byte {address}", LABEL - 8, y, "end"))
        parts += [
            cell(group * SHARE, SHARE, label(tile, one), f"p{hue_of(tile, one)}", y)
            for group, one in sorted(cells.items())
        ]
        parts.append(frame(y))
        y += HEIGHT
    return svg(parts, y + 2, caption(tile), at)


def tile_text(tile: SharedTile, width: int | None = None) -> Text:
    """What `tile_svg` shows. width: of a terminal; a narrower one has narrower cells."""
    from rich.text import Text

    room = SHARE * 3 if not width or TEXT_LABEL + BANKS * 3 <= width else 7
    banks = "".join(f"{f'{k * SHARE}-{(k + 1) * SHARE - 1}':>{room}}" for k in range(GROUPS))
    lines = Text(f"{'bank':>15} |{banks}\n", "dim")
    for address, cells in lines_of(tile):
        lines.append(f"{f'byte {address}':>15} |")
        for group in range(GROUPS):
            one = cells.get(group)
            style = "dim" if one is None else TEXT_STYLES[hue_of(tile, one)]
            lines.append(f"{'.' if one is None else label(tile, one):>{room}}", style)
        lines.append("\n")
    return lines
