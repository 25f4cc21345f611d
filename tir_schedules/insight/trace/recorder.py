"""A rung's schedule as the list of its primitives, recorded while it runs; rungs need no code for it."""

from __future__ import annotations

import inspect
import json
import linecache
import re
import sys
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Callable, Sequence, TypeGuard

import tir_schedules
from tir_schedules.compiler import lower
from tir_schedules.errors import CheckFailed
from tir_schedules.model.rung import Rung
from tir_schedules.model.workload import Workload

if TYPE_CHECKING:
    from tvm import IRModule
    from tvm.s_tir import Schedule

PACKAGE = Path(tir_schedules.__file__).parent
QUERIES = re.compile(r"get|can_|copy|fork_seed|seed|show|work_on|remove_rv")
"""Beginnings of the names of methods that leave the function as it is."""


@dataclass(frozen=True)
class Place:
    """A line of Python that calls.

    file: below the folder of the ladders, where it is in there. line: from 1, or 0 for a whole function.
    """

    file: str
    line: int
    function: str
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(frozen=True)
class Step:
    """One primitive.

    number: from 1. call: with names of blocks and loops in place of Python's variables, such as
    `i_0, i_1 = sch.split(i, [None, 32])`. places: the line of the rung's own schedule, that of the helper it
    calls, and so on to the primitive. module: the function after it. annotation: the key of `annotate`.
    """

    number: int
    primitive: str
    call: str
    places: tuple[Place, ...]
    module: "IRModule" = field(repr=False)
    annotation: str = ""

    @property
    def what(self) -> str:
        """What the primitive does, in a sentence."""
        return sentence(self.primitive, self.annotation)


@dataclass(frozen=True)
class Recording:
    """start: the function of the workload. refusal: why TVM or a check refuses the schedule, or empty."""

    start: "IRModule" = field(repr=False)
    steps: tuple[Step, ...]
    refusal: str = ""


def record(rung: Rung, workload: Workload) -> Recording:
    """The steps of the rung's schedule for a workload."""
    recorders: list[Recorder] = []

    def around(schedule: "Schedule") -> Recorder:
        recorders.append(Recorder(schedule))
        return recorders[0]

    refusal = ""
    try:
        lower.scheduled(rung, workload, around)
    except CheckFailed as error:
        refusal = str(error)
    return Recording(recorders[0].start, tuple(recorders[0].steps), refusal)


class Recorder:
    """Stands in for a Schedule: passes every call on and records the primitives."""

    def __init__(self, schedule: "Schedule"):
        self.schedule, self.start = schedule, schedule.mod
        self.steps: list[Step] = []

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.schedule, name)
        if inspect.isroutine(found) and not QUERIES.match(name):
            return partial(self.step, name, found)
        return found

    def step(self, name: str, primitive: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
        """Call a primitive and record it."""
        given = list(map(self.written, arguments))
        given += [f"{key}={self.written(value)}" for key, value in keywords.items()]
        places = places_of(sys._getframe(1))
        result = primitive(*arguments, **keywords)
        results = [] if result is None else list(result) if is_sequence(result) else [result]
        made = f"{', '.join(map(self.written, results))} = " if result is not None else ""
        annotation = arguments[1] if name == "annotate" else ""
        call = f"{made}sch.{name}({', '.join(given)})"
        self.steps.append(Step(len(self.steps) + 1, name, call, places, self.schedule.mod, annotation))
        return result

    def written(self, value: object) -> str:
        """An argument or result as a reader would write it: a block or loop by its name."""
        from tvm.s_tir import SBlock
        from tvm.s_tir.schedule import LoopRV, SBlockRV
        from tvm.tirx import For

        if isinstance(value, (SBlockRV, LoopRV)):
            found = self.schedule.get(value)
            if isinstance(found, SBlock):
                return found.name_hint
            assert isinstance(found, For), "a loop or a block has one of the two"
            return found.loop_var.name
        if is_sequence(value):
            inside = ", ".join(map(self.written, value))
            return f"({inside})" if isinstance(value, tuple) else f"[{inside}]"
        if isinstance(value, str):
            return json.dumps(value)
        return written_map(value) if inspect.isroutine(value) else str(value)


def written_map(function: Callable[..., Any]) -> str:
    """A map of indices as a lambda: `lambda i, k: (k, i)`, whatever functions it calls."""
    from tvm.tirx import IndexMap

    text = re.sub(r"T\.int\d+\((-?\d+)\)", r"\1", str(IndexMap.from_func(function)))
    return text.removeprefix("T.index_map(").removesuffix(")")


def is_sequence(value: object) -> TypeGuard[Sequence[object]]:
    """Whether it is a list, a tuple or TVM's own array."""
    from tvm_ffi import Array

    return isinstance(value, (list, tuple, Array))


def places_of(frame: FrameType | None) -> tuple[Place, ...]:
    """The calls that led to a frame, from the rung's schedule on. A comprehension counts as its function."""
    places = []
    while frame and frame.f_code is not lower.scheduled.__code__:
        code, line = frame.f_code, frame.f_lineno
        if not code.co_name.startswith("<"):
            path = Path(code.co_filename)
            inside = path.is_relative_to(PACKAGE)
            file = path.relative_to(PACKAGE).as_posix() if inside else path.name
            places.append(
                Place(
                    file.removeprefix("ladders/"),
                    line,
                    code.co_name,
                    linecache.getline(code.co_filename, line).strip(),
                )
            )
        frame = frame.f_back
    return tuple(reversed(places))


def script(module: "IRModule") -> str:
    """The one function of a module as TVMScript, without the imports before it."""
    return re.sub(r"\A(#.*\n|\n)*", "", only_function(module).script()).strip("\n")


def only_function(module: "IRModule") -> Any:
    """The one PrimFunc of a module."""
    ((_, function),) = module.functions_items()
    return function


PRIMITIVES = {
    "add_unit_loop": "Puts a loop of one iteration around a loop or block; later steps use it.",
    "annotate": "Leaves a note on a loop or block for a later pass of the lowering.",
    "bind": "Spreads a loop over the blocks of the grid or the threads of a block, one iteration each.",
    "blockize": "Makes one block of a loop nest, which can then be moved or replaced as a whole.",
    "cache_read": "Copies what a block reads into a nearer buffer; the block reads from there.",
    "cache_write": "Lets a block write to a nearer buffer, and copies it from there to where it belongs.",
    "compute_at": "Moves a producer under a loop of its consumer: it makes what one iteration needs.",
    "decompose_reduction": "Moves the zeroing of the accumulator into a block of its own, before the loop.",
    "fuse": "Makes one loop of nested ones, with the iterations in the same order.",
    "merge": "Makes one loop nest of several that stand side by side under a common loop.",
    "pad_einsum": (
        "Pads the problem to whole tiles: copies of inputs add zeros, that of the output drops the rest."
    ),
    "reindex": "Copies what a block reads or writes, laid out by the block's loops.",
    "reorder": "Changes the nesting of loops; what is computed stays the same.",
    "reverse_compute_at": "Moves a consumer under a loop of its producer: it takes what one iteration made.",
    "reverse_compute_inline": "Removes a block that only passes values on; its producer writes them itself.",
    "rfactor": "Splits a sum into partial sums, one for each iteration of a loop, and a sum of these.",
    "set_scope": "Places a buffer in a memory: global, shared, or local to a thread (registers).",
    "split": "Makes nested loops of one. Where the extent is no multiple of theirs, a guard is added.",
    "storage_align": "Pads a dimension of a buffer, so that rows begin in different banks of shared memory.",
    "tensorize": "Replaces a loop nest by an intrinsic that computes the same, such as one of tensor cores.",
    "transform_block_layout": "Replaces a block's loops by those of the given map.",
    "transform_layout": "Changes the layout of a buffer: each element moves to where the given map says.",
    "unroll": "Unrolls a loop: indices become constants, and array elements can be registers.",
    "vectorize": "Makes one access of neighbouring elements, one for each iteration, 16 bytes at most.",
}

ANNOTATIONS = {
    "disable_unroll": "Keeps a loop a loop: `#pragma unroll 1` in the CUDA.",
    "double_buffer_scope": "Doubles a buffer: one half is filled while the other is read.",
    "permuted_layout": (
        "Lets the lowering apply an XOR swizzle to the 16-byte pieces of rows in shared memory, against bank"
        " conflicts."
    ),
    "pragma_unroll": "Asks the compiler to unroll the loop so many times: `#pragma unroll` in the CUDA.",
    "software_pipeline_async_stages": "Names the pipeline stages whose copies are asynchronous: cp.async.",
    "software_pipeline_order": (
        "Orders the statements in an iteration of the loop. From here on the loop is a pipeline."
    ),
    "software_pipeline_stage": (
        "Assigns each statement of a loop to a pipeline stage; takes effect with the order."
    ),
    "tir_schedules.copies_first": "Leaves the copies of a later tile in front of the compute.",
    "tir_schedules.last_block": "Fuses two kernels: the last block to finish executes the next loop nest.",
    "tir_schedules.loop_peeling": (
        "Peels the last iteration off a loop, with the guard at the edge of K that only it needs."
    ),
    "tir_schedules.loop_unswitching": (
        "Unswitches a loop: guards that do not depend on its variable move in front of it."
    ),
    "tir_schedules.mbarrier_pipeline": (
        "Gives each stage of a pipeline an mbarrier, which tells when the stage is full."
    ),
    "tir_schedules.persistent_kernel": (
        "Makes the kernel persistent: about as many blocks as SMs, each of which computes tile after tile."
    ),
    "tir_schedules.serpentine_loops": (
        "Runs a loop backwards in every odd iteration of a loop around it: 1 is the next, 2 the one around"
        " that."
    ),
    "tir_schedules.shift_edge_tiles": (
        "Shifts the last tile inwards, so that it ends with the matrix: no guard is needed per row."
    ),
    "tir_schedules.threadblock_swizzle": (
        "Threadblock swizzle: groups so many columns of blocks; excess blocks of the last group exit at once."
    ),
    "tir_schedules.tma_prefetch": (
        "TMA prefetch: one thread issues the copies of later K tiles into stages, and all threads multiply."
    ),
    "tir_schedules.unroll_stages": (
        "Unrolls the loop by the stages of its multistage buffer, so that the index of each stage is a"
        " constant."
    ),
    "tir_schedules.warp_specialization": (
        "Specializes warpgroups: a producer copies K tiles into stages, consumers multiply them."
    ),
    "tir_schedules.wrap_edge_tiles": (
        "Wraps rows beyond the last around to the first: the copy of an edge tile needs no guard per row."
    ),
    "tirx.manifest_shared_memory_local_stage": (
        "Splits a copy in two: from global memory to registers, from there to shared memory."
    ),
}


def sentence(primitive: str, annotation: str = "") -> str:
    """What a primitive does; of `annotate`, what the annotation asks for. Empty for unknown primitives."""
    return ANNOTATIONS.get(annotation) or PRIMITIVES.get(primitive, "")
