"""Three stages, one barrier per tile.

With three stages in shared memory a copy has the time of two tiles' mma to arrive. And one barrier is enough:
wait until the tile has arrived, barrier, mma, then the copy of the tile two ahead, into the stage of the tile
before. The barrier says both that all parts of the tile are there and that nobody reads that stage any more.
Look for `wait_group 1` and a single barrier in the main loop.

Three things make TVM do this. The copies of A and B become one statement, for its pipelining would count two
groups of copies per tile but commit one. The mma come first in the order. And the copies become cp.async
before TVM places barriers: it takes the stages for one buffer, and would put a barrier of its own before each
copy.
"""

from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.ladders.hgemm import steps, wmma_async
from tir_schedules.model.rung import Rung, run_as_script
from tir_schedules.tir.schedule import Schedule, pipeline
from tir_schedules.workloads.half_gemm import HalfGemm


@dataclass(frozen=True)
class Config(wmma_async.Config):
    """stages: tiles of A and of B in shared memory at a time, at least 3."""

    stages: int = 3


launch = wmma_async.launch


def schedule(sch: Schedule, gemm: HalfGemm, config: Config) -> None:
    parts = steps.split_up(sch, gemm, config)
    steps.share_copies(sch, gemm, config, parts)
    steps.use_tensor_cores(sch, gemm, parts, "wmma")
    steps.copy_result(sch, gemm, config, parts)
    sch.unroll(parts.k_step)
    steps.pad_rows(sch, parts, config.padding)
    steps.merge_copies(sch, parts)
    copies, compute = 0, config.stages - 1
    pipeline(sch, parts.k_tile, stage=[copies, compute], order=[1, 0], asynchronous=[0])


RUNG = Rung(
    family="hgemm",
    name="wmma_pipelined",
    summary="three stages of copies, one barrier per tile",
    article="001, the multistage buffer",
    config=Config(),
    shapes=wmma_async.RUNG.shapes,
    schedule=schedule,
    launch=launch,
    min_arch=80,
    pass_config=wmma_async.RUNG.pass_config,
    passes=("copies_before_barriers", *wmma_async.RUNG.passes),
)

if __name__ == "__main__":
    run_as_script(RUNG)
