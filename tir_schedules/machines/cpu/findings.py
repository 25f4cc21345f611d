"""What the core recorded of a fault, told as a Finding.

A Fault has the phrases that messages are made of. Each kind of finding has its message in MESSAGES.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Callable, Sequence

import numpy as np

from tir_schedules.machines.cpu.abi import BUFFER_SHIFT, FINDING, FINDING_KINDS, NONE, RANK_SHIFT, Act, Space
from tir_schedules.machines.cpu.extents import Extent, variable_at
from tir_schedules.machines.cpu.functions import ARGUMENTS, RESULTS
from tir_schedules.machines.cpu.sources import NamedBuffer, Sources
from tir_schedules.machines.tensor_map import PIECE
from tir_schedules.model.findings import Finding
from tir_schedules.model.kernel import Kernel
from tir_schedules.model.launch import Dim3

Record = SimpleNamespace
"""A row of FINDING: its fields, as numbers."""

ACTS = ("reads", "writes", "updates")
"""In the order of Act."""

OF_SIZE, OF_CACHE = NONE, 2
"""Values of `detail`, as check.h has them. OF_SIZE: of a misaligned access whose size is at fault, not its
address. OF_CACHE: of a stale read by a cache that learns of no store."""

SPACE_NAMES = ("shared memory", "global memory", "local memory", "memory")


def rank_and_byte(address: int) -> tuple[int, int]:
    """The parts of an address of shared memory of the cluster: the rank of the block, -1 for the own one, and
    the offset."""
    rank, byte = divmod(address, 1 << RANK_SHIFT)
    return (rank - 1, byte) if 1 <= rank <= 16 else (-1, address)


@dataclass(frozen=True)
class Fault:
    """One record in phrases. short: without addresses in shared memory, threads and source text."""

    record: Record
    sources: Sources
    buffers: Sequence[NamedBuffer]
    extents: Sequence[Extent]
    grid: Dim3
    short: bool = False
    assertion: str = ""

    @property
    def act(self) -> str:
        return ACTS[self.record.act]

    @property
    def where(self) -> str:
        """What the address is: an element of a buffer, or a byte of a variable or of a space."""
        address, space = self.record.address, self.record.space
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
        if not buffer.typed:
            return f"{buffer.name} at byte {offset}"
        element, rest = divmod(offset, buffer.element)
        return f"{buffer.name}[{element}]" + (f" and {rest} bytes" if rest else "")

    @property
    def extent(self) -> Extent | None:
        """The variable that an access to shared or local memory goes to, or comes from where it misses it."""
        number, space = self.record.extent, self.record.space
        address = self.record.address
        if space == Space.SHARED:
            _, address = rank_and_byte(address)
        return self.extents[number] if number else variable_at(self.extents, space, address)

    @property
    def variable_name(self) -> str:
        """Name of the variable; empty for an array on the stack."""
        return self.extent.name if self.extent else ""

    @property
    def of_heap(self) -> int:
        """1 in what malloc gave, 2 where that has been freed."""
        plain = FINDING_KINDS[self.record.kind] in ("out_of_bounds", "bad_free")
        return self.record.detail if plain else 0

    @property
    def limits(self) -> str:
        address = self.record.address
        if self.of_heap:
            has = f"it has {self.record.extent_bytes} bytes"
            return f"; {has}" if self.of_heap == 1 else "; it has been freed"
        if self.record.space != Space.GLOBAL:
            has = f"; {self.variable_name or 'it'} has {self.record.extent_bytes} bytes"
            return has if self.record.extent else ""
        number = (address >> BUFFER_SHIFT) - 1
        number += address & ((1 << BUFFER_SHIFT) - 1) >= 1 << (BUFFER_SHIFT - 1)
        if not 0 <= number < len(self.buffers):
            return ""
        buffer = self.buffers[number]
        return f"; {buffer.name} has {buffer.elements} {'elements' if buffer.typed else 'bytes'}"

    @property
    def bytes(self) -> str:
        return f"{self.record.bytes} bytes"

    @property
    def other(self) -> str:
        """The other access of a conflict, where it is known."""
        warp, lane, line = self.record.other_warp, self.record.other_lane, self.record.other_line
        if (
            self.short
            and self.sources.inside(line).place == self.sources.inside(self.record.line).place != ""
        ):
            return "the same line"
        if self.short:
            return self.sources.inside(line).place or (f"PTX line {line}" if line else "another warp")
        who = f"{self.other_block}warp {warp} lane {lane}" if warp >= 0 else "another warp"
        return f"{who} at {self.sources.inside(line)}" if line else who

    @property
    def other_place(self) -> str:
        """The line of the other instruction."""
        line = self.record.other_line
        return self.sources.inside(line).place or f"PTX line {line}"

    @property
    def other_block(self) -> str:
        """The block of the other access, when it is another: "block 1,0,0 "."""
        number = self.record.other_block - 1
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
        return f"{self.act} {self.where} that {self.other} {self.sources.act(self.record.other_line)},"


# ---- threads, blocks and memory ---
def missing(fault: Fault) -> str:
    """What would order the two accesses of a race."""
    if fault.record.other_block:
        return "nothing orders the two blocks" if fault.short else "and nothing orders the two blocks"
    barrier = missing_barrier(fault)
    if barrier or fault.short:
        barrier = barrier or "no __syncthreads between"
        return barrier if fault.short else f"with {barrier}"
    return "and no __syncthreads orders the two accesses"


def stale_read(fault: Fault) -> str:
    if fault.record.detail == OF_CACHE:
        message = f"{fault.act} {fault.where} by ld.global.nc, which {fault.other} has stored"
        why = "that cache learns of no store: load without __ldg, or without const __restrict__"
        return message if fault.short else f"{message}: {why}"
    fence = "__threadfence()" if fault.record.other_block else "__threadfence_block()"
    message = f"{fault.act} {fault.where}, which {fault.other} has stored: this may get an older value"
    if fault.record.detail:
        where = "after the load of the flag that announces it"
    else:
        where = "between the store and the store of the flag, and after the load of the flag"
    if fault.short:
        return f"{message} without {fence}"
    return f"{message}, because relaxed and volatile accesses do not order others: put {fence} {where}"


def deadlock(fault: Fault) -> str:
    if fault.record.act:
        return unit_deadlock(fault)
    number, arrived = fault.record.detail, fault.record.extent
    expected, resident = fault.record.extent_bytes, fault.record.bytes
    held = f"; a GPU holds {resident} blocks of this kernel at once, and the others never begin"
    held = held if resident else ""
    if number == NONE:
        return f"waits in this loop for memory that no thread changes{held}"
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
    address = fault.record.bytes | fault.record.extent_bytes << 32
    called = f"calls a function at {address:#x}, where there is none"
    beyond = f"goes to entry {address} of a table of branches, which has less"
    what = ("a trap was executed", "a brkpt was executed, with no debugger to stop in", called, beyond)
    return f"{what[fault.record.detail]}; the launch was stopped"


def uninitialized(fault: Fault) -> str:
    line, space = fault.record.other_line, fault.record.space
    use, read = fault.sources.inside(line), fault.sources.inside(fault.record.line)
    used = f"; used at {use}" if line and (use.file, use.line) != (read.file, read.line) else ""
    followed = fault.record.detail
    if space == Space.GENERIC and followed:
        return f"takes the value of a lane outside its mask, which is undefined{used}"
    if space == Space.GENERIC:
        return "uses a variable that nothing has written"
    if space == Space.SHARED and line and not followed:
        return (
            f"{fault.act} {fault.where}, where a value that nothing has written was stored by {fault.other}"
        )
    if fault.variable_name in UNSET:
        return UNSET[fault.variable_name]
    return f"{fault.act} {fault.where}, which nothing has written{used}"


def misaligned(fault: Fault) -> str:
    stride = fault.record.detail
    if stride == OF_SIZE:
        size = f"{fault.act} {fault.bytes} from {fault.where} on"
        return f"{size}: the size of a bulk copy is a multiple of 16 bytes"
    if stride:
        return (
            f"{fault.act} a tile at {fault.where} whose rows are {stride} bytes apart, which is not a"
            " multiple of 16 bytes"
        )
    return f"{fault.act} {fault.bytes} of {fault.where}, which is not a multiple of {fault.bytes}"


def divergent_barrier(fault: Fault) -> str:
    if fault.record.detail:
        asked = f"waits at barrier {fault.record.extent} for {fault.record.extent_bytes} threads"
        return f"{asked}; there are barriers 0 to 15, for multiples of 32 threads"
    line, warp, lane = fault.record.other_line, fault.record.other_warp, fault.record.other_lane
    there = fault.sources.inside(line)
    place = there.place if fault.short and there.place else there
    return f"warp {warp} lane {lane} waits at another barrier, {place}"


# ---- asynchronous units, mbarriers and clusters ---
COPY, PRODUCT, BARRIER = "tma", "wgmma", "mbarrier"
"""Classes of instructions in the counters' mix."""

NO_WAIT = {
    COPY: "wait for it with cp.async.bulk.wait_group.read, and let the writer know",
    PRODUCT: "wait for it with wgmma.wait_group, and let the writer know",
}


def operation(fault: Fault, line: int) -> str:
    """What the unit does: "the wgmma of main.cu:7"."""
    name = {COPY: "bulk copy", PRODUCT: "wgmma"}.get(fault.sources.mix(line), "asynchronous operation")
    place = fault.sources.inside(line)
    return f"the {name} of {place.place if fault.short and place.place else place}"


def slot_in_use(fault: Fault) -> str:
    line = fault.record.other_line
    message = f"{fault.act} {fault.where}, which {operation(fault, line)} may still be reading"
    remedy = NO_WAIT.get(fault.sources.mix(line), "")
    return message if fault.short or not remedy else f"{message}: {remedy}"


def in_flight(fault: Fault) -> str:
    line = fault.record.other_line
    if fault.sources.mix(line) not in (COPY, PRODUCT):
        return f"{fault.act} {fault.where}, where an asynchronous copy is still under way"
    message = f"{fault.act} {fault.where}, where {operation(fault, line)} may still be under way"
    if fault.short:
        return message
    waits = "with cp.async.bulk.wait_group" if fault.record.space == Space.GLOBAL else "at its mbarrier"
    return f"{message}: wait for it {waits} first"


def unfenced_proxy(fault: Fault) -> str:
    if fault.record.act == Act.ATOMIC:
        return (
            f"tells the mbarrier {fault.where} of its bytes, which {fault.other} has initialised,"
            " with no fence.mbarrier_init or fence.proxy.async between"
        )
    done = "read" if fault.record.detail else "written"
    return f"{fault.act} {fault.where}, which {fault.other} has {done}, with no fence.proxy.async between"


def missing_barrier(fault: Fault) -> str:
    """The missing barrier of a race between a unit and a thread, or of one about an mbarrier itself; empty
    for others."""
    mixes = {fault.sources.mix(line) for line in (fault.record.line, fault.record.other_line)}
    if fault.record.other_block or mixes.isdisjoint((COPY, PRODUCT, BARRIER)):
        return ""
    return "no barrier or mbarrier between"


def unit_deadlock(fault: Fault) -> str:
    """The text for lanes that wait for an mbarrier, other blocks of the cluster, or warps of their
    warpgroup."""
    if fault.record.act == Act.WRITE:
        return (
            "waits at the barrier of the cluster, which not all threads of its blocks reach",
            "waits for products that not all four warps of the warpgroup have committed",
        )[fault.record.detail]
    arrivals, missing = fault.record.extent_bytes, signed(fault.record.bytes)
    lacks = [f"{arrivals} arrival{'s' * (arrivals != 1)}"] if arrivals else []
    lacks += [f"{missing} bytes"] if missing > 0 else []
    are = "are" if arrivals != 1 or missing > 0 else "is"
    needs = f"{' and '.join(lacks)} {are} missing" if lacks else ""
    if missing < 0:
        more = f"{-missing} bytes came that no thread has told it to expect"
        needs = f"{needs}, and {more}" if needs else more
    missed = fault.record.other_lane
    also = f"; phase {missed} is over, and this thread has not waited for it" if missed else ""
    role = fault.record.role
    named = f"{('empty', 'full')[(role - 1) % 2]} {(role - 1) // 2}, " if role else ""
    return f"waits for phase {fault.record.detail} of {named}the mbarrier {fault.where}: {needs}{also}"


def signed(number: int) -> int:
    return number - (number >> 31 << 32)


def barrier_misuse(fault: Fault) -> str:
    value, what = fault.record.extent_bytes, f"the mbarrier {fault.where}"
    most = (1 << 20) - 1
    return (
        f"uses {what}, which is not initialised",
        f"uses {what}, which has to be at a multiple of 8 bytes in the block's own shared memory",
        f"{what} is given a count of {value}; it can be 1 to {most}",
        f"initialises {what}, which is in use: threads have arrived, or bytes are expected"
        if value
        else f"initialises {what}, which is one already: mbarrier.inval first",
        f"arrives at {what} more often than the {value} times that a phase takes",
        f"{what} is told of {value} bytes: more than the {most} that it can count",
        f"{fault.act} {fault.bytes} of {fault.where}, where an mbarrier is: mbarrier.inval first",
        f"waits for a phase of {what} by a state that is older than the phase before this one",
        f"{what}: .noComplete, and this arrival completes the phase",
        "arrives at the barrier of the cluster again, without a barrier.cluster.wait between",
        "waits at the barrier of the cluster, where it has not arrived",
        f"{what} is in another block than what is copied to",
        f"arrives at {what}, which completes a phase after {value} arrivals; nothing orders this arrival"
        " after the phase before, which may be complete without it",
    )[fault.record.detail]


def cluster_exit(fault: Fault) -> str:
    return (
        f"{fault.act} {fault.where}, which may have left: let it wait for this, with barrier.cluster or at an"
        " mbarrier"
    )


def left_in_flight(fault: Fault) -> str:
    return (
        "the thread leaves while this copy may still read shared memory: wait for it with"
        " cp.async.bulk.wait_group.read 0",
        "the warp leaves while this product is under way: wait for it with wgmma.wait_group 0",
        "the block leaves while this copy may be under way: no thread has waited for the mbarrier"
        f" {fault.where}",
        f"the block leaves while the mbarrier {fault.where} expects {signed(fault.record.bytes)} more bytes",
    )[fault.record.detail]


# ---- warpgroups ---
def divergent_aligned(fault: Fault) -> str:
    record = fault.record
    return (
        f"not every lane it concerns executes it (active lanes {record.detail:#010x})",
        f"the warps of a warpgroup execute different instructions: {fault.other_place} is there in its place",
        f"the block has {record.bytes} warps, and a warpgroup four: take a multiple of 128 threads",
        f"warp {record.warp} has left, and the others of its warpgroup have executed this",
        f"lanes {record.detail:#010x} of a warp wait here, and others of it go on without them:"
        f" {fault.other_place}",
    )[record.extent]


def bad_descriptor(fault: Fault) -> str:
    """In the order of DescriptorFault in core/check/warpgroups.cpp."""
    record = fault.record
    which, of_right = record.detail & 0xFF, record.detail >> 8
    span, pattern = record.extent_bytes, 8 * record.extent_bytes
    into_row, into_pattern = (record.address % span, record.address % pattern) if span else (0, 0)
    overlap = (
        f"its parts overlap: one takes {pattern} bytes, and by its {{}} byte offset of {record.bytes} the"
    )
    overlap += " next begins within it"
    wrong = (
        "bits are set that have no meaning: mask what is put into its fields with 0x3FFF",
        f"it ends at byte {record.bytes}, behind the end of shared memory: check start and strides",
        f"base offset {record.extent} without a swizzle: it has to be 0",
        f"it begins {into_row} bytes into a row of {span}, and takes 32: begin {span - 32} into it at most",
        f"it begins {into_pattern} bytes into the pattern of its swizzle"
        + (between_patterns(fault, span, pattern) if pattern else ""),
        f"base offset {record.extent} does not fit its start: {into_pattern >> 7} would",
        "lanes or warps of the warpgroup have different ones: all have to have the same",
        f"it reads what {fault.other_place} has copied, but has a swizzle of {span or 'no'} bytes, and the"
        f" tensor map one of {record.extent or 'no'} bytes: take the same for both",
        overlap.format("stride"),
        overlap.format("leading"),
    )[which - 1]
    return f"the descriptor of {'AB'[of_right]} (start at byte {record.address} of shared memory): {wrong}"


def between_patterns(fault: Fault, span: int, pattern: int) -> str:
    """What to do, which depends on whether the variable begins where a pattern does."""
    into = fault.record.address % pattern
    variable = variable_at(fault.extents, Space.SHARED, fault.record.address)
    if not variable or variable.low % pattern:
        return f": align the array to {pattern} bytes, or say base offset {into >> 7}"
    return (
        f", in its row {into // span}, though {variable.name or 'the array'} is aligned: begin a tile at a"
        f" multiple of {pattern} bytes; a step along K within a row adds 32 bytes to the start, which is 2 to"
        " the descriptor"
    )


# ---- registers ---
def wgmma_registers(fault: Fault) -> str:
    what = "a factor" if fault.record.detail else "a sum"
    done = "before wgmma.wait_group has waited for its group"
    return f"{fault.act} {what} of the wgmma of {fault.other_place} {done}"


def unfenced_wgmma(fault: Fault) -> str:
    what = "a factor" if fault.record.detail else "a sum"
    if not fault.record.other_line:
        return f"{what} of it is in a register, and no wgmma.fence has been executed"
    return f"{what} of it was written by {fault.other_place}, with no wgmma.fence between"


def too_many_registers(fault: Fault) -> str:
    asked, all_, launched = fault.record.detail, fault.record.bytes, fault.record.extent_bytes
    there = f"it was launched with {launched}" if launched else "a multiprocessor has 65536"
    what = f"asks for {asked} registers of each thread, and the block for {all_}"
    return f"{what}: {there}, and this waits forever"


# ---- tensor maps ---
def bad_tensor_map(fault: Fault) -> str:
    """In the order of MapFault in core/async/tensor_maps.cpp."""
    given, wanted = signed(fault.record.bytes), fault.record.extent_bytes
    element = wanted or 1  # bytes
    return (
        "there is no tensor map at the address: pass one as const __grid_constant__ CUtensorMap, and name it"
        " in the launch",
        f"the copy has {given} coordinates, and the tensor {wanted} dimensions",
        f"byte {fault.record.address} of shared memory is not a multiple of 128: align the array",
        "the tensor map lies in memory that the kernel may write: pass it as a parameter",
        f"the innermost coordinate is {given}, of elements of {element} bytes, so {given * element} bytes: it"
        f" has to be a multiple of {PIECE} bytes, of {PIECE // element} elements, or a GPU ends the kernel"
        " (illegal instruction)",
        f"a store begins at coordinate {given}: it may reach beyond the end of the tensor, but not begin"
        " before it, or a GPU ends the kernel (illegal instruction)",
    )[fault.record.detail - 1]


ROUNDED = " up to rounding"
"""Added to a same_value whose bits are not all alike."""

# ---- all ---
NAMED = (
    barrier_misuse, slot_in_use, unfenced_proxy, cluster_exit, left_in_flight, misaligned,
    uninitialized, in_flight, divergent_barrier, bad_free, trap, deadlock,
    bad_tensor_map, bad_descriptor, wgmma_registers, unfenced_wgmma, divergent_aligned, too_many_registers,
)  # fmt: skip
"""Messages about kinds of their own names."""

ENDLESS = (
    "the instruction budget of a warp is used up; the launch was stopped",
    "this loop never ends: it comes back to where it was",
    "goes on long after an access out of bounds, where a GPU ends the kernel; the launch was stopped",
)
"""What an endless loop's detail means."""

MESSAGES: dict[str, Callable[[Fault], str]] = {
    "out_of_bounds": lambda f: f"{f.act} {f.bytes} of {f.where}, out of bounds{f.limits}",
    "race": lambda f: f"{f.clash} {missing(f)}",
    "stale_read": stale_read,
    "lockstep": lambda f: (
        f"{f.clash} {'no __syncwarp between' if f.short else 'and no __syncwarp orders the two accesses'}"
    ),
    "overlapping_writes": lambda f: (
        f"{f.act} {f.where}, which another thread has written{' at' if f.short else ','} {f.other}"
    ),
    "write_to_input": lambda f: f"{f.act} {f.where}, which is an input",
    "stack_overflow": lambda f: (
        f"the stack has {f.record.detail} bytes, and {f.record.bytes} more are needed; the launch was"
        " stopped (on a GPU, cudaDeviceSetLimit with cudaLimitStackSize gives it more)"
    ),
    "assertion": lambda f: f.assertion,
    "endless_loop": lambda f: ENDLESS[f.record.detail],
    "same_value": lambda f: (
        f"{f.act} {f.where}, where {f.other} has stored the same value"
        f"{ROUNDED if f.record.detail else ''}, and nothing orders the two"
    ),
    **{message.__name__: message for message in NAMED},
}


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
    for row in records.tolist():
        record = Record(**dict(zip(FINDING.names or (), row)))
        kind, against = (
            FINDING_KINDS[record.kind],
            sources.inside(record.other_line) if record.other_line else None,
        )
        message, brief = (
            MESSAGES[kind](Fault(record, sources, buffers, extents, kernel.grid, short, assertion))
            for short in (False, True)
        )
        x, y, z = record.block.tolist()
        found.append(Finding(
            kind, message, kernel.label, sources.inside(record.line), (x, y, z), record.warp, record.lane,
            record.count, against, record.other_warp, brief,
        ))  # fmt: skip
    return tuple(sorted(found, key=lambda finding: FINDING_KINDS.index(finding.kind)))
