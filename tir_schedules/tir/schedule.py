"""What schedules are written with: TVM's classes as a type checker is to see them, and steps of every ladder.

At run time the classes are `object`: nothing needs them, and TVM takes seconds to import.
"""

# The class below mends types of the one it is derived from.
# pyright: reportIncompatibleMethodOverride=false

from __future__ import annotations

from typing import TYPE_CHECKING, Sequence

if TYPE_CHECKING:
    from tvm import s_tir
    from tvm.s_tir.schedule import LoopRV as Loop
    from tvm.s_tir.schedule import SBlockRV as Block
    from tvm.tirx import PrimFunc as PrimFunc

    class Schedule(s_tir.Schedule):
        """TVM's, with the type of several loops; TVM declares each of them to be a list of loops."""

        def reorder(self, *ordered_loops: Loop) -> None: ...

        def merge(self, *loops: Loop) -> Loop: ...

        def fuse(self, *loops: Loop, preserve_unit_iters: bool = True) -> Loop: ...
else:
    Schedule = Loop = Block = PrimFunc = object


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

    tile: block tile (M, N, K). Where it does not divide the shape, pad_einsum makes the problem as large as
    whole tiles: the copies of A and B fill with zeros, which add nothing, and a copy of C leaves out what
    lies beyond. So all guards are in the copies, and the multiplication has none. copied: False for a shape
    of whole tiles whose operands are read where they are.
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
