"""The interface of machines, which execute compiled kernels, and what they report of a launch: findings, and
on the CPU machine also counters and the instruction that wrote each output element."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Callable, Mapping, Protocol, Sequence

from tir_schedules.model.counters import Counters
from tir_schedules.model.findings import Finding, Location
from tir_schedules.model.kernel import Binary
from tir_schedules.model.launch import Dim3
from tir_schedules.model.workload import Arguments

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class Watch:
    """Which requests to shared memory to keep: those of one warp of one block, the first `limit` of them.
    every: in their place all accesses of the block to shared and global memory, up to `limit` that differ.
    units: also the first `limit` things that its asynchronous units, and threads with these, do. steps: in
    place of requests the first `limit` basic blocks that its warps execute, and accesses that these make;
    then races are not looked for and nothing is counted, because that takes most of the time. multiplies:
    whether products of warpgroups are computed, or only begun and waited for. array: in place of all that,
    the block's accesses to this array in global memory, thread by thread; every_block: those of all blocks.
    among_all: run all blocks, for a block that waits for others or counts them. cycles: of a warp in each
    basic block, as `Steps.lines` numbers them, negative in loops that wait for memory, to tell how long
    blocks wait for words that others store; empty: not told. link: cycles from a store until another block
    finds it."""

    block: Dim3 = (0, 0, 0)
    warp: int = 0
    limit: int = 1 << 16
    every: bool = False
    units: bool = False
    array: str = ""
    every_block: bool = False
    among_all: bool = False
    steps: bool = False
    multiplies: bool = True
    cycles: tuple[float, ...] = ()
    link: float = 0


@dataclass(frozen=True)
class Request:
    """A warp's access to shared memory as the hardware sees it: neighbouring accesses that ptxas merges are
    one.

    kind: class of access (see Counters). width: bytes per lane. mask: lanes that take part, bit 0 lane 0.
    wavefronts: what it costs; ideal: without bank conflicts. addresses: of each lane, bytes from the start of
    the block's shared memory, 0 where a lane takes no part; for ldmatrix, and for wmma, which is
    executed like it, those of the rows, 16 bytes each. values: the first 4 bytes at each address once the
    access is done.
    """

    location: Location
    kind: str
    width: int
    mask: int
    wavefronts: int
    ideal: int
    addresses: tuple[int, ...]
    values: tuple[bytes, ...] = field(repr=False)

    @property
    def lanes(self) -> tuple[int, ...]:
        """Lanes that take part."""
        return tuple(lane for lane in range(32) if self.mask >> lane & 1)


@dataclass(frozen=True)
class Records:
    """All accesses of a block to shared and global memory, each once.

    table: rows of RECORD in machines/cpu/abi.py, in the order in which they were first made. locations,
    kinds: of each counter that the table names; a copy has a second one for its source. lost: how many
    accesses there was no room for. ended: whether the block came to its end, without others.
    """

    table: np.ndarray = field(repr=False)
    locations: Mapping[int, Location]
    kinds: Mapping[int, str]
    lost: int = 0
    ended: bool = True


@dataclass(frozen=True)
class Events:
    """What asynchronous units of a block do, and threads with units and mbarriers, in the order in which the
    machine executes it.

    table, moved: rows of EVENT and MOVED in machines/cpu/abi.py; `moved` has the pieces that the first copies
    and products move. locations: by line of PTX. buffers: names by the number of a buffer. rank: of the block
    in its cluster. met: how many events there were, kept or not.
    """

    table: np.ndarray = field(repr=False)
    moved: np.ndarray = field(repr=False)
    locations: Mapping[int, Location]
    buffers: Mapping[int, str]
    rank: int = 0
    met: int = 0

    @property
    def rows(self) -> list[dict[str, int]]:
        """The table, each row by the names of its columns."""
        names = list(self.table.dtype.names or ())
        return [dict(zip(names, row)) for row in self.table.tolist()]


@dataclass(frozen=True)
class Touches:
    """The accesses of threads to an array in global memory, in the order in which they were executed.

    table: rows of TOUCH in machines/cpu/abi.py. locations: by line of PTX. lost: how many accesses there was
    no room for. ended: whether the block came to its end.
    """

    table: np.ndarray = field(repr=False)
    locations: Mapping[int, Location]
    lost: int = 0
    ended: bool = True


@dataclass(frozen=True)
class Steps:
    """What the warps of a block execute, in the order in which the machine does.

    table: rows of STEP in machines/cpu/abi.py, a basic block of the PTX that lanes of a warp execute. made:
    rows of MADE, the accesses to memory in the same order. pieces: rows of LINE_PIECE, what these touch of
    global memory. lines: of PTX, of the instructions of each basic block. counted: line of PTX and class of
    access (see Counters) of each counter that `made` names. met, made_met, pieces_met: how many of each there
    were, kept or not. ended: whether the block came to its end. looks: basic blocks of loops that wait for
    memory.
    """

    table: np.ndarray = field(repr=False)
    made: np.ndarray = field(repr=False)
    pieces: np.ndarray = field(repr=False)
    lines: tuple[tuple[int, ...], ...] = field(repr=False)
    counted: tuple[tuple[int, str], ...] = field(repr=False)
    met: int = 0
    made_met: int = 0
    pieces_met: int = 0
    ended: bool = True
    looks: frozenset[int] = frozenset()

    @property
    def whole(self) -> bool:
        """Whether all is kept."""
        kept = (len(self.table), len(self.made), len(self.pieces))
        return (self.met, self.made_met, self.pieces_met) == kept


@dataclass(frozen=True)
class Ends:
    """When the last block of a launch ends, in cycles. alone: if none waits for words that others store.
    among: with these waits."""

    alone: float
    among: float


@dataclass(frozen=True)
class Execution:
    """One launch. findings: most serious first, empty for a sound kernel. notes: of NOTES. seconds: wall time
    on this machine.

    counters: None unless counting was asked for. writer(name, index): Location of the instruction that last
    stored to flat element `index` of output `name`, or None when nothing did; writers(name): of all
    instructions that stored to the output, or None where the machine does not know (the GPU machine).
    stored(name): which elements of the output have been written, bool and flat, or None likewise.
    printed: what its printf calls wrote, in the order they were executed.
    requests: of the warp that was watched, in order; requests_met: how many there were, more than are kept
    when they exceed the limit. records: of a block all of whose accesses were watched. events: of one whose
    units were. touches: of an array that was watched. steps: of one whose warps were followed. ends: of a
    launch whose blocks were timed, see `Watch.cycles`.
    """

    findings: tuple[Finding, ...]
    seconds: float
    counters: Counters | None = None
    writer: Callable[[str, int], Location | None] = field(default=lambda name, index: None, repr=False)
    writers: Callable[[str], tuple[Location, ...] | None] = field(default=lambda name: None, repr=False)
    requests: tuple[Request, ...] = field(default=(), repr=False)
    requests_met: int = 0
    printed: str = ""
    notes: tuple[Finding, ...] = ()
    records: Records | None = field(default=None, repr=False)
    stored: Callable[[str], np.ndarray | None] = field(default=lambda name: None, repr=False)
    events: Events | None = field(default=None, repr=False)
    touches: Touches | None = field(default=None, repr=False)
    steps: Steps | None = field(default=None, repr=False)
    ends: Ends | None = None


class Device(Protocol):
    """What executes, is measured or is predicted: a machine, or other computers.

    name: "cpu" or "gpu". device_name: in a sentence, the GPU's own name or "the CPU machine".
    """

    @property
    def name(self) -> str: ...

    @property
    def device_name(self) -> str: ...


class Machine(Device, Protocol):
    """The CPU machine or a GPU."""

    def run(
        self, binary: Binary, arguments: Arguments, outputs: Sequence[str], *, count: bool = False
    ) -> Execution:
        """Launch a kernel once.

        arguments: by name; arrays are numpy's and C-contiguous. outputs: names of the arrays the kernel may
        write, in place. count: also count accesses and instructions. CheckFailed for a launch that CUDA
        refuses or ends.
        """
        ...
