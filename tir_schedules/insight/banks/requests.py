"""How one warp asks for its buffers in shared memory: the patterns of its requests on the CPU machine.

Values tell which argument the data of a request come from: every input is filled with a different number,
which its copies in shared memory keep, in any array and layout.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Iterable, Mapping, Sequence

import numpy as np

from tir_schedules.errors import BadInput, nearest, shown
from tir_schedules.files import Json, to_json
from tir_schedules.insight.banks.wavefronts import PAIRING, WORD, Phase, bank_of, cost, split
from tir_schedules.insight.metrics.counting import ACTIONS
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.machines.cpu.extents import source_name
from tir_schedules.machines.cpu.library import the_library
from tir_schedules.machines.cpu.machine import linked
from tir_schedules.machines.cpu.ptx import Variable
from tir_schedules.model.findings import Location
from tir_schedules.model.kernel import Binary
from tir_schedules.model.launch import Dim3
from tir_schedules.model.machine import Execution, Request, Watch
from tir_schedules.model.workload import Workload

MARKS = (3, 5)
"""What the inputs are filled with. An element of A B is 15 K, and differs from both."""
ZEROS = "zeros"
"""The buffer of requests that touch only the zeros of ragged tiles: values do not tell whose they are."""
DYNAMIC = "dynamic shared memory"
"""What a pattern is of where neither a buffer nor an array is known."""


@dataclass(frozen=True)
class Pattern:
    """Requests of a warp that touch banks alike: of one kind and buffer, with addresses that differ by a
    common shift of words.

    buffer: the argument whose data they are, such as "A". variable: the shared array, such as "tile_a", ""
    for the dynamic one. locations: of the instructions, in order of first use; one for each CUDA line.
    width: bytes per lane. lanes: the active ones. addresses: of the first such request, of 32 lanes, bytes
    from the start of the block's shared memory. requests: how many. starts: the banks of their lowest
    addresses. wavefronts: of one request, as the CPU machine counts; ideal: without bank conflicts.
    """

    buffer: str
    variable: str
    locations: tuple[Location, ...]
    kind: str
    width: int
    lanes: tuple[int, ...]
    addresses: tuple[int, ...]
    requests: int
    starts: tuple[int, ...]
    wavefronts: int
    ideal: int

    @property
    def name(self) -> str:
        """The buffer, and the shared array if that is static; where no buffer is known, the array."""
        if not self.buffer:
            return self.variable or DYNAMIC
        return f"{self.buffer} in {self.variable}" if self.variable else self.buffer

    @property
    def action(self) -> str:
        """Such as "load"."""
        return ACTIONS[self.kind]

    @cached_property
    def phases(self) -> tuple[Phase, ...]:
        """Which lanes are served together, and in which wavefront the banks serve each word."""
        return split(self.addresses, self.width, self.lanes, self.kind in PAIRING)

    @property
    def stride(self) -> int | None:
        """Bytes from lane to lane in the first phase; None where that varies."""
        lanes = self.phases[0].lanes
        strides = {(self.addresses[b] - self.addresses[a]) for a, b in zip(lanes, lanes[1:])}
        return strides.pop() if len(strides) == 1 else None

    @property
    def by_banks(self) -> int:
        """Wavefronts that follow from the banks only. They are the counted ones, except for cp.async, which
        has other rules."""
        return cost(self.phases)

    def as_json(self) -> Json:
        alike = "buffer variable kind locations lanes requests wavefronts ideal phases".split()
        told = {name: getattr(self, name) for name in alike}
        told |= {"bytes_per_lane": self.width, "start_banks": self.starts}
        return to_json(told | {"addresses": [self.addresses[lane] for lane in self.lanes]})


def request_patterns(
    binaries: Sequence[Binary],
    workload: Workload,
    buffer: str | None = None,
    block: Dim3 = (0, 0, 0),
    warp: int = 0,
) -> list[Pattern]:
    """The patterns of a warp's requests to a buffer, or to all, in the order in which they first occur.

    binaries: of the launches the workload takes; of the first, one block is executed. buffer: the name of an
    argument or of a static array. BadInput for a buffer that the warp does not touch, and for a block or warp
    that the launch does not have.
    """
    execution, inputs = watch_block(binaries[0], workload, block, warp)
    return patterns_of(binaries[0], execution, inputs, workload.outputs, buffer)


def watch_block(
    binary: Binary, workload: Workload, block: Dim3, warp: int
) -> tuple[Execution, dict[str, np.dtype]]:
    """One block executed, with inputs that tell where data come from, or their parts; and the types."""
    arguments = binary.kernel.prepared(workload, workload.arguments())
    types: dict[str, np.dtype] = {}
    for name, mark in zip(workload.inputs, MARKS):
        parts = f"{name}_parts"  # what a launch before makes of it
        array = arguments[parts if parts in binary.kernel.params else name]
        assert isinstance(array, np.ndarray), "inputs are arrays"
        array.fill(mark)
        types[name] = array.dtype
    return CpuMachine().run(binary, arguments, workload.outputs, watch=Watch(block, warp, units=True)), types


def patterns_of(
    binary: Binary,
    execution: Execution,
    inputs: dict[str, np.dtype],
    outputs: Sequence[str],
    buffer: str | None,
) -> list[Pattern]:
    """See `request_patterns`. execution, inputs: what `watch_block` gives."""
    arrays = arrays_of(binary)
    origins = origins_of(execution.requests, inputs, outputs)
    named = [
        (request, origin, array_at(arrays, request)) for request, origin in zip(execution.requests, origins)
    ]
    patterns = group_requests(named)
    return patterns if buffer is None else chosen(patterns, buffer)


def array_at(arrays: Mapping[str, range], request: Request) -> str:
    """The static array that a request touches; empty for the dynamic one."""
    first = request.addresses[request.lanes[0]]
    return next((name for name, extent in arrays.items() if first in extent), "")


def group_requests(requests: Iterable[tuple[Request, str, str]], by_line: bool = False) -> list[Pattern]:
    """Requests with their origins and arrays, as patterns. by_line: those of different lines are not one."""
    found: dict[tuple, Pattern] = {}
    for request, origin, array in requests:
        pattern = pattern_of(request, origin, array)
        line = (request.location.file, request.location.line) if by_line else None
        key = (line, origin, array, request.kind, request.width, request.mask, shape_of(request))
        found[key] = merge_patterns(found[key], pattern) if key in found else pattern
    return list(found.values())


def chosen(patterns: Sequence[Pattern], buffer: str, arrays: Sequence[str] = ()) -> list[Pattern]:
    """The patterns of a buffer. BadInput when there are none. arrays: those in global memory."""
    found = [pattern for pattern in patterns if buffer in (pattern.buffer, pattern.variable)]
    if patterns and not found:
        names = list(
            dict.fromkeys(name for pattern in patterns for name in (pattern.buffer, pattern.variable) if name)
        )
        raise BadInput(
            f"this warp touches no buffer {shown(buffer)} in shared memory"
            f"{nearest(buffer, [*names, *arrays])}; it touches {', '.join(names)}{in_global(arrays)}"
        )
    return found


def in_global(arrays: Sequence[str]) -> str:
    """What a message says of the arrays that are not in shared memory."""
    return f"; arrays in global memory are {', '.join(dict.fromkeys(arrays))}" if arrays else ""


def pattern_of(request: Request, origin: str, array: str) -> Pattern:
    start = bank_of(lowest(request) // WORD)
    return Pattern(
        buffer=origin,
        variable=array,
        locations=(request.location,),
        kind=request.kind,
        width=request.width,
        lanes=request.lanes,
        addresses=request.addresses,
        requests=1,
        starts=(start,),
        wavefronts=request.wavefronts,
        ideal=request.ideal,
    )


def merge_patterns(pattern: Pattern, another: Pattern) -> Pattern:
    lines = {location.line for location in pattern.locations}
    new = tuple(location for location in another.locations if location.line not in lines)
    starts = tuple(sorted({*pattern.starts, *another.starts}))
    return replace(
        pattern,
        locations=pattern.locations + new,
        requests=pattern.requests + another.requests,
        starts=starts,
    )


def lowest(request: Request) -> int:
    return min(request.addresses[lane] for lane in request.lanes)


def shape_of(request: Request) -> tuple[int, ...]:
    """Addresses without the shift of words by which requests of a pattern differ."""
    start = lowest(request) // WORD * WORD
    return tuple(request.addresses[lane] - start for lane in request.lanes)


def arrays_of(binary: Binary) -> dict[str, range]:
    """Static arrays in shared memory, named as in the CUDA source -> the bytes they take."""
    return {
        array_name(variable.name): range(variable.offset, variable.offset + variable.size)
        for variable in shared_variables(binary)
        if variable.size
    }


def shared_variables(binary: Binary) -> list[Variable]:
    """Variables in shared memory that the kernel's PTX declares; those of dynamic memory have no size."""
    kernel = linked(the_library(), binary.ptx, binary.kernel.entry).lowered.kernel
    return [variable for variable in kernel.variables.values() if variable.space == "shared"]


def array_name(symbol: str) -> str:
    """ "_ZZ16sgemm_vectorizedE12A_shared_ptr" -> "A_shared": without the function and what TVM adds."""
    return source_name(symbol).removesuffix("_ptr")


def origins_of(requests: Sequence[Request], inputs: dict[str, np.dtype], outputs: Sequence[str]) -> list[str]:
    """The argument that each request's data belong to.

    The numbers that inputs are filled with tell. Zeros, which fill ragged tiles, belong to the argument that
    the same instruction reads or writes otherwise. Everything else is computed and belongs to the output. Of
    a single input, all belongs to it.
    """
    if len(inputs) == 1:
        return list(inputs) * len(requests)
    marks = {
        name: np.full(4 // dtype.itemsize, mark, dtype).tobytes()
        for (name, dtype), mark in zip(inputs.items(), MARKS)
    }
    found = [origin_of(request, marks, outputs[0]) for request in requests]
    at = {request.location.ptx_line: origin for request, origin in zip(requests, found) if origin}
    return [origin or at.get(request.location.ptx_line, ZEROS) for request, origin in zip(requests, found)]


def origin_of(request: Request, marks: dict[str, bytes], output: str) -> str | None:
    """The same of one request; None when there are only zeros."""
    size = min(request.width, 4)
    names = {mark[:size]: name for name, mark in marks.items()}
    seen = Counter(
        names.get(value[:size], output)
        for value in map(request.values.__getitem__, request.lanes)
        if any(value[:size])
    )
    return seen.most_common(1)[0][0] if seen else None
