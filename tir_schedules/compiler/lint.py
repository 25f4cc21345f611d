"""Mistakes in a schedule that TVM compiles into something else than one right kernel: what is wrong, the line
of the schedule that does it, and what to do."""

# TVM's nodes have their fields at run time alone.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import re
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Sequence

from tir_schedules.errors import CheckFailed
from tir_schedules.model.annotations import LOOP_PEELING
from tir_schedules.tir.schedule import Listener, Schedule
from tir_schedules.tir.tvm import import_tvm, nodes_in

if TYPE_CHECKING:
    from tvm import IRModule

AXES = tuple(f"{of}.{axis}" for of in ("blockIdx", "threadIdx") for axis in "xyz")
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
        """Where one of these primitives was last called for a block or loop, or for any, and ": "; "" where
        that is not known."""
        about = re.compile(rf"\b{re.escape(subject)}\b")
        for called, words, place in reversed(self.calls):
            if called in names and (not subject or any(map(about.search, words))):
                return f"{place}: "
        return ""


class ScheduleMistake(CheckFailed):
    """What is wrong, and what to do. names, subject: the primitives that may have done it, and the loop or
    block that they did it to; "" where that is the whole function."""

    def __init__(self, text: str, names: tuple[str, ...], subject: str = ""):
        super().__init__(text)
        self.names, self.subject = names, subject


def check_threads(module: "IRModule") -> None:
    """ScheduleMistake for loops bound to threads that CUDA lacks, and for two loops of a block that are
    bound to the same."""
    for function in module.functions.values():
        bound = bound_loops(function)
        for loop in bound:
            name, thread = loop.loop_var.name, loop.thread_binding.thread_tag
            if thread not in AXES and not thread.startswith("vthread"):
                text = f"loop {name} is bound to {thread!r}, which CUDA lacks: it has {', '.join(AXES)}"
                raise ScheduleMistake(text, ("bind",), name)
        for block in blocks_in(function.body):
            first: dict[str, str] = {}
            for loop in mentioned(bound, block.iter_values):
                name, thread = loop.loop_var.name, loop.thread_binding.thread_tag
                if first.setdefault(thread, name) != name:
                    both = f"loops {first[thread]} and {name} are both bound to {thread}"
                    text = f"{both}: bind one of them to another axis"
                    raise ScheduleMistake(text, ("bind",), name)


def check_peeled(module: "IRModule") -> None:
    """ScheduleMistake for `peel_last` on a loop whose iterations are not one after another."""
    kinds = import_tvm().tirx.ForKind
    for function in module.functions.values():
        for loop in loops_in(function.body):
            if LOOP_PEELING in loop.annotations and loop.kind != kinds.SERIAL:
                name, thread = loop.loop_var.name, loop.thread_binding
                what = kinds(loop.kind).name.lower() if thread is None else f"bound to {thread.thread_tag}"
                text = f"loop {name} is {what}, and no iteration is the last: peel_last takes a serial loop"
                raise ScheduleMistake(text, ("peel_last",), name)


def bound_loops(function: Any) -> list[Any]:
    """The loops of a function that are bound to threads, outer ones first."""
    kind = import_tvm().tirx.ForKind.THREAD_BINDING
    return [loop for loop in reversed(loops_in(function.body)) if loop.kind == kind]


def blocks_in(statement: Any) -> list[Any]:
    """All blocks of a statement, with the values of their iterators."""
    return nodes_in(statement, import_tvm().s_tir.SBlockRealize)


def loops_in(statement: Any) -> list[Any]:
    """All loops of a statement, inner ones first."""
    return nodes_in(statement, import_tvm().tirx.For)


def explain_parameter(name: str, module: "IRModule") -> ScheduleMistake:
    """Why a kernel has a parameter that its function has not: a loop around the kernel, or a buffer that lies
    outside of it."""
    if name.startswith(RESULTS_OF_THREADS):
        for block, loop, thread in bound_reductions(module):
            return ScheduleMistake(
                f"loop {loop} is a reduction of block {block}, and is bound to {thread}: bind loops of the"
                " output to blockIdx and threadIdx, and leave the reduction to each thread; if threads add"
                " up one sum, bind a loop of the output, or sch.add_unit_loop(block), to blockIdx.x",
                ("bind",),
                loop,
            )
    loops = [loop for function in module.functions.values() for loop in loops_in(function.body)]
    if name in [loop.loop_var.name for loop in loops]:
        return ScheduleMistake(
            f"loop {name} is around the loops that are bound to blockIdx, so that each iteration would be a"
            f" launch: put it inside of them, sch.reorder(..., {name})",
            ("reorder", "split", "fuse"),
            name,
        )
    return ScheduleMistake(
        f"block {name} is outside of the loops that are bound to blockIdx, so that its buffer is in global"
        f" memory: move it under one of them, sch.compute_at({name}, loop)",
        ("cache_read", "cache_write", "reindex", "rfactor"),
        name,
    )


def bound_reductions(module: "IRModule") -> list[tuple[str, str, str]]:
    """Blocks, their loops that are bound to threads though they are reductions, and the threads."""
    reduction = import_tvm().tirx.IterVar.CommReduce
    found: list[tuple[str, str, str]] = []
    for function in module.functions.values():
        bound = bound_loops(function)
        for realize in blocks_in(function.body):
            for variable, value in zip(realize.block.iter_vars, realize.iter_values):
                if variable.iter_type == reduction:
                    found += [
                        (realize.block.name_hint, loop.loop_var.name, loop.thread_binding.thread_tag)
                        for loop in mentioned(bound, [value])
                    ]
    return found


def mentioned(loops: Sequence[Any], values: Sequence[Any]) -> list[Any]:
    """The loops whose variables are in some of the expressions."""
    kind = import_tvm().tirx.Var
    seen = [each for value in values for each in nodes_in(value, kind)]
    return [loop for loop in loops if any(each.same_as(loop.loop_var) for each in seen)]
