"""Request patterns as a page or a picture, and printed."""

from __future__ import annotations

from typing import Sequence

from rich.markup import escape

from tir_schedules.console import console, print_line, print_table, print_whole, terminal_width
from tir_schedules.insight.banks import pictures, shared_tiles
from tir_schedules.insight.banks.pictures import LEGEND, TEXT_LABEL, caption, pictures_of, place_of
from tir_schedules.insight.banks.requests import Pattern
from tir_schedules.insight.banks.shared_tiles import SharedTile
from tir_schedules.insight.banks.wavefronts import BANKS
from tir_schedules.model.kernel import Binary
from tir_schedules.pages import render


def document(
    suffix: str,
    title: str,
    subject: str,
    patterns: Sequence[Pattern],
    notes: list[str],
    binary: Binary,
    tiles: Sequence[SharedTile] = (),
) -> str:
    """The text of a page or of a picture."""
    if suffix == ".svg":
        sections = [((caption(one), place_of(one)), pictures_of(one)) for one in patterns]
        drawn = [((shared_tiles.caption(tile),), (shared_tiles.tile_picture(tile),)) for tile in tiles]
        return pictures.document_svg([*sections, *drawn], f"{title}, {subject}")
    kernel = binary.kernel
    provenance = [f"{kernel.label} for {kernel.arch}, executed on the CPU machine; no GPU took part", *notes]
    return render(
        "layout.html.j2",
        title=title,
        subject=subject,
        patterns=patterns,
        pictures=pictures,
        tiles=tiles,
        shared_tiles=shared_tiles,
        provenance=provenance,
    )


def print_patterns(
    title: str, patterns: Sequence[Pattern], notes: list[str], tiles: Sequence[SharedTile] = ()
) -> None:
    """A table of all patterns, then the pictures of each; then those of tiles in shared memory."""
    print_line(title)
    if patterns:
        print_requests(patterns)
    for tile in tiles:
        print_line()
        print_line(shared_tiles.caption(tile))
        print_picture(shared_tiles.tile_picture(tile))
    print_line()
    legends = (LEGEND if patterns else ()) + (shared_tiles.LEGEND if tiles else ())
    for line in (*legends, *notes):
        print_line(line)


def print_requests(patterns: Sequence[Pattern]) -> None:
    width = terminal_width()
    rows = [
        (p.name, p.action, str(p.requests), str(p.wavefronts), str(p.ideal), str(p.width), lines_of(p))
        for p in patterns
    ]
    columns = ("buffer", "access", "requests", "wavefronts each", "(ideal)", "bytes per lane", "lines")
    print_table(columns, [tuple(map(escape, row)) for row in rows], prose={"buffer": 6, "lines": 12}, keys=2)
    for pattern in patterns:
        print_line()
        print_whole(place_of(pattern))
        print_line(caption(pattern))
        requests, tile = pictures_of(pattern)
        print_picture(requests)
        if width and width < TEXT_LABEL + 3 * BANKS:  # pictures that are cut themselves
            print_line()
        print_picture(tile)


def print_picture(picture: pictures.Picture) -> None:
    console().print(pictures.text_of(picture, terminal_width()), end="", soft_wrap=True)


def lines_of(pattern: Pattern) -> str:
    return ", ".join(str(location.line) for location in pattern.locations)
