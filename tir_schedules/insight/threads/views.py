"""What `layout` shows of an array in global memory: printed, as a page or a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterable

from tir_schedules.console import console, print_line, terminal_width
from tir_schedules.errors import BadInput
from tir_schedules.files import Json
from tir_schedules.insight.threads.mapping import ThreadMap
from tir_schedules.insight.threads.pictures import (
    CUT,
    LESS,
    Picture,
    document_svg,
    first_of,
    is_whole,
    picture_of,
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
        launch = f"launch {self.found.launch} of {self.found.launches}, " if self.found.launches > 1 else ""
        where = "all blocks" if block is None else f"block {','.join(map(str, block))}"
        return f"{self.found.of}, {launch}{where}"

    @property
    def notes(self) -> list[str]:
        found, told = self.found, []
        if found.tile is not None:
            told.append(
                f"This is tile {found.tile} of {found.tiles}, counted from 0. A tile is what a block"
                f" {found.access}s before its next barrier, group of cp.async or filling of an mbarrier."
                " --tile N shows another, --tile all shows all."
            )
        if self.by == "scheduler":
            told.append(
                "Colours follow the rule of NVIDIA's GPUs that warp w belongs to scheduler w mod 4; the CPU"
                " machine has no schedulers."
            )
        if found.lines:
            more = ", ..." if len(found.lines) > 4 else ""
            told.append(f"The source of these {found.access}s: {', '.join(found.lines[:4])}{more}.")
        return told + [f"{note[0].upper()}{note[1:]}." for note in found.notes]

    @property
    def said(self) -> list[str]:
        return summary(self.found, *first_of(self.found, self.warp, self.lane))

    @property
    def pictures(self) -> list[Picture]:
        """One, or without `by` three: of the block by warp, of a warp by lane, of a lane by step."""
        warp, lane = first_of(self.found, self.warp, self.lane)
        if self.by:
            return with_accesses([self.coloured(self.by)])
        drawn = [
            picture_of(self.found, "warp"),
            picture_of(self.found, "lane", warp),
            picture_of(self.found, "step", warp, lane),
        ]
        return [one for one in with_accesses(drawn) if one.by != "step" or one.found.accesses["step"].any()]

    def coloured(self, by: str) -> Picture:
        """The picture of the block, or of the warp or lane that is named. If `by` is not given, it shows at
        least as much as tells the colours apart."""
        warp = self.warp
        if warp is None and self.lane is not None:
            warp, _ = first_of(self.found, None, None)
        if by == self.by:
            return picture_of(self.found, by, warp, self.lane)
        return picture_of(self.found, by, None if by == "warp" else warp, self.lane if by == "step" else None)

    @property
    def of_page(self) -> list[Picture]:
        """By what is named, and of a block by warp, by lane and by step."""
        names = () if self.found.block is None else ("warp", "lane", "step")
        return with_accesses(map(self.coloured, dict.fromkeys((self.by or "warp", *names))))

    def as_json(self) -> Json:
        ours = {"by": self.by, "warp": self.warp, "lane": self.lane}
        return {**self.found.as_json(), **ours, "summary": self.said, "notes": self.notes}

    def print(self) -> None:
        """Pictures of text, and sentences."""
        cut = False
        print_line(f"{self.title}, {self.subject}")
        for picture in self.pictures:
            drawn, told = text_of(picture, terminal_width())
            print_line()
            print_line(picture.title)
            console().print(drawn, end="", soft_wrap=True)
            for line in told:
                print_line(line)
            cut |= any(line.endswith(CUT) for line in told)
        print_line()
        for line in (*self.said, *self.notes, *([self.rest()] if cut else [])):
            print_line(line)

    def rest(self) -> str:
        """Where to see what a terminal has no room for."""
        if all(map(is_whole, self.of_page)):
            return "-o FILE.html shows all rows and columns."
        return f"-o FILE.html shows more, but not all. {LESS}"

    def document(self, suffix: str) -> str:
        """The text of a page, or of a picture for ".svg"."""
        if suffix == ".svg":
            return document_svg(self.pictures, (*self.said, *self.notes), f"{self.title}, {self.subject}")
        kernel = self.found.kernel
        return render(
            "threads.html.j2",
            title=self.title,
            shown=self,
            pictures=[(one.by, one.title, svg_of(one)) for one in self.of_page],
            provenance=[f"{kernel.label} for {kernel.arch}, executed on the CPU machine; no GPU took part"],
        )


def with_accesses(drawn: Iterable[Picture]) -> list[Picture]:
    """Without those of a warp or lane that does not access the array."""
    return [one for one in drawn if len(one.found.accesses)]
