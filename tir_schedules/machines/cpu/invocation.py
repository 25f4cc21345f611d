"""One launch as the core is given it: buffers, parameters, room for what it records."""

from __future__ import annotations

import ctypes
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Mapping, NamedTuple, Sequence

import numpy as np

from tir_schedules import interrupts
from tir_schedules.errors import CheckFailed
from tir_schedules.machines.cpu import abi
from tir_schedules.machines.cpu.abi import BUFFER_SHIFT, FINDING_KINDS
from tir_schedules.machines.cpu.context import PARAMETERS
from tir_schedules.machines.cpu.counting import counters_of
from tir_schedules.machines.cpu.extents import source_name
from tir_schedules.machines.cpu.findings import findings
from tir_schedules.machines.cpu.functions import FRAME_ALIGN
from tir_schedules.machines.cpu.kernels import LinkedKernel
from tir_schedules.machines.cpu.library import Library
from tir_schedules.machines.cpu.ptx import BITS, Parameter, UnsupportedInstruction, Variable
from tir_schedules.machines.cpu.sources import NamedBuffer, Sources
from tir_schedules.machines.cpu.watching import Watched
from tir_schedules.machines.tensor_map import ELEMENT_BYTES, check_tensor_map
from tir_schedules.model.attributes import Attributes, attributes_of
from tir_schedules.model.findings import NOTES, Location
from tir_schedules.model.gpus import known_sm, occupancy, rounded_up
from tir_schedules.model.kernel import Binary
from tir_schedules.model.launch import Dim3, TensorMap, join_structs
from tir_schedules.model.machine import Execution
from tir_schedules.model.workload import Arguments

SMALL = 1 << 16
"""Bytes up to which a variable's accesses are told apart byte by byte."""

FINDING_LIMIT = 256
"""Records kept of one kind of finding: pairs of source lines."""

STOP = ctypes.c_uint32(0)
"""Every launch ends where it is once this is not 0."""

PRINTED_BYTES = 1 << 20
"""What CUDA gives by default for printf."""

CUT = "\n[printf: what was printed beyond {} bytes is left out]\n"
MESSAGE_BYTES = 4096

EXPONENTS = {"float16": 5, "bfloat16": 8, "float32": 8, "float64": 11}
"""Bits of the exponent, of types of arrays that are floats."""

EARLIER = -1
"""In place of the line that stored an element last: an earlier launch did."""

AGAIN = abi.NONE
"""What the core returns of a launch that has to be done again on one core."""

MULTIPROCESSORS = {
    "sm_75": 40, "sm_80": 108, "sm_86": 82, "sm_87": 16, "sm_89": 128, "sm_90": 132, "sm_100": 148,
    "sm_120": 170,
}  # fmt: skip
"""SMs of the GPU whose size decides how many blocks are resident together: T4, A100, RTX 3090, Orin, RTX
4090, H100, B200, RTX 5090."""


class Room(NamedTuple):
    """What a launch may use up: instructions of a warp; bytes of a thread's stack, and for malloc."""

    budget: int
    stack: int
    heap: int


@dataclass(frozen=True)
class Launch:
    """What is launched: a kernel on arguments. outputs, given, stored: as of CpuMachine.run. largest: of each
    element of some outputs, room for the largest magnitude that any launch has stored there."""

    kernel: LinkedKernel
    binary: Binary
    arguments: Arguments
    outputs: Sequence[str]
    given: Sequence[str]
    stored: Mapping[str, np.ndarray]
    largest: Mapping[str, np.ndarray] = field(default_factory=dict)


def clusters_of(binary: Binary) -> tuple[Dim3, Dim3]:
    """Blocks of a cluster, and the grid in blocks."""
    kernel, asked = binary.kernel, attributes(binary.ptx, binary.kernel.entry)
    x, y, z = cluster = asked.cluster or kernel.cluster
    if not asked.in_clusters:
        return cluster, kernel.grid
    return cluster, (kernel.grid[0] * x, kernel.grid[1] * y, kernel.grid[2] * z)


@lru_cache(maxsize=128)
def attributes(ptx: str, entry: str) -> Attributes:
    return attributes_of(ptx, entry)


def resident_blocks(binary: Binary) -> int:
    """How many blocks of a kernel a GPU of its architecture holds at once."""
    arch = re.sub(r"[a-z]$", "", binary.kernel.arch)
    if arch not in MULTIPROCESSORS or not known_sm(arch):
        arch = "sm_90"
    shared = binary.resources.shared + binary.kernel.dynamic_shared
    held = occupancy(arch, binary.kernel.block, binary.resources.registers, shared).blocks
    return max(1, held) * MULTIPROCESSORS[arch]


class Invocation:
    """Buffers, parameters and results of one launch."""

    def __init__(self, launch: Launch):
        lowered, binary, arguments = launch.kernel.lowered, launch.binary, launch.arguments
        self.program, self.lowered, self.binary = launch.kernel.program, lowered, binary
        self.sources = Sources(binary, lowered)
        self.names: list[NamedBuffer] = []
        self.sized = bool(launch.largest)
        self.cells: dict[str, np.ndarray] = {}
        self.cells_each: dict[str, int] = {}  # of an element
        self._kept: list[np.ndarray] = []  # what addresses point to
        self.variable_places: dict[str, int] = {}  # where among them a variable is
        rows = [self._variable(variable) for variable in lowered.module.variables.values()]
        values: list[Any] = []
        places: dict[str, int] = {}  # an array may be given for several parameters
        maps = {tensor.name: tensor for tensor in binary.kernel.maps}
        for at, parameter in enumerate(binary.kernel.params):
            name = maps[parameter].of if parameter in maps else parameter
            if parameter in maps and not isinstance(arguments.get(name), np.ndarray):
                raise CheckFailed(
                    f"{binary.kernel.label}: tensor map {parameter} is of {name}, which is not an array of"
                    " the launch"
                )
            value = arguments[name]
            if isinstance(value, np.ndarray) and not (value.shape == () and value.dtype.names):
                if name not in places:
                    rows.append(self._array(name, value, launch))
                    places[name] = len(rows) << BUFFER_SHIFT
                value = places[name]
            if parameter in maps:
                value = encoded(binary.kernel.label, maps[parameter], places[name])
                if is_pointer(lowered.kernel.parameters, at):  # to a map in global memory
                    rows.append(self._array(parameter, np.frombuffer(value, np.uint8), launch))
                    value = len(rows) << BUFFER_SHIFT
            values.append(value)
        self.buffers = np.array(rows or [(0, 0, 0, 0, 0, 1, 0, 0)], abi.BUFFER)
        self.buffer_count = len(rows)
        values = join_structs(binary.kernel.structs, values)
        self.params = pack(lowered.kernel.parameters, values, binary.kernel.label)
        if PARAMETERS in lowered.module.variables:
            content = self._kept[self.variable_places[PARAMETERS]]
            ctypes.memmove(content.ctypes.data, self.params, len(self.params))
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
        self.variable_places[variable.name] = len(self._kept)
        self._kept.append(content)
        self.names.append(NamedBuffer(source_name(variable.name), 1, variable.size, typed=False))
        constant, cells, element = variable.space == "const", 0, 0
        if not constant:
            element = 0 if variable.size <= SMALL else min(variable.align, 4).bit_length() - 1
            self._kept.append(np.zeros((variable.size >> element) + 1, abi.CELL))
            cells = self._kept[-1].ctypes.data
        return (content.ctypes.data, variable.size, cells, 0, element, int(constant), 1, 0)

    def _array(self, name: str, array: np.ndarray, launch: Launch) -> tuple[int, ...]:
        """A row of BUFFER for an argument."""
        output, given, stored = name in launch.outputs, name in launch.given, launch.stored.get(name)
        if not array.flags.c_contiguous:
            raise ValueError(f"{name} is not C-contiguous")
        self.names.append(NamedBuffer(name, array.itemsize, array.size))
        cells, element = 0, min(array.itemsize.bit_length() - 1, self.lowered.store_shift)
        if output or stored is not None:
            self.cells[name] = np.zeros((array.nbytes >> element) + 1, abi.CELL)
            self.cells_each[name] = array.itemsize >> element
            if stored is not None:
                each = np.repeat(np.ravel(stored), self.cells_each[name])
                self.cells[name]["line"][: len(each)][each] = EARLIER
            cells = self.cells[name].ctypes.data
        self._kept.append(array)
        largest = launch.largest[name].ctypes.data if name in launch.largest else 0
        real = array.itemsize << 8 | EXPONENTS[array.dtype.name] if array.dtype.name in EXPONENTS else 1
        return (array.ctypes.data, array.nbytes, cells, largest, element, int(not output), int(given), real)

    def start(
        self, library: Library, room: Room, flags: int, seed: int, cores: int, watched: Watched | None = None
    ) -> bool:
        """Whether the launch is done. When it is not, it has to be done again on one core, with outputs as
        they were."""
        lowered, kernel = self.lowered, self.binary.kernel
        stack_start = rounded_up(lowered.kernel.local_bytes, FRAME_ALIGN)
        stack = room.stack * lowered.kernel.stack_scale
        cluster, grid = clusters_of(self.binary)
        asked = attributes(self.binary.ptx, kernel.entry)
        merges = np.array([access.merge for access in lowered.counted] or [(0, 0)], abi.MERGE)
        arrays = dict(
            buffers=self.buffers, counters=self.counters, merges=merges, block_counts=self.block_counts,
            findings=self.records, origins=self.sources.origins,
        )  # fmt: skip
        if watched and watched.array:
            names = [buffer.name for buffer in self.names]
            watched.arguments.array = 1 + names.index(watched.array) if watched.array in names else 0
        arguments = abi.LaunchArguments(
            **{name: array.ctypes.data for name, array in arrays.items()},
            program=ctypes.pointer(self.program), params=ctypes.cast(self.params, ctypes.c_void_p).value,
            watch=ctypes.addressof(watched.arguments) if watched else None,
            stop=ctypes.addressof(STOP), said=ctypes.addressof(self.said),
            budget=room.budget, heap_bytes=room.heap, stack_start=stack_start, stack_limit=room.stack,
            grid=grid, block=kernel.block, cluster=cluster, buffer_count=self.buffer_count,
            shared_bytes=lowered.kernel.shared_bytes + kernel.dynamic_shared,
            local_bytes=stack_start + stack if stack else lowered.kernel.local_bytes,
            flags=flags | (abi.Flag.SIZES if self.sized else 0),
            seed=seed, cores=cores, resident=resident_blocks(self.binary),
            granule_shift=lowered.granule_shift, finding_limit=FINDING_LIMIT,
            registers=self.binary.resources.registers if asked.counts_registers else abi.NONE,
        )  # fmt: skip
        count = library.core.launch(ctypes.byref(arguments)) & abi.NONE
        interrupts.check()
        if count == abi.NO_MEMORY:
            raise MemoryError(f"blocks of {kernel.label} need more")
        if count == AGAIN:
            return False
        self.records = self.records[:count]
        return True

    def execution(self, seconds: float, count: bool, watched: Watched | None) -> Execution:
        """What is known after the launch."""
        lowered, sources = self.lowered, self.sources
        counters = counters_of(lowered, sources, self.counters, self.block_counts) if count else None
        assertion = self.message.tobytes().partition(b"\0")[0].decode("utf-8", "replace")
        told = (self.binary.kernel, sources, self.names, lowered.extents, assertion)
        found = findings(self.records, *told)
        faults = tuple(finding for finding in found if finding.kind not in NOTES)
        notes = tuple(finding for finding in found if finding.kind in NOTES)
        requests = watched.requests(lowered.counted, sources) if watched else ()
        met = watched.met if watched else 0
        records = watched.records(lowered.counted, sources) if watched and watched.every else None
        events = watched.events(self.names, sources) if watched and watched.units else None
        touches = watched.touches(sources) if watched and watched.array else None
        steps = watched.steps(lowered) if watched and watched.follows else None
        return Execution(
            faults, seconds, counters, self.writer, self.writers, requests, met, self.all_printed(), notes,
            records, self.stored, events, touches, steps, watched.ends if watched else None,
        )  # fmt: skip

    def all_printed(self) -> str:
        """What the kernel printed, which need not be text."""
        text = self.printed[: self.said.bytes].tobytes().decode("utf-8", "replace")
        return text + CUT.format(PRINTED_BYTES) if self.said.cut else text

    def writer(self, name: str, index: int) -> Location | None:
        """Where the element was last stored; None where nothing stored it, or the kernel does not take it."""
        if name not in self.cells:
            return None
        line = int(self.cells[name][index * self.cells_each[name]]["line"])
        return self.sources.inside(line) if line > 0 else None

    def stored(self, name: str) -> np.ndarray:
        """Which elements this launch or an earlier one has written: bool, as many as the array has."""
        lines = self.cells[name]["line"][:-1]
        return (lines != 0).reshape(-1, self.cells_each[name]).all(1)

    def writers(self, name: str) -> tuple[Location, ...]:
        """Every place that stored to the output."""
        lines = np.unique(self.cells[name]["line"]) if name in self.cells else ()
        return tuple(self.sources.inside(int(line)) for line in lines if line > 0)


POINTER = 8
"""Bytes of a pointer, which may be all that a struct has."""


def is_pointer(parameters: Sequence[Parameter], at: int) -> bool:
    return at < len(parameters) and parameters[at].size == 8


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
        elif parameter.size * 8 == BITS[parameter.type] or parameter.size == POINTER:
            data = (int(value) & ((1 << 8 * parameter.size) - 1)).to_bytes(parameter.size, "little")
        else:
            raise CheckFailed(
                f"{label}: parameter {parameter.name} is a struct of {parameter.size} bytes: give bytes, or a"
                " numpy scalar of a structured type"
            )
        content[parameter.offset : parameter.offset + parameter.size] = data
    return (ctypes.c_uint8 * len(content)).from_buffer(content)


def encoded(label: str, tensor: TensorMap, address: int) -> bytes:
    """The 128 bytes that the machine has a tensor map in: a TensorMap of abi.py. address: of the array.

    CheckFailed for what CUDA refuses, and UnsupportedInstruction for what is known of no GPU: how rows lie
    that are shorter than the swizzle.
    """
    check_tensor_map(label, tensor, address)
    element = ELEMENT_BYTES[tensor.element]
    row = tensor.box[-1] * element
    if tensor.swizzle and row != tensor.swizzle:
        raise UnsupportedInstruction(
            f"{label}: tensor map {tensor.name}: the CPU machine does not know rows of {row} bytes in a"
            f" swizzle of {tensor.swizzle}: take boxes of {tensor.swizzle // element} elements"
        )
    rank = len(tensor.shape)
    content = np.zeros(1, abi.TENSOR_MAP)
    content["mark"], content["address"], content["rank"] = abi.MAP_MARK, address, rank
    content["element"], content["swizzle"] = element, tensor.swizzle
    content["shape"][0, :rank] = tensor.shape[::-1]
    content["box"][0, :rank] = tensor.box[::-1]
    content["pitches"][0, : rank - 1] = tensor.pitches[::-1]
    return content.tobytes()
