"""The CPU machine: executes the PTX that nvcc made, checks every access, and counts what it costs.

It runs blocks one after another and, in a block, warps from barrier to barrier, so that code which relies on
more synchronisation than it asks for goes wrong visibly. Findings never stop a launch, except an endless
loop.
"""

from __future__ import annotations

import ctypes
import re
import time
from functools import lru_cache
from math import prod
from typing import Any, Sequence

import numpy as np

from tir_schedules import interrupts
from tir_schedules.compiler.source_text import SourceText, place_in_ptx
from tir_schedules.errors import BadInput, CheckFailed
from tir_schedules.machines.cpu import abi
from tir_schedules.machines.cpu.abi import BUFFER_SHIFT, FINDING_KINDS, Flag
from tir_schedules.machines.cpu.context import PARAMETERS
from tir_schedules.machines.cpu.counting import counters_of
from tir_schedules.machines.cpu.findings import NamedBuffer, Sources, findings
from tir_schedules.machines.cpu.functions import FRAME_ALIGN
from tir_schedules.machines.cpu.kept import lowered_kernel
from tir_schedules.machines.cpu.library import Library, the_library
from tir_schedules.machines.cpu.linking import LinkedKernel, link
from tir_schedules.machines.cpu.ptx import BITS, Parameter, UnsupportedInstruction, Variable
from tir_schedules.machines.cpu.watching import Watched
from tir_schedules.model.attributes import Attributes, attributes_of, check_attributes, check_block, spelled
from tir_schedules.model.execution import Execution, Watch
from tir_schedules.model.findings import Location
from tir_schedules.model.gpus import rounded_up
from tir_schedules.model.kernel import Binary
from tir_schedules.model.workload import Arguments

WARP_BUDGET = 1 << 27
"""Instructions a warp may execute before its loop counts as endless: some seconds of this machine."""

FINDING_LIMIT = 256
"""Records kept of one kind of finding: pairs of source lines."""

STOP = ctypes.c_uint32(0)
"""Every launch ends where it is once this is not 0."""

STACK_BYTES, HEAP_BYTES, PRINTED_BYTES = 1 << 10, 8 << 20, 1 << 20
"""What CUDA gives by default: stack of a thread, memory for malloc, and for printf."""

CUT = "\n[printf: what was printed beyond {} bytes is left out]\n"
MESSAGE_BYTES = 4096

WARP_ORDERS = {"forward": Flag(0), "reverse": Flag.REVERSE}


def stop_launches() -> None:
    STOP.value = 1


interrupts.at_stop(stop_launches)


class CpuMachine:
    """Runs Binaries on the CPU. Safe to use from several threads.

    warp_order: "forward" or "reverse", how the warps of a block take turns; a sound kernel does not care.
    budget: instructions a warp may execute. stack, heap: bytes for the calls of recursive functions and
    alloca of a thread, and for malloc. Running raises MissingTool when there is no C++ compiler.
    """

    name = "cpu"
    device_name = "CPU machine"

    def __init__(
        self,
        warp_order: str = "forward",
        budget: int = WARP_BUDGET,
        stack: int = STACK_BYTES,
        heap: int = HEAP_BYTES,
    ):
        if warp_order not in WARP_ORDERS:
            raise BadInput(f"warp_order is {warp_order!r}; it can be {' or '.join(WARP_ORDERS)}")
        self.warp_order, self.budget, self.stack, self.heap = warp_order, budget, stack, heap

    def run(
        self,
        binary: Binary,
        arguments: Arguments,
        outputs: Sequence[str],
        *,
        count: bool = False,
        watch: Watch | None = None,
    ) -> Execution:
        """Launch the kernel once.

        arguments: by name; arrays must be C-contiguous. outputs: names of the arrays the kernel may write, in
        place; all their elements count as unwritten before. count: also count accesses and instructions,
        which takes about as long again. watch: run one block alone, and keep the requests of one of its
        warps; counts too. Raises, before anything runs, UnsupportedInstruction for PTX that the machine does
        not know, CheckFailed for a launch that CUDA would refuse, and BadInput for a block or warp there is
        not.
        """
        interrupts.check()
        check_launch(binary)
        library = the_library()
        try:
            kernel = linked(library, binary.ptx, binary.kernel.entry)
        except UnsupportedInstruction as error:
            raise UnsupportedInstruction(f"{binary.kernel.label}: {with_place(str(error), binary)}") from None
        watched = Watched(watch, binary.kernel) if watch else None
        count = count or watched is not None
        invocation = Invocation(kernel, binary, arguments, outputs)
        flags = WARP_ORDERS[self.warp_order] | (Flag.COUNT if count else Flag(0))
        started = time.perf_counter()
        invocation.start(library, self, flags, watched)
        seconds = time.perf_counter() - started
        return invocation.execution(seconds, count, watched)


def check_launch(binary: Binary) -> None:
    """CheckFailed for a launch that CUDA refuses, UnsupportedInstruction for clusters of several blocks."""
    kernel, asked = binary.kernel, attributes(binary.ptx, binary.kernel.entry)
    check_block(kernel)
    check_attributes(kernel, asked)
    if asked.unknown:
        raise UnsupportedInstruction(
            f"{kernel.label}: the CPU machine does not know {asked.unknown[0]}, which {kernel.entry} declares"
        )
    if asked.cluster and prod(asked.cluster) > 1:
        raise UnsupportedInstruction(
            f"{kernel.label}: the CPU machine does not know clusters, and {kernel.entry} asks for"
            f" __cluster_dims__ {spelled(asked.cluster)} (.reqnctapercluster): leave them out, or use"
            " --machine gpu"
        )


@lru_cache(maxsize=128)
def attributes(ptx: str, entry: str) -> Attributes:
    return attributes_of(ptx, entry)


@lru_cache(maxsize=128)
def linked(library: Library, ptx: str, entry: str) -> LinkedKernel:
    """A kernel ready to run; launches of one kernel with other arguments share the result."""
    return link(library, lowered_kernel(ptx, entry))


def with_place(message: str, binary: Binary) -> str:
    """A message that begins with a PTX line, with the source line that comes from."""
    ptx_line = re.match(r"PTX line (\d+)(?=:)", message)
    place = place_in_ptx(binary.ptx, int(ptx_line[1]), binary.kernel) if ptx_line else None
    if not ptx_line or not place:
        return message
    file = SourceText(binary.kernel).shown(place[0])
    return f"{ptx_line[0]} ({file}:{place[1]}){message[ptx_line.end() :]}"


class Invocation:
    """Buffers, parameters and results of one launch."""

    def __init__(self, linked: LinkedKernel, binary: Binary, arguments: Arguments, outputs: Sequence[str]):
        self.program, self.lowered, self.binary = linked.program, linked.lowered, binary
        lowered = linked.lowered
        self.sources = Sources(binary, lowered)
        self.names: list[NamedBuffer] = []
        self.shadows: dict[str, np.ndarray] = {}
        self._kept: list[np.ndarray] = []  # what addresses point to
        rows = [self._variable(variable) for variable in lowered.module.variables.values()]
        values: list[Any] = []
        for name in binary.kernel.params:
            value = arguments[name]
            if isinstance(value, np.ndarray) and not (value.shape == () and value.dtype.names):
                rows.append(self._array(name, value, name in outputs))
                value = len(rows) << BUFFER_SHIFT
            values.append(value)
        self.buffers = np.array(rows or [(0, 0, 0, 0, 1)], abi.BUFFER)
        self.buffer_count = len(rows)
        self.params = pack(lowered.kernel.parameters, values, binary.kernel.label)
        if PARAMETERS in lowered.module.variables:
            ctypes.memmove(
                self._kept[list(lowered.module.variables).index(PARAMETERS)].ctypes.data,
                self.params,
                len(self.params),
            )
        self.printed = np.zeros(PRINTED_BYTES, np.uint8)
        self.message = np.zeros(MESSAGE_BYTES, np.uint8)
        self.said = abi.Said(self.printed.ctypes.data, self.message.ctypes.data, PRINTED_BYTES, MESSAGE_BYTES)
        self.counters = np.zeros(max(1, len(lowered.counted)), abi.COUNTER)
        self.block_counts = np.zeros(len(lowered.blocks), abi.BLOCK_COUNT)
        self.records = np.zeros(FINDING_LIMIT * len(FINDING_KINDS), abi.FINDING)

    def _variable(self, variable: Variable) -> tuple[int, ...]:
        """A row of BUFFER for a module variable; const ones may not be written."""
        content = np.zeros(max(1, variable.size), np.uint8)
        content[: len(variable.initial)] = np.frombuffer(variable.initial, np.uint8)
        self._kept.append(content)
        self.names.append(NamedBuffer(variable.name, 1, variable.size))
        return (content.ctypes.data, variable.size, 0, 0, int(variable.space == "const"))

    def _array(self, name: str, array: np.ndarray, output: bool) -> tuple[int, ...]:
        """A row of BUFFER for an argument."""
        if not array.flags.c_contiguous:
            raise ValueError(f"{name} is not C-contiguous")
        self.names.append(NamedBuffer(name, array.itemsize, array.size))
        shadow = 0
        if output:
            self.shadows[name] = np.zeros(array.size + 1, abi.OUTPUT_SHADOW)
            shadow = self.shadows[name].ctypes.data
        self._kept.append(array)
        return (array.ctypes.data, array.nbytes, shadow, array.itemsize.bit_length() - 1, int(not output))

    def start(
        self, library: Library, machine: CpuMachine, flags: int, watched: Watched | None = None
    ) -> None:
        lowered, kernel = self.lowered, self.binary.kernel
        stack_start = rounded_up(lowered.kernel.local_bytes, FRAME_ALIGN)
        stack = machine.stack * lowered.kernel.stack_scale
        merges = np.array([access.merge for access in lowered.counted] or [(0, 0)], abi.MERGE)
        arguments = abi.LaunchArguments(
            program=ctypes.pointer(self.program),
            params=ctypes.cast(self.params, ctypes.c_void_p).value,
            buffers=self.buffers.ctypes.data,
            counters=self.counters.ctypes.data,
            merges=merges.ctypes.data,
            block_counts=self.block_counts.ctypes.data,
            findings=self.records.ctypes.data,
            watch=ctypes.addressof(watched.arguments) if watched else None,
            origins=self.sources.origins.ctypes.data,
            stop=ctypes.addressof(STOP),
            said=ctypes.addressof(self.said),
            budget=machine.budget,
            heap_bytes=machine.heap,
            grid=kernel.grid,
            block=kernel.block,
            buffer_count=self.buffer_count,
            shared_bytes=lowered.kernel.shared_bytes + kernel.dynamic_shared,
            local_bytes=stack_start + stack if stack else lowered.kernel.local_bytes,
            flags=flags,
            granule_shift=lowered.granule_shift,
            finding_limit=FINDING_LIMIT,
            stack_start=stack_start,
            stack_limit=machine.stack,
        )
        self.records = self.records[: library.core.launch(ctypes.byref(arguments))]
        interrupts.check()

    def execution(self, seconds: float, count: bool, watched: Watched | None) -> Execution:
        """What is known after the launch."""
        lowered, sources = self.lowered, self.sources
        counters = counters_of(lowered, sources, self.counters, self.block_counts) if count else None
        label, assertion = self.binary.kernel.label, self.message.tobytes().partition(b"\0")[0]
        told = (sources, self.names, lowered.extents, assertion.decode("utf-8", "replace"))
        found = findings(self.records, label, *told)
        requests = watched.requests(lowered.counted, sources) if watched else ()
        met = watched.met if watched else 0
        return Execution(
            found, seconds, counters, self.writer, self.writers, requests, met, self.all_printed()
        )

    def all_printed(self) -> str:
        """What the kernel printed, which need not be text."""
        text = self.printed[: self.said.bytes].tobytes().decode("utf-8", "replace")
        return text + CUT.format(PRINTED_BYTES) if self.said.cut else text

    def writer(self, name: str, index: int) -> Location | None:
        """Where the element was last stored."""
        line = int(self.shadows[name][index]["line"])
        return self.sources(line) if line else None

    def writers(self, name: str) -> tuple[Location, ...]:
        """Every place that stored to the output."""
        return tuple(self.sources(int(line)) for line in np.unique(self.shadows[name]["line"]) if line)


def pack(parameters: Sequence[Parameter], values: Sequence[Any], label: str) -> ctypes.Array:
    """The kernel's parameter buffer. values: numbers, and bytes or numpy scalars for what is a struct."""
    if len(parameters) != len(values):
        raise CheckFailed(f"{label}: the kernel takes {len(parameters)} parameters, {len(values)} are named")
    content = bytearray(max((p.offset + p.size for p in parameters), default=1))
    for parameter, value in zip(parameters, values):
        if isinstance(value, (bytes, bytearray, memoryview, np.void, np.ndarray)):
            data = bytes(value) if isinstance(value, (bytes, bytearray)) else value.tobytes()
            if len(data) != parameter.size:
                raise CheckFailed(
                    f"{label}: parameter {parameter.name} has {parameter.size} bytes, {len(data)} are given"
                )
        elif parameter.type in ("f32", "f64"):
            data = np.array([value], f"f{parameter.size}").tobytes()
        elif parameter.size * 8 == BITS[parameter.type]:
            data = (int(value) & ((1 << 8 * parameter.size) - 1)).to_bytes(parameter.size, "little")
        else:
            raise CheckFailed(
                f"{label}: parameter {parameter.name} is a struct of {parameter.size} bytes: give bytes, or a"
                " numpy scalar of a structured type"
            )
        content[parameter.offset : parameter.offset + parameter.size] = data
    return (ctypes.c_uint8 * len(content)).from_buffer(content)
