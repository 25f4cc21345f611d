"""One fault as the engine recorded it, in phrases that messages are made of."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Sequence

import numpy as np

from tir_schedules.compiler.source_text import SourceText, shown_name
from tir_schedules.machines.cpu.abi import BUFFER_SHIFT, FINDING_KINDS, RANK_SHIFT, Space
from tir_schedules.machines.cpu.extents import Extent, variable_at
from tir_schedules.machines.cpu.lowering import LoweredKernel
from tir_schedules.model.findings import Location
from tir_schedules.model.kernel import Binary
from tir_schedules.model.launch import Dim3

ACTS = ("reads", "writes", "updates")
"""In the order of Act."""

SPACE_NAMES = ("shared memory", "global memory", "local memory", "memory")


@dataclass(frozen=True)
class NamedBuffer:
    """A buffer as messages name it. element: bytes of one element; elements: how many it has."""

    name: str
    element: int
    elements: int


class Sources:
    """PTX line -> Location of a compiled kernel.

    Inlined code is where it was inlined, but that of a header which the kernel's file includes is in the
    header. PTX that a user wrote, without lines of another file, is its own source. origins: array, PTX line
    -> a number for its source line.
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
            line: within if within[0] in headers else source
            for line, source, within in zip(listing.lines, listing.sources, listing.within)
        }
        numbers: dict[tuple[int, int], int] = {}
        self.origins = np.zeros(max(self.lines, default=0) + 1, np.int32)
        for ptx_line, place in self.lines.items():
            self.origins[ptx_line] = numbers.setdefault(place, len(numbers) + 1) if place[1] else -ptx_line

    def __call__(self, ptx_line: int) -> Location:
        file, line = self.lines.get(ptx_line, (0, 0))
        if not line and self.in_ptx:
            name = shown_name(self.text.kernel)
            return Location(ptx_line, name, ptx_line, self.text.line(name, ptx_line))
        name = self.files.get(file, "")
        return Location(ptx_line, name, line, self.text.line(name, line))

    def mix(self, ptx_line: int) -> str:
        """The class of the instruction in the counters' mix."""
        return self.mixes.get(ptx_line, "")

    def act(self, ptx_line: int) -> str:
        """What the instruction does to memory."""
        return self.acts.get(ptx_line, "writes")


def rank_and_byte(address: int) -> tuple[int, int]:
    """Of an address of shared memory of the cluster: the rank of the block, -1 for the own one; the rest."""
    rank, byte = divmod(address, 1 << RANK_SHIFT)
    return (rank - 1, byte) if 1 <= rank <= 16 else (-1, address)


@dataclass(frozen=True)
class Fault:
    """One record in phrases. short: without addresses in shared memory, threads and source text."""

    record: np.void
    sources: Sources
    buffers: Sequence[NamedBuffer]
    extents: Sequence[Extent]
    grid: Dim3
    short: bool = False
    assertion: str = ""

    @property
    def act(self) -> str:
        return ACTS[self.record["act"]]

    @property
    def where(self) -> str:
        """What the address is: an element of a buffer, or a byte of a variable or of a space."""
        address, space = int(self.record["address"]), int(self.record["space"])
        number, offset = (address >> BUFFER_SHIFT) - 1, address & ((1 << BUFFER_SHIFT) - 1)
        if space != Space.GLOBAL:
            address -= (address >> 31 & 1) << 32
            extent, what = self.extent, SPACE_NAMES[space]
            if space == Space.SHARED:
                rank, address = rank_and_byte(address)
                what += f" of block {rank} of the cluster" if rank >= 0 else ""
            if extent:
                what = f"{extent.name or 'an array'} in {what}"
            return what if self.short else f"{what} at byte {address - (extent.low if extent else 0)}"
        if offset >= 1 << (BUFFER_SHIFT - 1):  # before the start of the next buffer
            number, offset = number + 1, offset - (1 << BUFFER_SHIFT)
        if self.of_heap:
            return f"memory of malloc at byte {offset}"
        if not 0 <= number < len(self.buffers):
            return f"global memory at {address:#x}, where no buffer is"
        buffer = self.buffers[number]
        element, rest = divmod(offset, buffer.element)
        return f"{buffer.name}[{element}]" + (f" and {rest} bytes" if rest else "")

    @property
    def extent(self) -> Extent | None:
        """The variable that an access to shared or local memory goes to, or comes from where it misses it."""
        number, space = int(self.record["extent"]), int(self.record["space"])
        address = int(self.record["address"])
        if space == Space.SHARED:
            _, address = rank_and_byte(address)
        return self.extents[number] if number else variable_at(self.extents, space, address)

    @property
    def variable_name(self) -> str:
        """Of the variable; empty for an array on the stack."""
        return self.extent.name if self.extent else ""

    @property
    def of_heap(self) -> int:
        """1 in what malloc gave, 2 where that has been freed."""
        plain = FINDING_KINDS[self.record["kind"]] in ("out_of_bounds", "bad_free")
        return int(self.record["detail"]) if plain else 0

    @property
    def limits(self) -> str:
        address = int(self.record["address"])
        if self.of_heap:
            has = f"it has {self.record['extent_bytes']} bytes"
            return f"; {has}" if self.of_heap == 1 else "; it has been freed"
        if int(self.record["space"]) != Space.GLOBAL:
            has = f"; {self.variable_name or 'it'} has {self.record['extent_bytes']} bytes"
            return has if self.record["extent"] else ""
        number = (address >> BUFFER_SHIFT) - 1
        number += address & ((1 << BUFFER_SHIFT) - 1) >= 1 << (BUFFER_SHIFT - 1)
        if not 0 <= number < len(self.buffers):
            return ""
        return f"; {self.buffers[number].name} has {self.buffers[number].elements} elements"

    @property
    def bytes(self) -> str:
        return f"{self.record['bytes']} bytes"

    @property
    def other(self) -> str:
        """The other access of a conflict, where it is known."""
        warp, lane, line = (int(self.record[name]) for name in ("other_warp", "other_lane", "other_line"))
        if self.short and self.sources(line).place == self.sources(int(self.record["line"])).place != "":
            return "the same line"
        if self.short:
            return self.sources(line).place or (f"PTX line {line}" if line else "another warp")
        who = f"{self.other_block}warp {warp} lane {lane}" if warp >= 0 else "another warp"
        return f"{who} at {self.sources(line)}" if line else who

    @property
    def other_place(self) -> str:
        """The line of the other instruction."""
        line = int(self.record["other_line"])
        return self.sources(line).place or f"PTX line {line}"

    @property
    def other_block(self) -> str:
        """The block of the other access, when it is another: "block 1,0,0 "."""
        number = int(self.record["other_block"]) - 1
        if number < 0:
            return ""
        rest, x = divmod(number, self.grid[0])
        z, y = divmod(rest, self.grid[1])
        return f"block {x},{y},{z} "

    @property
    def clash(self) -> str:
        """What a race or reliance on lockstep is between."""
        if not self.short:
            return f"{self.act} {self.where}, which is also accessed by {self.other},"
        return (
            f"{self.act} {self.where} that {self.other} {self.sources.act(int(self.record['other_line']))},"
        )
