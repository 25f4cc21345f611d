"""What a machine finds wrong while a kernel runs, and where."""

from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.model.launch import Dim3


@dataclass(frozen=True)
class Location:
    """A place in a kernel: PTX line, and the CUDA source file, line and text it was compiled from (when
    known). call: of code that was inlined, the outermost call, such as "line 20"."""

    ptx_line: int
    file: str = ""
    line: int = 0
    text: str = ""
    call: str = ""

    def __str__(self) -> str:
        source = (self.place or "source line unknown") + (f", called from {self.call}" if self.call else "")
        return f"{source} (PTX line {self.ptx_line})" + (f": {self.text}" if self.text else "")

    @property
    def place(self) -> str:
        """File and line, such as "broken.cu:23"; empty when they are not known."""
        return f"{self.file}:{self.line}" if self.line else ""


@dataclass(frozen=True)
class Finding:
    """One fault seen while a kernel ran; `count` says how often the same fault was met at this location.

    kind: one of KINDS. block: block index (x, y, z); warp and lane: of the first thread that was caught.
    other: where the other access of a conflict is, other_warp whose it was, -1 if unknown. brief: the message
    in a few words.
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

    @property
    def title(self) -> str:
        """The kind as a message has it."""
        return TITLES.get(self.kind, self.kind)

    def __str__(self) -> str:
        where = f"block {self.block[0]},{self.block[1]},{self.block[2]} warp {self.warp} lane {self.lane}"
        times = f", {self.count} times" if self.count > 1 else ""
        return f"{self.kernel}: {self.title}: {self.message} at {self.location} [{where}{times}]"


KINDS = {
    "bad_tensor_map": "a tensor map that CUDA refuses, or a copy that does not fit it",
    "bad_descriptor": "a wgmma descriptor that names no matrix in shared memory",
    "barrier_misuse": (
        "an mbarrier that is not initialised, initialised again, or told of more arrivals or bytes than it"
        " expects"
    ),
    "slot_in_use": "shared memory overwritten while an asynchronous read of it is unfinished",
    "unfenced_proxy": (
        "a bulk copy or wgmma touches what threads have written, or overwrites what they have read, with no"
        " fence.proxy.async between"
    ),
    "unfenced_wgmma": "registers written and then used by a wgmma with no wgmma.fence between",
    "wgmma_registers": "registers of a wgmma touched before the wait that covers it",
    "race": (
        "two threads touch a word of shared or global memory, one writes, and neither a barrier nor a flag"
        " with fences orders them"
    ),
    "stale_read": (
        "a relaxed or volatile load of what another thread has stored before it set a flag, with no fences"
        " on both sides of the flag, or a load by ld.global.nc of what the kernel has stored: it may get an"
        " older value"
    ),
    "in_flight": "data of an asynchronous copy touched before the wait that covers it",
    "lockstep": "lanes of one warp exchange data through memory with no __syncwarp between",
    "divergent_barrier": "a __syncthreads where some threads wait while others of the block wait at another",
    "out_of_bounds": "an access outside every buffer, or past an end of a variable in shared or local memory",
    "misaligned": (
        "an address that is not a multiple of the access size, or a wmma tile that is not aligned as CUDA"
        " asks"
    ),
    "write_to_input": "a store to an array that is not an output",
    "bad_free": "a free of what malloc did not return, or of what has been freed",
    "overlapping_writes": "two threads store to one word of global memory, and nothing orders them",
    "uninitialized": (
        "a read of shared, local or output memory that nothing wrote, or the use of a variable without a"
        " value"
    ),
    "divergent_aligned": "a warp-wide instruction, or __syncthreads, that some of its lanes do not execute",
    "cluster_exit": "an access to shared memory of a block of the cluster that may have left",
    "left_in_flight": "a thread or block leaves while its bulk copies or products are under way",
    "too_many_registers": "setmaxnreg for more registers than others give up, so that it waits forever",
    "stack_overflow": "more bytes for the calls of recursive functions and alloca than the stack has",
    "assertion": "an assert that failed",
    "trap": "a trap, or a call through a pointer that is not a function's",
    "deadlock": "every thread waits: at a barrier, or in a loop for memory that no thread changes",
    "endless_loop": "a loop that comes back to where it was, or the instruction budget was used up",
    "order_dependent": "other values in an output when blocks and warps take turns in another order",
}
"""Kinds of finding, causes before what they bring about: a missing barrier is a race, and so others read what
has not been written yet."""

OF_SEVERAL_ORDERS = ("order_dependent",)
"""Kinds that no single execution shows."""

NOTES = {"same_value": "several threads store one value to a word, and nothing orders them"}
"""What is worth knowing, and no fault."""

TITLES = {
    "bad_tensor_map": "bad tensor map",
    "bad_descriptor": "bad descriptor",
    "barrier_misuse": "misuse of an mbarrier",
    "slot_in_use": "slot in use",
    "unfenced_proxy": "missing fence.proxy.async",
    "unfenced_wgmma": "missing wgmma.fence",
    "wgmma_registers": "registers of a wgmma in flight",
    "stale_read": "stale read",
    "lockstep": "missing __syncwarp",
    "bad_free": "bad free",
    "cluster_exit": "block has left",
    "left_in_flight": "left in flight",
    "too_many_registers": "too many registers",
    "stack_overflow": "stack overflow",
}
"""Kinds that messages call by another name."""
