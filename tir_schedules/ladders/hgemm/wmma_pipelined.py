"""Three stages, one barrier per tile.

With three stages in shared memory, not two, one barrier is enough: wait until the tile has arrived, barrier,
mma, then the copy of the tile two ahead, into the stage of the tile before. The barrier says both that all
parts of the tile are there and that no warp reads that stage any more. As before, a copy has the time of one
tile's mma to arrive.
Look for `wait_group 1` and a single barrier in the main loop.

Mma, then copy, then wait and barrier is the order of "Optimizing Half-Precision GEMM with Tensor Cores"
(article 001), "Three-level pipeline", without its second set of fragments. (To copy before the mma is as
right: the barrier stands before both.)

Three things make TVM do this. The copies of A and B become one statement, for its pipelining would count two
groups of copies per tile but commit one. The mma come first in the order. And the copies become cp.async
before TVM places barriers: it takes the stages for one buffer, and would put a barrier of its own before each
copy.
"""

from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.ladders.hgemm import steps, wmma_async
from tir_schedules.model.rung import run_as_script
from tir_schedules.tir.schedule import Schedule, pipeline
from tir_schedules.workloads.half_gemm import HalfGemm


@dataclass(frozen=True)
class Config(wmma_async.Config):
    """stages: at least 3."""

    stages: int = 3


def schedule(sch: Schedule, gemm: HalfGemm, config: Config) -> None:
    parts = steps.multiply_tiles(sch, gemm, config)
    sch.unroll(parts.tiles.k_step)
    steps.pad_rows(sch, parts.copies, config.padding)
    steps.merge_copies(sch, parts.tiles, parts.copies)
    sch.unroll_drain()
    copy, compute = 0, config.stages - 1
    pipeline(sch, parts.tiles.k_tile, stage=[copy, compute], order=[1, 0], asynchronous=[0])
    sch.async_copies()
    sch.async_copies_before_barriers()
    sch.prefetch_l2()


RUNG = wmma_async.RUNG.followed_by(
    "wmma_pipelined",
    "three stages of copies, one barrier per tile",
    schedule,
    article="001, the multistage buffer",
    config=Config(),
)

if __name__ == "__main__":
    run_as_script(RUNG)
