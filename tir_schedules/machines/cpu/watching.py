"""The requests of one warp to shared memory, one by one; all accesses of a block, each once; and those of
threads to one array."""

from __future__ import annotations

import ctypes
from itertools import islice
from typing import Sequence

import numpy as np

from tir_schedules.errors import BadInput
from tir_schedules.machines.cpu import abi
from tir_schedules.machines.cpu.library import the_library
from tir_schedules.machines.cpu.lowering import CountedAccess, LoweredKernel
from tir_schedules.machines.cpu.sources import NamedBuffer, Sources
from tir_schedules.model.kernel import Kernel
from tir_schedules.model.machine import Ends, Events, Records, Request, Steps, Touches, Watch

MOVED_LIMIT = 1 << 16
"""Pieces of copies and products that are kept: of the first ones."""


TOUCHED_LIMIT = 1 << 22
"""Accesses of threads to an array that are kept."""

BLOCKS_OF_A_WAIT = 4
"""Most basic blocks of a loop that only waits for memory."""

PIECES = 4
"""Lines of global memory that are kept for each access that may be."""


class Watched:
    """Room for the requests of a launch. BadInput for a block or a warp the launch does not have."""

    def __init__(self, watch: Watch, kernel: Kernel):
        warps = -(-kernel.threads // 32)
        if not all(0 <= index < extent for index, extent in zip(watch.block, kernel.grid)):
            raise BadInput(f"there is no block {spelled(watch.block)}; the grid is {spelled(kernel.grid)}")
        if not 0 <= watch.warp < warps:
            raise BadInput(f"there is no warp {watch.warp}; a block has {warps}, counted from 0")
        self.every, self.units, self.array = watch.every, watch.units, watch.array
        kept = 0 if watch.every or watch.array or watch.steps else watch.limit
        self.kept = np.empty(kept, abi.REQUEST)
        self.table = np.empty(watch.limit if watch.every else 0, abi.RECORD)
        self.slots = np.zeros(2 * len(self.table), np.uint32)
        records = self.table.ctypes.data if watch.every else None
        self.arguments = abi.Watch(
            requests=self.kept.ctypes.data, records=records, slots=self.slots.ctypes.data,
            block=watch.block, warp=watch.warp, limit=kept, record_limit=len(self.table),
        )  # fmt: skip
        if watch.units:
            self.happened, self.moved = np.empty(watch.limit, abi.EVENT), np.empty(MOVED_LIMIT, abi.MOVED)
            self.arguments.events = self.happened.ctypes.data
            self.arguments.moved = self.moved.ctypes.data
            self.arguments.event_limit, self.arguments.moved_limit = watch.limit, MOVED_LIMIT
        if watch.array:
            self.touched = np.empty(TOUCHED_LIMIT, abi.TOUCH)
            self.arguments.touches, self.arguments.touch_limit = self.touched.ctypes.data, TOUCHED_LIMIT
            self.arguments.every_block = watch.every_block
        self.follows = watch.steps
        self.arguments.among_all = watch.among_all or bool(watch.array) and watch.every_block
        self.arguments.idle = not watch.multiplies
        self.cycles = np.array(watch.cycles, np.float64)
        if watch.cycles:
            self.arguments.cycles, self.arguments.link = self.cycles.ctypes.data, watch.link
        if watch.steps:
            self.taken, self.made = np.empty(watch.limit, abi.STEP), np.empty(watch.limit, abi.MADE)
            self.pieces = np.empty(PIECES * watch.limit, abi.LINE_PIECE)
            self.arguments.pieces, self.arguments.piece_limit = self.pieces.ctypes.data, len(self.pieces)
            self.arguments.steps, self.arguments.made = self.taken.ctypes.data, self.made.ctypes.data
            self.arguments.step_limit = self.arguments.made_limit = watch.limit

    @property
    def met(self) -> int:
        """How many requests there were, kept or not."""
        return self.arguments.met

    def requests(self, counted: list[CountedAccess], sources: Sources) -> tuple[Request, ...]:
        """What was kept, in order."""
        records = self.kept[: self.arguments.held]
        figures = zip(*(records[name].tolist() for name in ("counter", "mask", "width", "cost", "ideal")))
        numbers = np.unique(records["counter"]).tolist()
        locations = {number: sources(counted[number].line) for number in numbers}
        found = []
        for figure, addresses, values in zip(figures, records["address"].tolist(), records["value"]):
            number, mask, width, cost, ideal = figure
            place, kind = locations[number], counted[number].kind
            found.append(Request(place, kind, width, mask, cost, ideal, tuple(addresses), in_fours(values)))
        return tuple(found)

    def records(self, counted: list[CountedAccess], sources: Sources) -> Records:
        """All accesses of the block."""
        table = self.table[: self.arguments.recorded].copy()
        numbers = np.unique(np.concatenate([table["counter"], table["source_counter"]])).tolist()
        known = [number for number in numbers if number != abi.NONE]
        locations = {number: sources(counted[number].line) for number in known}
        kinds = {number: counted[number].kind for number in known}
        return Records(table, locations, kinds, self.arguments.lost, bool(self.arguments.ended))

    def steps(self, lowered: LoweredKernel) -> Steps:
        """What the warps of the block executed."""
        met, made, pieces = (getattr(self.arguments, f"{name}_met") for name in ("steps", "made", "pieces"))
        lines = iter(lowered.listing.lines)
        return Steps(
            self.taken[:met].copy(), self.made[:made].copy(), self.pieces[:pieces].copy(),
            tuple(tuple(islice(lines, length)) for length in lowered.blocks["cost"].tolist()),
            tuple((access.line, access.kind) for access in lowered.counted), met, made, pieces,
            bool(self.arguments.ended), looks_of(lowered.blocks),
        )  # fmt: skip

    @property
    def ends(self) -> Ends | None:
        """Of a launch whose blocks were timed."""
        return Ends(self.arguments.alone, self.arguments.among) if len(self.cycles) else None

    def events(self, buffers: Sequence[NamedBuffer], sources: Sources) -> Events:
        """What units of the block did. buffers: names, in the order of their numbers."""
        met, held = self.arguments.events_met, self.arguments.moved_held
        table = self.happened[: min(met, len(self.happened))].copy()
        lines = {int(line): sources(int(line)) for line in np.unique(table["line"]) if line > 0}
        named = {number: buffer.name for number, buffer in enumerate(buffers, 1)}
        return Events(table, self.moved[:held].copy(), lines, named, self.arguments.rank, met)

    def touches(self, sources: Sources) -> Touches:
        """Accesses to the array."""
        met = self.arguments.touched
        table = self.touched[: min(met, TOUCHED_LIMIT)].copy()
        locations = {int(line): sources(int(line)) for line in np.unique(table["line"])}
        return Touches(table, locations, met - len(table), bool(self.arguments.ended))


def looks_of(blocks: np.ndarray) -> frozenset[int]:
    """The basic blocks of loops that wait for memory, if these are short: others do more than wait."""
    ends = np.flatnonzero(blocks["polls"] == abi.Polls.OF_MEMORY)
    loops = [range(first, end + 1) for end, first in zip(ends.tolist(), blocks["taken"][ends].tolist())]
    return frozenset(number for loop in loops if len(loop) <= BLOCKS_OF_A_WAIT for number in loop)


def recount(table: np.ndarray) -> None:
    """Sets what each record costs with the addresses that it has now. table: of `Records`."""
    assert table.dtype == abi.RECORD and table.flags.c_contiguous, "it is what the core reads"
    the_library().core.recounted(ctypes.c_void_p(table.ctypes.data), ctypes.c_uint64(len(table)))


def in_fours(values: np.ndarray) -> tuple[bytes, ...]:
    """Words as 4 bytes each."""
    content = values.tobytes()
    return tuple(content[at : at + 4] for at in range(0, len(content), 4))


def spelled(index: tuple[int, ...]) -> str:
    return ",".join(map(str, index))
