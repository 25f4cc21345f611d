"""What `layout` shows: requests of a warp and tiles in shared memory, printed, as a page or a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Sequence

from rich.markup import escape

from tir_schedules.console import console, print_line, print_table, print_whole, terminal_width
from tir_schedules.files import Json
from tir_schedules.insight.banks import pictures, shared_tiles
from tir_schedules.insight.banks.pictures import LEGEND, TEXT_LABEL, caption, pictures_of, place_of
from tir_schedules.insight.banks.requests import Pattern
from tir_schedules.insight.banks.shared_tiles import SharedTile
from tir_schedules.insight.banks.wavefronts import BANKS
from tir_schedules.model.kernel import Binary
from tir_schedules.model.launch import Dim3
from tir_schedules.pages import render


@dataclass(frozen=True)
class Layout:
    """What `layout` shows of one warp. of: the workload, or the file. buffer: the one that is asked for, ""
    for all. notes: what else must be known."""

    binary: Binary
    of: str
    block: Dim3
    warp: int
    buffer: str
    patterns: Sequence[Pattern]
    notes: Sequence[str]
    shared_tiles: Sequence[SharedTile] = ()

    @property
    def title(self) -> str:
        return f"{self.binary.kernel.label}: {self.buffer or 'shared memory'}"

    @property
    def subject(self) -> str:
        return f"{self.of}, {place(self.block, self.warp)}"

    def as_json(self) -> Json:
        names = ("block", "warp", "notes", "patterns", "shared_tiles")
        told = {name: getattr(self, name) for name in names}
        return {"kernel": self.binary.kernel.label, "workload": self.of, **told}


def place(block: Sequence[int], warp: int) -> str:
    return f"warp {warp} of block {','.join(map(str, block))}"


def document(layout: Layout, suffix: str) -> str:
    """The text of a page, or of a picture for ".svg"."""
    if suffix == ".svg":
        sections = [((caption(one), place_of(one)), pictures_of(one)) for one in layout.patterns]
        drawn = [
            ((shared_tiles.caption(tile),), (shared_tiles.tile_picture(tile),))
            for tile in layout.shared_tiles
        ]
        return pictures.document_svg([*sections, *drawn], f"{layout.title}, {layout.subject}")
    return render(
        "layout.html.j2",
        title=layout.title,
        layout=layout,
        pictures=pictures,
        shared_tiles=shared_tiles,
        provenance=[made_by(layout.binary), *layout.notes],
    )


def made_by(binary: Binary) -> str:
    """What a page says of where its pictures are from."""
    kernel = binary.kernel
    return f"{kernel.label} for {kernel.arch}, executed on the CPU machine; no GPU took part"


def print_layout(layout: Layout) -> None:
    """A table of all patterns, then the pictures of each; then those of tiles in shared memory."""
    print_line(f"{layout.title}, {layout.subject}")
    if layout.patterns:
        print_requests(layout.patterns)
    for tile in layout.shared_tiles:
        print_line()
        print_line(shared_tiles.caption(tile))
        print_picture(shared_tiles.tile_picture(tile))
    print_line()
    legends = (LEGEND if layout.patterns else ()) + (shared_tiles.LEGEND if layout.shared_tiles else ())
    for line in (*legends, *layout.notes):
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
