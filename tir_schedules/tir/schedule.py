"""Opening a schedule, listening to one, and steps that rungs of several ladders share."""

from __future__ import annotations

import inspect
import sys
from functools import lru_cache, partial
from types import FrameType
from typing import Any, Callable, Sequence

from tir_schedules.model.schedule import Block as Block
from tir_schedules.model.schedule import Loop as Loop
from tir_schedules.model.schedule import PrimFunc as PrimFunc
from tir_schedules.model.schedule import Schedule as Schedule
from tir_schedules.tir.tvm import import_tvm


def open_schedule(function: "PrimFunc") -> Schedule:
    """A Schedule of a function."""
    return schedule_class()(function)


@lru_cache(maxsize=1)
def schedule_class() -> type[Schedule]:
    """The class that has TVM's primitives and those of this project."""
    return type("Schedule", (Schedule, import_tvm().s_tir.Schedule), {})


class Listener:
    """Stands in for a Schedule: passes every call on, and is told of it."""

    def __init__(self, schedule: Schedule):
        self.schedule = schedule

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.schedule, name)
        return partial(self._call, name, found) if inspect.isroutine(found) else found

    def _call(self, name: str, method: Callable[..., Any], /, *given: Any, **named: Any) -> Any:
        frame = sys._getframe(1)
        words = [*map(self.written, given), *(f"{key}={self.written(value)}" for key, value in named.items())]
        result = method(*given, **named)
        self.called(name, words, result, frame)
        return result

    def called(self, name: str, given: list[str], result: Any, frame: FrameType) -> None:
        """A method has returned. given: its arguments as `written`. frame: of the caller."""
        raise NotImplementedError

    def written(self, value: object) -> str:
        """A value as a reader would write it: a block or loop by its name."""
        from tvm.s_tir.schedule import LoopRV, SBlockRV

        if not isinstance(value, (SBlockRV, LoopRV)):
            return str(value)
        found: Any = self.schedule.get(value)
        return found.name_hint if isinstance(value, SBlockRV) else found.loop_var.name


def bind(sch: Schedule, loops: Sequence[Loop], axes: Sequence[str]) -> None:
    """Bind loops to "blockIdx.x", "threadIdx.y", ... one to one."""
    for loop, axis in zip(loops, axes):
        sch.bind(loop, axis)


def unroll(sch: Schedule, loops: Sequence[Loop]) -> None:
    for loop in loops:
        sch.unroll(loop)


def stage_operands(
    sch: Schedule, block: Block, tile: tuple[int, int, int], scope: str, copied: bool = True
) -> tuple[Block, ...]:
    """The copies of A and B to memory of `scope`, in blocks of their own that are not yet placed.

    tile: block tile (M, N, K). If it does not divide the shape, pad_einsum makes the problem as large as
    whole tiles. The copies of A and B fill with zeros, which add nothing, and a copy of C leaves out elements
    beyond C. So all guards are in the copies, and the multiplication has none. copied: False for a shape of
    whole tiles whose operands are read where they are.
    """
    sch.pad_einsum(block, list(tile))
    padded = {name_of(sch, producer): producer for producer in sch.get_producers(block)}
    copies = []
    for operand, name in enumerate(("A_pad", "B_pad")):
        if name in padded:
            sch.set_scope(padded[name], 0, scope)
        if copied:
            copies.append(padded.get(name) or sch.cache_read(block, operand, scope))
    return tuple(copies)


def name_of(sch: Schedule, block: Block) -> str:
    """The name a block has in the TIR."""
    return getattr(sch.get(block), "name_hint")


def pipeline(
    sch: Schedule, loop: Loop, stage: Sequence[int], order: Sequence[int], asynchronous: Sequence[int] = ()
) -> None:
    """Software pipelining of the statements of a loop, for TVM's InjectSoftwarePipeline.

    stage, order: pipeline stage and place of each statement. asynchronous: the stages that copy
    asynchronously.
    """
    sch.annotate(loop, "software_pipeline_stage", [*stage])
    sch.annotate(loop, "software_pipeline_order", [*order])
    if asynchronous:
        sch.annotate(loop, "software_pipeline_async_stages", [*asynchronous])
