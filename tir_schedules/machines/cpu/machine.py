"""The CPU machine: executes the PTX that nvcc made, checks every access, and counts what it costs.

It runs blocks one after another and, in a block, one warp until it waits, so that code which relies on more
synchronisation than it asks for goes wrong visibly. Several orders of blocks and warps show more. Findings
never stop a launch, except a deadlock and an endless loop.
"""

from __future__ import annotations

import copy
import os
import re
import time
from dataclasses import replace
from numbers import Integral
from typing import Iterator, Mapping, Sequence

import numpy as np

from tir_schedules import interrupts
from tir_schedules.compiler.source_text import SourceText, place_in_ptx
from tir_schedules.errors import BadInput
from tir_schedules.machines.cpu.abi import Flag
from tir_schedules.machines.cpu.invocation import STOP, Invocation, Launch, Room, attributes
from tir_schedules.machines.cpu.kernels import linked
from tir_schedules.machines.cpu.library import the_library
from tir_schedules.machines.cpu.orders import combined, largest_of
from tir_schedules.machines.cpu.ptx import UnsupportedInstruction
from tir_schedules.machines.cpu.watching import Watched
from tir_schedules.model.attributes import check_attributes, check_block, check_shared
from tir_schedules.model.kernel import Binary
from tir_schedules.model.machine import Execution, Watch
from tir_schedules.model.workload import Arguments

WARP_BUDGET = 1 << 34
"""Instructions a warp may execute before its loop counts as endless: some minutes of this machine. A loop
that comes back to where it was needs no budget to be found."""

ORDERS = {"forward": Flag(0), "reverse": Flag.REVERSE, "random": Flag.SHUFFLE}
"""How blocks, and the warps of each, take turns."""

COPIES = {"late": Flag(0), "early": Flag.EARLY}
"""When the data of asynchronous copies and products moves: as late as the kernel allows, or at once."""

STACK_BYTES, HEAP_BYTES = 1 << 10, 8 << 20
"""What CUDA gives by default: stack of a thread, and memory for malloc."""

RANGES = {
    "budget": (0, 2**63), "orders": (1, 2**20), "seed": (0, 2**32 - 1), "cores": (1, 2**12),
    "stack": (0, 2**19), "heap": (0, 2**38),
}  # fmt: skip
"""Least and largest value of each number. stack: up to the local memory of a thread; heap: of a GPU."""


def stop_launches() -> None:
    STOP.value = 1


interrupts.at_stop(stop_launches)


class CpuMachine:
    """Runs Binaries on the CPU. Safe to use from several threads.

    warp_order: one of ORDERS, how blocks and the warps of each take turns; a sound kernel does not care.
    copies: one of COPIES, when what is asynchronous happens; at random in random orders.
    orders: how many orders are executed: the one named, its reverse with copies the other way, then random
    ones that `seed` decides.
    budget: instructions a warp may execute. cores: how many may run blocks that nothing orders. stack, heap:
    bytes for the calls of recursive functions and alloca of a thread, and for malloc. Running raises
    MissingTool when there is no C++ compiler.
    """

    name = "cpu"
    device_name = "the CPU machine"

    def __init__(
        self,
        warp_order: str = "forward",
        budget: int = WARP_BUDGET,
        orders: int = 1,
        seed: int = 0,
        cores: int | None = None,
        stack: int = STACK_BYTES,
        heap: int = HEAP_BYTES,
        copies: str = "late",
    ):
        if warp_order not in [*ORDERS]:
            raise BadInput(f"warp_order is {warp_order!r}; it can be {' or '.join(ORDERS)}")
        if copies not in [*COPIES]:
            raise BadInput(f"copies is {copies!r}; it can be {' or '.join(COPIES)}")
        self.warp_order, self.copies = warp_order, copies
        self.budget, self.orders, self.seed = whole(budget=budget), whole(orders=orders), whole(seed=seed)
        self.cores = usable_cores() if cores is None else whole(cores=cores)
        self.stack, self.heap = whole(stack=stack), whole(heap=heap)

    def limited(self, orders: int, budget: int) -> CpuMachine:
        """The same machine with fewer orders, and a smaller budget."""
        limited = copy.copy(self)
        limited.orders, limited.budget = min(orders, self.orders), min(budget, self.budget)
        return limited

    def run(
        self,
        binary: Binary,
        arguments: Arguments,
        outputs: Sequence[str],
        *,
        count: bool = False,
        watch: Watch | None = None,
        given: Sequence[str] = (),
        stored: Mapping[str, np.ndarray] | None = None,
    ) -> Execution:
        """Launch the kernel once, in as many orders as the machine has.

        arguments: by name; arrays must be C-contiguous. outputs: names of the arrays the kernel may write, in
        place; all their elements count as unwritten before, except for those in `given`. stored: of other
        arrays, which elements earlier launches have written, as Execution.stored has it; the others count as
        unwritten, also in an array that this kernel only reads. count: also count accesses and instructions,
        which takes about as long again. watch: run one block alone, in one order, and keep the requests of
        one of its warps, or all its accesses; also counts, except for steps; see Watch. Before anything
        runs it raises UnsupportedInstruction for PTX that the machine does not know, CheckFailed for a
        launch that CUDA would refuse, and BadInput for a block or warp that does not exist.
        """
        interrupts.check()
        check_launch(binary)
        library = the_library()
        try:
            kernel = linked(library, binary.ptx, binary.kernel.entry)
        except UnsupportedInstruction as error:
            raise UnsupportedInstruction(f"{binary.kernel.label}: {with_place(str(error), binary)}") from None
        check_shared(binary.kernel, kernel.lowered.kernel.shared_bytes)
        launch = Launch(kernel, binary, arguments, outputs, given, stored or {})
        if watch or self.orders == 1:
            return self._once(launch, count, watch)
        before = {name: arguments[name].copy() for name in outputs}
        launch = replace(launch, largest=largest_of(launch))
        first = self._once(launch, count)

        def in_other_orders() -> Iterator[tuple[Execution, Arguments]]:
            for flags, seed in self._more_orders():
                again = {**arguments, **{name: array.copy() for name, array in before.items()}}
                yield self._once(replace(launch, arguments=again), False, None, flags, seed), again

        return combined(first, in_other_orders(), launch)

    def _more_orders(self) -> Iterator[tuple[Flag, int]]:
        """Options and seeds of the orders after the first."""
        reverse = Flag(0) if self.warp_order == "reverse" else Flag.REVERSE
        yield reverse | (Flag.EARLY if self.copies == "late" else Flag(0)), 0
        for k in range(self.orders - 2):
            yield Flag.SHUFFLE, self.seed + k

    def _once(
        self,
        launch: Launch,
        count: bool,
        watch: Watch | None = None,
        order: Flag | None = None,
        seed: int | None = None,
    ) -> Execution:
        """Execute in one order."""
        watched = Watched(watch, launch.binary.kernel) if watch else None
        count = count or watched is not None and not watched.follows
        flags = ORDERS[self.warp_order] | COPIES[self.copies] if order is None else order
        flags |= Flag.COUNT if count else Flag(0)
        seed = self.seed if seed is None else seed
        room = Room(self.budget, self.stack, self.heap)
        started = time.perf_counter()
        for cores in (1,) if watched else (self.cores, 1):
            before = {name: launch.arguments[name].copy() for name in launch.outputs} if cores > 1 else {}
            invocation = Invocation(launch)
            if invocation.start(the_library(), room, flags, seed, cores, watched):
                break
            for name, array in before.items():
                launch.arguments[name][...] = array
        return invocation.execution(time.perf_counter() - started, count, watched)


def whole(**option: int) -> int:
    """The value of an option of the machine, given by its name. BadInput when it is not in RANGES."""
    ((name, value),) = option.items()
    least, most = RANGES[name]
    if not isinstance(value, Integral) or isinstance(value, bool) or not least <= value <= most:
        raise BadInput(f"{name} is {value!r}; it can be a whole number from {least} to {most}")
    return int(value)


def usable_cores() -> int:
    """How many threads this process can run at once."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_launch(binary: Binary) -> None:
    """CheckFailed for a launch that CUDA refuses."""
    kernel, asked = binary.kernel, attributes(binary.ptx, binary.kernel.entry)
    check_block(kernel)
    check_attributes(kernel, asked)
    if asked.unknown:
        raise UnsupportedInstruction(
            f"{kernel.label}: the CPU machine does not know {asked.unknown[0]}, which {kernel.entry} declares"
        )


def with_place(message: str, binary: Binary) -> str:
    """A message that begins with a PTX line, with the source line that comes from."""
    ptx_line = re.match(r"PTX line (\d+)(?=:)", message)
    place = place_in_ptx(binary.ptx, int(ptx_line[1]), binary.kernel) if ptx_line else None
    if not ptx_line or not place:
        return message
    file, number = SourceText(binary.kernel).place(*place)
    return f"{ptx_line[0]} ({file}:{number}){message[ptx_line.end() :]}"
