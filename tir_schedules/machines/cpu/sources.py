"""What messages call things: buffers by their names, PTX lines by the CUDA lines that they come from."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tir_schedules.compiler.source_text import SourceText, shown_name
from tir_schedules.machines.cpu.lowering import LoweredKernel
from tir_schedules.model.findings import Location
from tir_schedules.model.kernel import Binary


@dataclass(frozen=True)
class NamedBuffer:
    """A buffer as messages name it. element: bytes of one element; elements: how many it has. typed: whether
    the size of an element is known; PTX declares arrays of variables as bytes."""

    name: str
    element: int
    elements: int
    typed: bool = True


class Sources:
    """PTX line -> Location of a compiled kernel.

    Inlined code is where it was inlined, but that of a header which the kernel's file includes is in the
    header; `inside` has both the line and the call. PTX that a user wrote, without lines of another file, is
    its own source. origins: array, PTX line -> a number for its source line.
    """

    def __init__(self, binary: Binary, lowered: LoweredKernel):
        self.text = SourceText(binary.kernel)
        self.files = {number: self.text.shown(name) for number, name in lowered.module.files.items()}
        headers = {number for number, name in self.files.items() if self.text.includes(name)}
        entry = re.escape(binary.kernel.entry)
        self.in_ptx = bool(re.search(rf"\.entry\s+{entry}\b", binary.kernel.source))
        listing = lowered.listing
        self.acts = dict(zip(listing.lines, listing.accesses))
        self.mixes = dict(zip(listing.lines, listing.mixes))
        self.lines = {
            line: within[0] if within[0][0] in headers else source
            for line, source, within in zip(listing.lines, listing.sources, listing.within)
        }
        own = headers | {number for number, name in self.files.items() if name == shown_name(binary.kernel)}
        self.calls = {
            line: places
            for line, within in zip(listing.lines, listing.within)
            if len(places := tuple(place for place in within if place[0] in own)) > 1
        }
        numbers: dict[tuple[Any, ...], int] = {}
        self.origins = np.zeros(max(self.lines, default=0) + 1, np.int32)
        for ptx_line, place in self.lines.items():
            self.origins[ptx_line] = (
                numbers.setdefault(self.calls.get(ptx_line, place), len(numbers) + 1)
                if place[1]
                else -ptx_line
            )

    def __call__(self, ptx_line: int) -> Location:
        file, line = self.lines.get(ptx_line, (0, 0))
        if not line and self.in_ptx:
            name = shown_name(self.text.kernel)
            return Location(ptx_line, name, ptx_line, self.text.line(name, ptx_line))
        return self._location(ptx_line, (file, line))

    def inside(self, ptx_line: int) -> Location:
        """The same, of code inlined from a function of the user's the line of that, and which calls it."""
        if ptx_line not in self.calls:
            return self(ptx_line)
        own, *_, calling = self.calls[ptx_line]
        location, (file, call) = self._location(ptx_line, own), self._place(calling)
        where = f"line {call}" if file == location.file else f"{file}:{call}"
        return location if own == calling else replace(location, call=where)

    def outermost(self, ptx_line: int) -> Location:
        """The same, of inlined code the line that calls it in the kernel itself."""
        place = self.calls[ptx_line][-1] if ptx_line in self.calls else self.lines.get(ptx_line, (0, 0))
        return self._location(ptx_line, place)

    def _location(self, ptx_line: int, place: tuple[int, int]) -> Location:
        file, line = self._place(place)
        return Location(ptx_line, file, line, self.text.line(file, line))

    def _place(self, place: tuple[int, int]) -> tuple[str, int]:
        """A file of the PTX, by its number, and a line, as a reader finds them."""
        file, line = place
        return self.text.place(self.files.get(file, ""), line)

    def mix(self, ptx_line: int) -> str:
        """The class of the instruction in the counters' mix."""
        return self.mixes.get(ptx_line, "")

    def act(self, ptx_line: int) -> str:
        """What the instruction does to memory."""
        return self.acts.get(ptx_line, "writes")
