"""A threadblock swizzle in serpentine order. With this the schedule is article 001's kernel in full.

Blocks start in the order of their number, some hundred at a time. In a plain grid those are a few long rows
of blocks, which read few rows of A and all of B. In groups of 16 columns they are a more square patch, which
reads less and finds more of it in the L2 cache; and every second group runs from the last row to the first,
so that it begins with the rows of A that the group before has just read. Look for blockIdx.z, the group, and
the row of blocks that depends on whether it is odd.
"""

from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.ladders.hgemm import steps, wmma_staged_epilogue
from tir_schedules.ladders.hgemm.wmma_staged_epilogue import RESULT_PADDING, shared_bytes
from tir_schedules.model.launch import Launch
from tir_schedules.model.rung import Rung, run_as_script
from tir_schedules.tir.schedule import Schedule
from tir_schedules.workloads.half_gemm import HalfGemm


@dataclass(frozen=True)
class Config(wmma_staged_epilogue.Config):
    """threadblock_swizzle: most columns of blocks in a group; a group has as many of them as divide both this
    and the number of all columns."""

    threadblock_swizzle: int = 16


def launch(gemm: HalfGemm, config: Config) -> Launch:
    return steps.launch_swizzled(gemm, config, config.threadblock_swizzle, shared_bytes(gemm, config))


def schedule(sch: Schedule, gemm: HalfGemm, config: Config) -> None:
    parts = steps.split_up(sch, gemm, config, staged=True, swizzle=config.threadblock_swizzle)
    steps.share_copies(sch, gemm, config, parts)
    steps.use_tensor_cores(sch, gemm, parts, "wmma", padding=RESULT_PADDING)
    steps.copy_result(sch, gemm, config, parts)
    sch.unroll(parts.k_step)
    steps.pad_rows(sch, parts, config.padding)
    steps.pipeline_fragments(sch, parts, config.stages)


RUNG = Rung(
    family="hgemm",
    name="wmma_swizzled_grid",
    summary="threadblock swizzle in serpentine order: blocks that run together share more in the L2 cache",
    article="001, grid and block: the article's kernel in full",
    config=Config(),
    shapes=wmma_staged_epilogue.RUNG.shapes,
    schedule=schedule,
    launch=launch,
    min_arch=80,
    pass_config=wmma_staged_epilogue.RUNG.pass_config,
    passes=("serpentine", *wmma_staged_epilogue.RUNG.passes),
)

if __name__ == "__main__":
    run_as_script(RUNG)
