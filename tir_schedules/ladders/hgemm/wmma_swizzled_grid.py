"""The grid in stripes, walked to and fro. With this the schedule is article 001's kernel in full.

Blocks start in the order of their number, some hundred at a time. In a plain grid those are a few long rows
of blocks, which read few rows of A and all of B. In stripes of 16 columns they are a more square patch, which
reads less and finds more of it in the L2 cache; and every second stripe is walked from the last row to the
first, so that it begins with the rows of A that the stripe before has just read. Look for blockIdx.z, the
stripe, and the row of blocks that depends on whether it is odd.
"""

from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.ladders.hgemm import steps, wmma_staged_epilogue
from tir_schedules.ladders.hgemm.wmma_staged_epilogue import shared_bytes
from tir_schedules.model.launch import Launch
from tir_schedules.model.rung import Rung, run_as_script
from tir_schedules.workloads.half_gemm import HalfGemm


@dataclass(frozen=True)
class Config(wmma_staged_epilogue.Config):
    """stripe: most columns of blocks in a stripe; a stripe has as many of them as divide both this and the
    number of all columns."""

    stripe: int = 16


def launch(gemm: HalfGemm, config: Config) -> Launch:
    return steps.launch_stripes(gemm, config, config.stripe, shared_bytes(gemm, config))


def schedule(sch, gemm: HalfGemm, config: Config, **how) -> steps.Parts:
    """how: see wmma_staged_epilogue.schedule."""
    return wmma_staged_epilogue.schedule(sch, gemm, config, stripe=config.stripe, **how)


RUNG = Rung(
    family="hgemm",
    name="wmma_swizzled_grid",
    summary=(
        "the grid in stripes of 16 columns, walked to and fro: blocks that run together share more in the L2"
        " cache"
    ),
    article="001, grid and block: the article's kernel in full",
    config=Config(),
    shapes=wmma_staged_epilogue.RUNG.shapes,
    schedule=schedule,
    launch=launch,
    min_arch=80,
    pass_config=wmma_staged_epilogue.RUNG.pass_config,
    passes=("boustrophedon", *wmma_staged_epilogue.RUNG.passes),
)

if __name__ == "__main__":
    run_as_script(RUNG)
