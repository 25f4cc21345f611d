"""A rung's schedule as the list of its primitives, recorded while it runs; rungs need no code for it."""

from __future__ import annotations

import inspect
import json
import linecache
import re
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Callable, Sequence, TypeGuard

from tir_schedules.compiler import lower
from tir_schedules.errors import CheckFailed
from tir_schedules.model.rung import Rung
from tir_schedules.model.workload import Workload
from tir_schedules.tir.schedule import Listener, Schedule

if TYPE_CHECKING:
    from tvm import IRModule

PACKAGE = Path(__file__).parents[2]
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

    def around(schedule: Schedule) -> Recorder:
        recorders.append(Recorder(schedule))
        return recorders[0]

    refusal = ""
    try:
        lower.scheduled(rung, workload, around)
    except CheckFailed as error:
        if not recorders:
            raise
        refusal = str(error)
    return Recording(recorders[0].start, tuple(recorders[0].steps), refusal)


class Recorder(Listener):
    """Records the primitives that are called."""

    def __init__(self, schedule: Schedule):
        super().__init__(schedule)
        self.start = schedule.mod
        self.steps: list[Step] = []

    def called(self, name: str, given: list[str], result: Any, frame: FrameType) -> None:
        if QUERIES.match(name):
            return
        results = [] if result is None else list(result) if is_sequence(result) else [result]
        made = f"{', '.join(map(self.written, results))} = " if result is not None else ""
        annotation = json.loads(re.sub(r"^ann_key=", "", given[1])) if name == "annotate" else ""
        call = f"{made}sch.{name}({', '.join(given)})"
        number, module = len(self.steps) + 1, self.schedule.mod
        self.steps.append(Step(number, name, call, places_of(frame), module, annotation))

    def written(self, value: object) -> str:
        if is_sequence(value):
            inside = ", ".join(map(self.written, value))
            return f"({inside})" if isinstance(value, tuple) else f"[{inside}]"
        if isinstance(value, str):
            return json.dumps(value)
        return written_map(value) if inspect.isroutine(value) else super().written(value)


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
    "accumulate_shares": "Stream-K: a loop over K tiles runs over a program's share of a tile.",
    "add_unit_loop": "Puts a loop of one iteration around a loop or block; later steps use it.",
    "annotate": "Leaves a note on a loop or block for a later pass of the lowering.",
    "async_copies": "Makes cp.async of the copies of asynchronous stages.",
    "async_copies_before_barriers": "Leaves one barrier after each wait for cp.async.",
    "bind": "Spreads a loop over the blocks of the grid or the threads of a block, one iteration each.",
    "blockize": "Makes one block of a loop nest, which can then be moved or replaced as a whole.",
    "cache_read": "Copies what a block reads into a nearer buffer; the block reads from there.",
    "cache_write": "Lets a block write to a nearer buffer, and copies it from there to where it belongs.",
    "compute_at": "Moves a producer under a loop of its consumer: it makes what one iteration needs.",
    "continue_in_last_block": "Fuses two kernels: the last block to finish executes the next loop nest.",
    "decompose_reduction": "Moves the zeroing of the accumulator into a block of its own, before the loop.",
    "eliminate_barriers": "Drops the barrier in front of stores to the other stage: one per tile is left.",
    "encode_tensor_maps": "Turns arrays that boxes are copied of into tensor maps, parameters of the kernel.",
    "fuse": "Makes one loop of nested ones, with the iterations in the same order.",
    "hoist_guards": "Hoists guards in blocks out of loops.",
    "keep_buffers_apart": "Leaves out StorageRewrite: buffers do not take each other's place.",
    "keep_copies_first": "Leaves the copies of a later tile in front of the compute.",
    "make_persistent": (
        "Makes the kernel persistent: about as many blocks as SMs, each of which computes tile after tile."
    ),
    "merge": "Joins several loop nests under a common loop into one.",
    "move_copies_behind_compute": "Moves the copies of a later tile behind the compute.",
    "move_copies_behind_waits": "Moves the copies of a later tile behind the wait for the next one.",
    "overlap_launches": "Lets the kernel begin while the launch before still runs.",
    "pad_einsum": (
        "Pads the problem to whole tiles: copies of inputs add zeros, that of the output drops the rest."
    ),
    "peel_last": ("Peels the last iteration off a loop, with the guard at the edge of K that only it needs."),
    "pipeline_by_mbarriers": (
        "Gives each stage of a pipeline an mbarrier, which tells when the stage is full."
    ),
    "prefetch_boxes": (
        "TMA prefetch: one thread issues the copies of later K tiles into stages, and all threads compute."
    ),
    "prefetch_l2": "Lets a 16-byte cp.async fetch a whole line of 128 bytes into L2.",
    "reindex": "Copies what a block reads or writes, laid out by the block's loops.",
    "relax_prologue_wait": "Lets the prologue of a pipeline wait only for its first K tile.",
    "reorder": "Changes the nesting of loops; what is computed stays the same.",
    "reverse_compute_at": "Moves a consumer under a loop of its producer: it takes what one iteration made.",
    "reverse_compute_inline": "Removes a block that only passes values on; its producer writes them itself.",
    "reverse_in_odd": (
        "Runs a loop backwards in every odd iteration of a loop around it: 1 is the next, 2 the one around"
        " that."
    ),
    "rfactor": "Splits a sum into partial sums, one for each iteration of a loop, and a sum of these.",
    "rotate_rows": (
        "Rotates the columns of each row of a tile: a warp's stores begin with lines of memory, wherever rows"
        " begin."
    ),
    "serpentine_grid": "Reverses the rows of every second group of blocks.",
    "set_scope": "Places a buffer in a memory: global, shared, or local to a thread (registers).",
    "set_warp_size": 'Lets so many threads share buffers of the scope "warp".',
    "shift_edge_tiles": (
        "Shifts the last tile inwards, so that it ends with the matrix: no guard is needed per row."
    ),
    "sink_waits": "Moves a wait to the statement that needs what it waits for.",
    "specialize_warps": (
        "Specializes warpgroups: a producer copies K tiles into stages, consumers multiply them."
    ),
    "split": "Makes nested loops of one. Where the extent is not a multiple of theirs, a guard is added.",
    "storage_align": "Pads a dimension of a buffer, so that rows begin in different banks of shared memory.",
    "swizzle_threadblocks": (
        "Threadblock swizzle: groups so many columns of blocks; excess blocks of the last group exit at once."
    ),
    "synchronize_before": (
        "Puts a barrier of all threads before a loop: an intrinsic may still read what the loop overwrites."
    ),
    "tensorize": "Replaces a loop nest by an intrinsic that computes the same, such as one of tensor cores.",
    "transform_block_layout": "Replaces a block's loops by those of the given map.",
    "transform_layout": "Changes the layout of a buffer: each element moves to where the given map says.",
    "unroll": "Unrolls a loop: indices become constants, and array elements can be registers.",
    "unroll_drain": "Unrolls the epilogue that drains a pipeline: the depth of each wait is a constant.",
    "unroll_stages": (
        "Unrolls the loop by the stages of its multistage buffer, so that the index of each stage is a"
        " constant."
    ),
    "unswitch": ("Unswitches a loop: guards that do not depend on its variable move in front of it."),
    "vectorize": "Makes one access of neighbouring elements, one for each iteration, 16 bytes at most.",
    "store_diagonally": (
        "Shifts the rows of a tile in shared memory against each other: elements of a column lie in different"
        " banks, without padding."
    ),
    "wrap_edge_tiles": (
        "Wraps rows beyond the last around to the first: the copy of an edge tile needs no guard per row."
    ),
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
        "Orders the statements in an iteration of the loop. Makes the loop a pipeline."
    ),
    "software_pipeline_stage": (
        "Assigns each statement of a loop to a pipeline stage; takes effect with the order."
    ),
    "tirx.manifest_shared_memory_local_stage": (
        "Splits a copy in two: from global memory to registers, from there to shared memory."
    ),
}


def sentence(primitive: str, annotation: str = "") -> str:
    """What a primitive does; of `annotate`, what the annotation asks for. Empty for unknown primitives."""
    return ANNOTATIONS.get(annotation) or PRIMITIVES.get(primitive, "")
