"""Bulk copies: TODO"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tir_schedules.ladders.reduce import single_pass, steps
from tir_schedules.ladders.reduce.cross_thread import sum_per_thread
from tir_schedules.ladders.reduce.steps import WARP, BlocksFrom, ceil_div
from tir_schedules.ladders.reduce.vectorized import VECTOR
from tir_schedules.model.gpus import find_sm
from tir_schedules.model.launch import Launch
from tir_schedules.model.rung import run_as_script
from tir_schedules.tir.schedule import PrimFunc, Schedule
from tir_schedules.workloads.reduction import Reduction

FEWEST, MOST = 2, 8  # stages
BARRIERS = 1024
"""Bytes of static shared memory: the barriers of stages, and sums of warps."""

ARCH = "sm_90a"
SHARED = "shared.dyn"


@dataclass(frozen=True)
class Config(steps.Config):
    """piece: bytes of a copy. stages: pieces that shared memory holds. most_blocks, fenced: as of
    `single_pass`."""

    block: int = 512
    piece: int = 32 << 10
    stages: int = 6
    most_blocks: int = 132
    fenced: int = 0

    @property
    def elements(self) -> int:
        """Of a piece."""
        return self.piece // 4


SMALL = Config(block=256, piece=16 << 10, stages=4, most_blocks=2 * 132)


@dataclass(frozen=True)
class InPieces(BlocksFrom):
    """`refuses` of this rung."""

    def __call__(self, reduction: Reduction, config: Config) -> str:
        share, held = 4 * VECTOR * config.block, config.stages * config.piece
        limit = find_sm(ARCH).shared_limit - BARRIERS
        if reason := super().__call__(reduction, config):
            return reason
        if config.piece < 1 or config.piece % share:
            return f"piece is {config.piece}: {config.block} threads share a multiple of {share} bytes evenly"
        if not FEWEST <= config.stages <= MOST:
            return f"stages is {config.stages}: the ring has {FEWEST} to {MOST} stages"
        if held > limit:
            return f"it takes {held} bytes of shared memory, and {ARCH} has {limit} for it"
        return ""


def launch(reduction: Reduction, config: Config) -> Launch:
    """Blocks along y share a sum."""
    blocks = min(ceil_div(reduction.n, config.elements), config.most_blocks)
    return Launch((1, blocks, 1), (config.block, 1, 1), config.stages * config.piece)


def prim_func(reduction: Reduction, config: Config, name: str) -> PrimFunc:
    """The algorithm over as many pieces for each block, as copies show X: zero behind its end."""
    (_, blocks, _), chunk = launch(reduction, config).grid, config.block * VECTOR
    turns, loads = ceil_div(reduction.n, blocks * config.elements), config.elements // chunk

    def read(X: Any, block: Any, iteration: Any, i: Any) -> Any:
        return X[iteration // loads, block, iteration % loads * chunk + i]

    shape = turns, blocks, config.elements
    extents = blocks, turns * loads, chunk
    return single_pass.sum_of_sums(name, reduction.dtype, shape, extents, config.block, read)


def schedule(sch: Schedule, reduction: Reduction, config: Config) -> None:
    from tir_schedules.tir.intrinsics import pieces

    partial, iteration, vector = sum_per_thread(sch, config.block, VECTOR, "part", "blockIdx.y")
    turn, load = sch.split(iteration, [None, config.elements // (config.block * VECTOR)])
    copy = sch.cache_read(partial, 0, SHARED)
    sch.compute_at(copy, turn, preserve_unit_loops=True)
    sch.tensorize(sch.get_loops(copy)[-1], pieces.load(config.elements, reduction.n, reduction.dtype))
    sch.unroll(load)
    sch.vectorize(vector)
    sch.decompose_reduction(partial, turn)
    sch.annotate(turn, "disable_unroll", True)
    sch.prefetch_boxes(turn, config.stages)
    single_pass.add_in_last_block(sch, config.block, config.fenced)


RUNG = single_pass.RUNG.followed_by(
    "bulk",
    "bulk copies of pieces to a ring in shared memory, which one thread starts",
    schedule,
    config=Config(),
    configs={"4x16k": SMALL},
    launch=launch,
    prim_func=prim_func,
    refuses=InPieces(WARP),
    arch=ARCH,
)

if __name__ == "__main__":
    run_as_script(RUNG)
