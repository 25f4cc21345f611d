"""What a machine reports of one launch: findings, and on the CPU machine counters and who wrote each output element."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, Sequence

from tir_schedules.kernel import Binary, Dim3


@dataclass(frozen=True)
class Location:
    """A place in a kernel: PTX line, and the CUDA source file, line and text it was compiled from (when known)."""

    ptx_line: int
    file: str = ""
    line: int = 0
    text: str = ""

    def __str__(self) -> str:
        source = self.place or "source line unknown"
        return f"{source} (PTX line {self.ptx_line})" + (f": {self.text}" if self.text else "")

    @property
    def place(self) -> str:
        """File and line, such as "broken.cu:23"; empty when they are not known."""
        return f"{self.file}:{self.line}" if self.line else ""


@dataclass(frozen=True)
class Finding:
    """One fault seen while a kernel ran; `count` says how often the same fault was met at this location.

    kind: one of KINDS. block: block index (x, y, z); warp and lane: of the first thread that was caught. other: where the other
    access of a conflict is, other_warp whose it was, -1 if unknown. brief: the message in a few words.
    """

    kind: str
    message: str
    kernel: str
    location: Location
    block: Dim3
    warp: int
    lane: int
    count: int = 1
    other: Location | None = None
    other_warp: int = -1
    brief: str = ""

    def __str__(self) -> str:
        where = f"block {self.block[0]},{self.block[1]},{self.block[2]} warp {self.warp} lane {self.lane}"
        times = f", {self.count} times" if self.count > 1 else ""
        return f"{self.kernel}: {self.kind}: {self.message} at {self.location} [{where}{times}]"


KINDS = {
    "race": "two warps touch a shared word, one writes, and no __syncthreads lies between",
    "in_flight": "data of a cp.async touched before the wait that covers it",
    "lockstep": "lanes of one warp exchange data through memory with no __syncwarp between",
    "divergent_barrier": "a __syncthreads that not every thread of the block reaches",
    "out_of_bounds": "an access outside every buffer, or past an end of a variable in shared or local memory",
    "misaligned": "an address that is not a multiple of the access size, or a wmma tile that is not aligned as CUDA asks",
    "write_to_input": "a store to an array that is not an output",
    "overlapping_writes": "two threads store to the same word of an output without an atomic",
    "uninitialized": "a read of shared, local or output memory that nothing wrote, or the use of a variable without a value",
    "divergent_aligned": "a warp-wide .aligned instruction met with inactive lanes",
    "endless_loop": "the instruction budget was used up",
}
"""Kinds of finding, causes before what they bring about: a missing barrier is a race, and so others read what nobody wrote yet."""


@dataclass(frozen=True)
class Watch:
    """Which requests to shared memory to keep: those of one warp of one block, the first `limit` of them."""

    block: Dim3 = (0, 0, 0)
    warp: int = 0
    limit: int = 1 << 16


@dataclass(frozen=True)
class Request:
    """A warp's access to shared memory as the hardware sees it: neighbouring accesses that ptxas merges are one.

    kind: class of access (see Counters). width: bytes per lane. mask: lanes that take part, bit 0 lane 0. wavefronts: what it
    costs; ideal: without bank conflicts. addresses: of each lane, bytes from the start of the block's shared memory, 0 where a lane
    takes no part; for ldmatrix, and wmma, which is executed as such, those of the rows, 16 bytes each. values: the first 4 bytes
    at each address once the access is done.
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
class Access:
    """Memory accesses of one class: warp-level requests; what they cost (shared wavefronts or 32-byte global sectors);
    and the least they could cost (no bank conflict, perfectly packed sectors)."""

    requests: int = 0
    cost: int = 0
    ideal: int = 0

    def __add__(self, other: "Access") -> "Access":
        return Access(self.requests + other.requests, self.cost + other.cost, self.ideal + other.ideal)


@dataclass(frozen=True)
class LineCounters:
    """Counters of one CUDA source line. accesses: class of access (see Counters) -> Access; mix: class -> thread instructions."""

    file: str
    line: int
    accesses: dict[str, Access]
    mix: dict[str, int]


@dataclass(frozen=True)
class Counters:
    """Counters of a launch, summed and per CUDA source line.

    accesses: keys shared_load, shared_store, ldmatrix, shared_atomic, shared_cp_async (cost in wavefronts), global_load,
    global_store, global_atomic, global_cp_async (cost in 32-byte sectors); absent when the kernel has none.
    mix: thread instructions by class: fp32, fp16, int, load, store, control, barrier, shuffle, mma, cp_async, move, atomic, ...
    warp_instructions: instructions issued per warp. thread_instructions: the same times active lanes.
    """

    accesses: dict[str, Access]
    mix: dict[str, int]
    warp_instructions: int
    thread_instructions: int
    lines: tuple[LineCounters, ...] = ()


@dataclass(frozen=True)
class Execution:
    """One launch. findings: most serious first, empty for a sound kernel. seconds: wall time on this machine.

    counters: None unless counting was asked for. writer(name, index): Location of the instruction that last stored to flat
    element `index` of output `name`, or None when nothing did; writers(name): of all instructions that stored to the output,
    or None where the machine does not know (the GPU machine). requests: of the warp that was watched, in order; requests_met: how
    many there were, more than are kept when they exceed the limit.
    """

    findings: tuple[Finding, ...]
    seconds: float
    counters: Counters | None = None
    writer: Callable[[str, int], Location | None] = field(default=lambda name, index: None, repr=False)
    writers: Callable[[str], tuple[Location, ...] | None] = field(default=lambda name: None, repr=False)
    requests: tuple[Request, ...] = field(default=(), repr=False)
    requests_met: int = 0


def execute(
    machine: Any, workload: Any, binaries: Sequence[Binary], given: dict[str, Any], **options: Any
) -> list[tuple[Execution, dict[str, Any]]]:
    """Launch all kernels of a workload on a machine, each once: what it says of each, and the arguments, outputs among them.

    given: arguments of the first launch, whose outputs are written. options: of the machine's `run`.
    """
    arguments, done = given, []
    for binary in binaries:
        arguments = workload.prepared(arguments, binary.kernel.grid)
        done.append((machine.run(binary, arguments, workload.outputs, **options), arguments))
    return done
