"""How one warp of a kernel asks for its buffers in shared memory: the distinct patterns of its requests, as
the CPU machine executes it.

Which argument a request's data come from is told by value: every input is filled with a number of its own,
which its copies in shared memory keep, whatever array they lie in and however it is laid out.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Sequence

import numpy as np

from tir_schedules.errors import BadInput, nearest
from tir_schedules.insight.banks import banks
from tir_schedules.machines.cpu import CpuMachine
from tir_schedules.machines.cpu.extents import source_name
from tir_schedules.machines.cpu.library import the_library
from tir_schedules.machines.cpu.machine import lowered
from tir_schedules.model.execution import Execution, Request, Watch
from tir_schedules.model.findings import Location
from tir_schedules.model.kernel import Binary
from tir_schedules.model.launch import Dim3

MARKS = (3, 5)
"""What the inputs are filled with: no sum of products, 15 K, is one of them."""
ZEROS = "zeros"
"""The buffer of requests for nothing but the padding of ragged tiles: whose it is the values do not tell."""
WORDS = {
    "shared_load": "load",
    "shared_store": "store",
    "ldmatrix": "ldmatrix",
    "shared_cp_async": "cp.async",
    "shared_atomic": "atomic",
}
"""Class of access -> how pictures call it."""


@dataclass(frozen=True)
class Pattern:
    """Requests of a warp that touch banks alike: of one kind and buffer, their addresses equal but for a
    common shift by words.

    buffer: the argument whose data they are, such as "A"; variable: the shared array, such as "tile_a", ""
    for the dynamic one.
    locations: of the instructions, in order of first use; one for each CUDA line. width: bytes per lane.
    lanes: those that take part.
    addresses: of the first such request, of 32 lanes, bytes from the start of the block's shared memory.
    requests: how many.
    starts: the banks that the lowest address of one of them is in. wavefronts: that one request takes, as the
    CPU machine counts;
    ideal: without bank conflicts.
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
        """The buffer, and the array where that has another name."""
        return f"{self.buffer} in {self.variable}" if self.variable else self.buffer

    @property
    def action(self) -> str:
        """Such as "load"."""
        return WORDS[self.kind]

    @cached_property
    def phases(self) -> tuple[banks.Phase, ...]:
        """Which lanes are served together, and in which wavefront the banks give each word."""
        return banks.split(self.addresses, self.width, self.lanes, self.kind in banks.PAIRING)

    @property
    def stride(self) -> int | None:
        """Bytes from lane to lane of the first phase, where that is always the same."""
        lanes = self.phases[0].lanes
        steps = {(self.addresses[b] - self.addresses[a]) for a, b in zip(lanes, lanes[1:])}
        return steps.pop() if len(steps) == 1 else None

    @property
    def by_banks(self) -> bool:
        """Whether banks explain what is counted: always, but for cp.async, which has rules of its own."""
        return banks.cost(self.phases) == self.wavefronts

    def as_json(self) -> dict[str, Any]:
        return {
            "buffer": self.buffer,
            "variable": self.variable,
            "kind": self.kind,
            "locations": [
                {"ptx_line": at.ptx_line, "file": at.file, "line": at.line, "text": at.text}
                for at in self.locations
            ],
            "bytes_per_lane": self.width,
            "lanes": self.lanes,
            "addresses": [self.addresses[lane] for lane in self.lanes],
            "requests": self.requests,
            "start_banks": self.starts,
            "wavefronts": self.wavefronts,
            "ideal": self.ideal,
            "phases": [phase_json(phase) for phase in self.phases],
        }


def phase_json(phase: banks.Phase) -> dict[str, Any]:
    """wavefronts: for each, the banks it uses with the word each gives and the lanes that get it."""
    served = [
        [{"bank": bank, "word": one.word, "lanes": one.lanes} for bank, one in wavefront.items()]
        for wavefront in phase.wavefronts
    ]
    return {"lanes": phase.lanes, "wavefronts": served}


def layouts(
    binaries: Sequence[Binary],
    workload: Any,
    buffer: str | None = None,
    block: Dim3 = (0, 0, 0),
    warp: int = 0,
) -> list[Pattern]:
    """The patterns of a warp's requests to a buffer, or to all, in the order in which they first occur.

    binaries: of the launches the workload takes; the first is looked at, and of it one block executed.
    buffer: an argument's name or that of a static array. BadInput for a buffer the warp does not touch, and
    for a block or warp that the launch does not have.
    """
    execution, inputs = watched(binaries[0], workload, block, warp)
    return patterns_of(binaries[0], execution, inputs, workload.outputs, buffer)


def watched(binary: Binary, workload: Any, block: Dim3, warp: int) -> tuple[Execution, dict[str, np.dtype]]:
    """One block executed, with inputs that tell where data come from; and the types of the inputs."""
    arguments = workload.prepared(workload.arguments(), binary.kernel.grid)
    for name, mark in zip(workload.inputs, MARKS):
        arguments[name].fill(mark)
    execution = CpuMachine().run(binary, arguments, workload.outputs, watch=Watch(block, warp))
    return execution, {name: arguments[name].dtype for name in workload.inputs}


def patterns_of(
    binary: Binary,
    execution: Execution,
    inputs: dict[str, np.dtype],
    outputs: Sequence[str],
    buffer: str | None,
) -> list[Pattern]:
    """See `layouts`. execution, inputs: what `watched` gives."""
    arrays = arrays_of(binary)
    found: dict[tuple, Pattern] = {}
    for request, origin in zip(execution.requests, origins_of(execution.requests, inputs, outputs)):
        array = next(
            (name for name, extent in arrays.items() if request.addresses[request.lanes[0]] in extent), ""
        )
        pattern = pattern_of(request, origin, array)
        key = (origin, array, request.kind, request.width, request.mask, shape_of(request))
        found[key] = merged(found[key], pattern) if key in found else pattern
    patterns = list(found.values())
    return patterns if buffer is None else chosen(patterns, buffer)


def chosen(patterns: Sequence[Pattern], buffer: str) -> list[Pattern]:
    """Those of a buffer. BadInput when there are none."""
    found = [pattern for pattern in patterns if buffer in (pattern.buffer, pattern.variable)]
    if patterns and not found:
        names = list(
            dict.fromkeys(name for pattern in patterns for name in (pattern.buffer, pattern.variable) if name)
        )
        raise BadInput(
            f"this warp touches no buffer {buffer!r} in shared memory{nearest(buffer, names)}; it touches"
            f" {', '.join(names)}"
        )
    return found


def pattern_of(request: Request, origin: str, array: str) -> Pattern:
    start = banks.bank_of(lowest(request) // banks.WORD)
    return Pattern(
        origin, array, (request.location,), request.kind, request.width, request.lanes, request.addresses, 1,
        (start,),
        request.wavefronts, request.ideal,
    )  # fmt: skip


def merged(pattern: Pattern, another: Pattern) -> Pattern:
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
    """Addresses without the shift by words that patterns may differ in."""
    start = lowest(request) // banks.WORD * banks.WORD
    return tuple(request.addresses[lane] - start for lane in request.lanes)


def arrays_of(binary: Binary) -> dict[str, range]:
    """The static arrays in shared memory by their names in the CUDA source -> the bytes they take."""
    variables = lowered(the_library(), binary.ptx, binary.kernel.entry).kernel.variables.values()
    shared = [variable for variable in variables if variable.space == "shared" and variable.size]
    return {
        array_name(variable.name): range(variable.offset, variable.offset + variable.size)
        for variable in shared
    }


def array_name(symbol: str) -> str:
    """ "_ZZ16sgemm_vectorizedE12A_shared_ptr" -> "A_shared": without the function, and without what TVM adds
    to a name."""
    return source_name(symbol).removesuffix("_ptr")


# ---- where data come from
# ----------------------------------------------------------------------------------------------
def origins_of(requests: Sequence[Request], inputs: dict[str, np.dtype], outputs: Sequence[str]) -> list[str]:
    """The argument that each request's data belong to.

    By the numbers that inputs are filled with; zeros, which pad ragged tiles, are of the argument that the
    same instruction otherwise reads or writes, and everything else is what is computed, the output's. All
    belongs to an input that is the only one.
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
    """None when there are zeros alone."""
    size = min(request.width, 4)
    names = {mark[:size]: name for name, mark in marks.items()}
    seen = Counter(
        names.get(value[:size], output)
        for value in map(request.values.__getitem__, request.lanes)
        if any(value[:size])
    )
    return seen.most_common(1)[0][0] if seen else None
