"""Mistakes in a schedule that TVM compiles into something else than one kernel: what is wrong, the line of
the schedule that does it, and what to do."""

# TVM's nodes have their fields at run time alone.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Callable, Sequence

from tir_schedules.tir.schedule import Listener, Schedule
from tir_schedules.tir.tvm import import_tvm

if TYPE_CHECKING:
    from tvm import IRModule

RESULTS_OF_THREADS = ("red_result", "red_buf")
"""What TVM calls the places of a sum that threads add up together."""


class Lines(Listener):
    """Keeps the line of each call. calls: name, what it is given and returns, by the names of blocks and
    loops, and "file:line"."""

    def __init__(self, schedule: Schedule):
        super().__init__(schedule)
        self.calls: list[tuple[str, list[str], str]] = []

    def called(self, name: str, given: list[str], result: Any, frame: FrameType) -> None:
        place = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
        self.calls.append((name, [*given, self.written(result)], place))

    def place(self, names: Sequence[str], subject: str) -> str:
        """Where one of these primitives was last called for a block or loop; "" where that is not known."""
        places = [place for name, words, place in self.calls if name in names and subject in words]
        return f"{places[-1]}: " if places else ""


def explain_workspace(name: str, module: "IRModule", recorded: Callable[[], Lines]) -> str:
    """Why a kernel has a parameter that its function has not: a buffer that lies outside of the kernel.
    recorded: runs the schedule again, and keeps its lines."""
    if name.startswith(RESULTS_OF_THREADS):
        for block, loop, thread in bound_reductions(module):
            place = recorded().place(("bind",), loop)
            return (
                f"{place}loop {loop} is a reduction of block {block}, and is bound to {thread}: bind loops of"
                " the output to blockIdx and threadIdx, and leave the reduction to each thread"
            )
    place = recorded().place(("cache_read", "cache_write", "reindex", "rfactor"), name)
    return (
        f"{place}block {name} is outside of the loops that are bound to blockIdx, so that its buffer is in"
        f" global memory: move it under one of them, sch.compute_at({name}, loop)"
    )


def bound_reductions(module: "IRModule") -> list[tuple[str, str, str]]:
    """Blocks, their loops that are bound to threads though they are reductions, and the threads."""
    tvm = import_tvm()
    import tvm_ffi

    found: list[tuple[str, str, str]] = []
    for function in module.functions.values():
        loops: list[Any] = []
        blocks: list[Any] = []
        tvm_ffi.structural_walk(function.body, (tvm.tirx.For, lambda loop: loops.append(loop)))
        tvm_ffi.structural_walk(function.body, (tvm.s_tir.SBlockRealize, lambda block: blocks.append(block)))
        bound = [loop for loop in loops if loop.kind == tvm.tirx.ForKind.THREAD_BINDING]
        for realize in blocks:
            for variable, value in zip(realize.block.iter_vars, realize.iter_values):
                if variable.iter_type == tvm.tirx.IterVar.CommReduce:
                    found += [
                        (realize.block.name_hint, loop.loop_var.name, loop.thread_binding.thread_tag)
                        for loop in bound
                        if mentions(value, loop.loop_var)
                    ]
    return found


def mentions(value: Any, variable: Any) -> bool:
    """Whether an expression contains a variable."""
    tvm = import_tvm()
    import tvm_ffi

    seen: list[Any] = []
    tvm_ffi.structural_walk(value, (tvm.tirx.Var, lambda each: seen.append(each)))
    return any(each.same_as(variable) for each in seen)
