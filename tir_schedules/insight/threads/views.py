"""What `layout` shows of an array in global memory: printed, as a page or a picture."""

from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.console import console, print_line, terminal_width
from tir_schedules.errors import BadInput
from tir_schedules.files import Json
from tir_schedules.insight.threads.mapping import ThreadMap
from tir_schedules.insight.threads.pictures import (
    Picture,
    document_svg,
    first_of,
    pictures_of,
    svg_of,
    text_of,
)
from tir_schedules.insight.threads.regions import summary
from tir_schedules.pages import render


@dataclass(frozen=True)
class Shown:
    """A map as it is asked for. by: of mapping.BY, None for a block, a warp of it and a lane of that. warp,
    lane: which ones, None for the first that access the array."""

    found: ThreadMap
    by: str | None = None
    warp: int | None = None
    lane: int | None = None

    def __post_init__(self) -> None:
        warps = -(-self.found.kernel.threads // 32)
        if self.warp is not None and not 0 <= self.warp < warps:
            raise BadInput(f"there is no warp {self.warp}; a block has {warps}, counted from 0")
        if self.lane is not None and not 0 <= self.lane < 32:
            raise BadInput(f"there is no lane {self.lane}; a warp has 32, counted from 0")

    @property
    def title(self) -> str:
        return f"{self.found.kernel.label}: who {self.found.access}s {self.found.array}"

    @property
    def subject(self) -> str:
        block = self.found.block
        return f"{self.found.of}, {'all blocks' if block is None else 'block ' + ','.join(map(str, block))}"

    @property
    def notes(self) -> list[str]:
        found, told = self.found, []
        if found.tile is not None:
            told.append(
                f"Tile {found.tile} of {found.tiles}: what the block {found.access}s up to a barrier, a group"
                " of cp.async or the filling of an mbarrier. --tile N shows another, --tile all all of them."
            )
        if self.by == "scheduler":
            told.append("Warp w belongs to scheduler w mod 4, as on NVIDIA's GPUs; this is not executed.")
        if found.lines:
            told.append(f"In {', '.join(found.lines[:4])}{', ...' if len(found.lines) > 4 else ''}.")
        return told + [f"{note[0].upper()}{note[1:]}." for note in found.notes]

    @property
    def said(self) -> list[str]:
        return summary(self.found, *first_of(self.found, self.warp, self.lane))

    @property
    def pictures(self) -> list[Picture]:
        return pictures_of(self.found, self.by, *first_of(self.found, self.warp, self.lane))

    def as_json(self) -> Json:
        return {**self.found.as_json(), "summary": self.said, "notes": self.notes}

    def print(self) -> None:
        """Pictures of text, and sentences."""
        print_line(f"{self.title}, {self.subject}")
        for picture in self.pictures:
            drawn, told = text_of(picture, terminal_width())
            print_line()
            print_line(picture.title)
            console().print(drawn, end="", soft_wrap=True)
            for line in told:
                print_line(line)
        print_line()
        for line in (*self.said, *self.notes):
            print_line(line)

    def document(self, suffix: str) -> str:
        """The text of a page, or of a picture for ".svg"."""
        if suffix == ".svg":
            return document_svg(self.pictures, self.said, f"{self.title}, {self.subject}")
        names = ("block",) if self.found.block is None else ("warp", "lane", "step")
        if self.by and self.by not in names:
            names = (self.by, *names)
        drawn = [pictures_of(self.found, name, 0, 0)[0] for name in names]
        kernel = self.found.kernel
        return render(
            "threads.html.j2",
            title=self.title,
            shown=self,
            pictures=[(one.by, one.title, svg_of(one)) for one in drawn],
            provenance=[f"{kernel.label} for {kernel.arch}, executed on the CPU machine; no GPU took part"],
        )
