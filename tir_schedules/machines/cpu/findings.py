"""What the engine recorded of a fault, told as a Finding."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Sequence

import numpy as np

from tir_schedules.compiler.source_text import SourceText, shown_name
from tir_schedules.machines.cpu import unit_findings
from tir_schedules.machines.cpu.abi import BUFFER_SHIFT, FINDING_KINDS, NONE, Space
from tir_schedules.machines.cpu.extents import Extent, variable_at
from tir_schedules.machines.cpu.functions import ARGUMENTS, RESULTS
from tir_schedules.machines.cpu.lowering import LoweredKernel
from tir_schedules.machines.cpu.warpgroup_findings import (
    bad_descriptor,
    bad_tensor_map,
    divergent_aligned,
    too_many_registers,
    touched_registers,
    unfenced_registers,
)
from tir_schedules.model.findings import Finding, Location
from tir_schedules.model.kernel import Binary, Kernel
from tir_schedules.model.launch import Dim3

PLAIN = ("line", "other_line", "warp", "lane", "other_warp", "count")
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


def findings(
    records: np.ndarray,
    kernel: Kernel,
    sources: Sources,
    buffers: Sequence[NamedBuffer],
    extents: Sequence[Extent],
    assertion: str = "",
) -> tuple[Finding, ...]:
    """Findings of the engine's records (dtype FINDING), most serious first. assertion: what the one that
    failed says."""
    found = []
    for record in records:
        kind, (x, y, z) = FINDING_KINDS[record["kind"]], (int(index) for index in record["block"])
        line, other, warp, lane, other_warp, count = (int(record[name]) for name in PLAIN)
        message, brief = (
            MESSAGES[kind](Fault(record, sources, buffers, extents, kernel.grid, short, assertion))
            for short in (False, True)
        )
        location, against = sources(line), sources(other) if other else None
        found.append(
            Finding(
                kind,
                message,
                kernel.label,
                location,
                (x, y, z),
                warp,
                lane,
                count,
                against,
                other_warp,
                brief,
            )
        )
    return tuple(sorted(found, key=lambda finding: FINDING_KINDS.index(finding.kind)))


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
                rank, address = unit_findings.rank_and_byte(address)
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
            _, address = unit_findings.rank_and_byte(address)
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
    def missing(self) -> str:
        """What would order the two accesses."""
        if self.record["other_block"]:
            return "nothing orders the two blocks" if self.short else "and nothing orders the two blocks"
        missing = unit_findings.missing_barrier(self) or "no __syncthreads between"
        return missing if self.short else f"with {missing}"

    @property
    def clash(self) -> str:
        """What a race or reliance on lockstep is between."""
        if not self.short:
            return f"{self.act} {self.where}, which is also accessed by {self.other},"
        return (
            f"{self.act} {self.where} that {self.other} {self.sources.act(int(self.record['other_line']))},"
        )


MESSAGES = {
    "bad_tensor_map": lambda f: bad_tensor_map(f.record),
    "bad_descriptor": lambda f: bad_descriptor(f.record),
    "wgmma_registers": lambda f: touched_registers(f.record, f.act, f.other_place),
    "unfenced_wgmma": lambda f: unfenced_registers(f.record, f.other_place),
    "barrier_misuse": lambda f: unit_findings.barrier_misuse(f),
    "slot_in_use": lambda f: unit_findings.slot_in_use(f),
    "unfenced_proxy": lambda f: unit_findings.unfenced_proxy(f),
    "cluster_exit": lambda f: unit_findings.cluster_exit(f),
    "left_in_flight": lambda f: unit_findings.left_in_flight(f),
    "out_of_bounds": lambda f: f"{f.act} {f.bytes} of {f.where}, out of bounds{f.limits}",
    "misaligned": lambda f: misaligned(f),
    "uninitialized": lambda f: uninitialized(f),
    "race": lambda f: f"{f.clash} {f.missing}",
    "lockstep": lambda f: f"{f.clash} {'' if f.short else 'with '}no __syncwarp between",
    "overlapping_writes": lambda f: (
        f"{f.act} {f.where}, which another thread has written{' at' if f.short else ','} {f.other}"
    ),
    "write_to_input": lambda f: f"{f.act} {f.where}, which is an input",
    "in_flight": lambda f: unit_findings.in_flight(f),
    "divergent_aligned": lambda f: divergent_aligned(f.record, f.other_place),
    "too_many_registers": lambda f: too_many_registers(f.record),
    "divergent_barrier": lambda f: divergent_barrier(f),
    "bad_free": lambda f: bad_free(f),
    "stack_overflow": lambda f: (
        f"the stack has {f.record['detail']} bytes, and {f.record['bytes']} more are needed; the launch was"
        " stopped (on a GPU, cudaDeviceSetLimit with cudaLimitStackSize gives it more)"
    ),
    "assertion": lambda f: f.assertion,
    "trap": lambda f: trap(f),
    "deadlock": lambda f: deadlock(f),
    "endless_loop": lambda f: (
        "this loop never ends: it comes back to where it was"
        if int(f.record["detail"])
        else "the instruction budget of a warp is used up; the launch was stopped"
    ),
    "same_value": lambda f: (
        f"{f.act} {f.where}, where {f.other} has stored the same value, and nothing orders the two"
    ),
}


def deadlock(fault: Fault) -> str:
    if int(fault.record["act"]):
        return unit_findings.deadlock(fault)
    number, arrived, expected, resident = (
        int(fault.record[name]) for name in ("detail", "extent", "extent_bytes", "bytes")
    )
    held = (
        f"; a GPU holds {resident} blocks of this kernel at once, and the others never begin"
        if resident
        else ""
    )
    if number == NONE:
        return f"waits in this loop for memory that nobody changes{held}"
    if not expected:
        return f"waits at this barrier, which the others never reach{held}"
    return f"waits at barrier {number} for {expected} threads, {arrived} have arrived, and no more will{held}"


UNSET = {
    RESULTS: "uses what a function returned without a value",
    ARGUMENTS: "uses an argument that was handed over without a value",
}
"""Of the areas that calls share."""


def bad_free(fault: Fault) -> str:
    if fault.of_heap == 2:
        return "frees what has been freed"
    if fault.of_heap:
        return f"frees {fault.where}, not its start"
    return f"frees {fault.where}, which malloc did not give"


def trap(fault: Fault) -> str:
    address = int(fault.record["bytes"]) | int(fault.record["extent_bytes"]) << 32
    called = f"calls a function at {address:#x}, where there is none"
    beyond = f"goes to entry {address} of a table of branches, which has less"
    what = ("a trap was executed", "a brkpt was executed, with no debugger to stop in", called, beyond)
    return f"{what[int(fault.record['detail'])]}; the launch was stopped"


def uninitialized(fault: Fault) -> str:
    line, space = int(fault.record["other_line"]), int(fault.record["space"])
    use, read = fault.sources(line), fault.sources(int(fault.record["line"]))
    used = f"; used at {use}" if line and (use.file, use.line) != (read.file, read.line) else ""
    if space == Space.GENERIC and fault.record["detail"]:
        return f"takes the value of a lane outside its mask, which is undefined{used}"
    if space == Space.GENERIC:
        return "uses a variable that nothing has written"
    if space == Space.SHARED and line:
        return (
            f"{fault.act} {fault.where}, where a value that nothing has written was stored by {fault.other}"
        )
    if fault.variable_name in UNSET:
        return UNSET[fault.variable_name]
    return f"{fault.act} {fault.where}, which nothing has written{used}"


def misaligned(fault: Fault) -> str:
    stride = int(fault.record["detail"])
    if stride:
        return (
            f"{fault.act} a tile at {fault.where} whose rows are {stride} bytes apart, which is not a"
            " multiple of 16 bytes"
        )
    return f"{fault.act} {fault.bytes} of {fault.where}, which is not a multiple of {fault.bytes}"


def divergent_barrier(fault: Fault) -> str:
    if int(fault.record["detail"]):
        asked = f"waits at barrier {fault.record['extent']} for {fault.record['extent_bytes']} threads"
        return f"{asked}; there are barriers 0 to 15, for multiples of 32 threads"
    line, warp, lane = (int(fault.record[name]) for name in ("other_line", "other_warp", "other_lane"))
    if not line:
        return f"warp {warp} lane {lane} has left the kernel and never reaches this barrier"
    there = fault.sources(line)
    return (
        f"warp {warp} lane {lane} waits at another barrier,"
        f" {there.place if fault.short and there.place else there}"
    )
