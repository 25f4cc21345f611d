"""Mistakes in a schedule that TVM compiles into something else than one kernel: what is wrong, the line of
the schedule that does it, and what to do."""

# TVM's nodes have their fields at run time alone.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Sequence

from tir_schedules.tir.tvm import import_tvm

if TYPE_CHECKING:
    from tvm import IRModule
    from tvm.s_tir import Schedule

RESULTS_OF_THREADS = ("red_result", "red_buf")
"""What TVM calls the places of a sum that threads add up together."""


class Lines:
    """Stands in for a Schedule, and keeps the line of each call. calls: name, what it is given and returns,
    by the names of blocks and loops, and "file:line"."""

    def __init__(self, schedule: "Schedule"):
        self.schedule = schedule
        self.calls: list[tuple[str, list[str], str]] = []

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.schedule, name)
        return partial(self._call, name, found) if callable(found) else found

    def _call(self, name: str, method: Callable[..., Any], *given: Any, **named: Any) -> Any:
        frame = sys._getframe(1)
        place = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
        words = [self._name(each) for each in given]
        result = method(*given, **named)
        self.calls.append((name, [*words, self._name(result)], place))
        return result

    def _name(self, value: Any) -> str:
        from tvm.s_tir.schedule import LoopRV, SBlockRV

        if not isinstance(value, (SBlockRV, LoopRV)):
            return str(value)
        found: Any = self.schedule.get(value)
        return found.name_hint if isinstance(value, SBlockRV) else found.loop_var.name

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
