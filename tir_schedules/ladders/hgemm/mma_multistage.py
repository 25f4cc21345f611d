"""Tiles 64 deep, as many stages as fit: the best of the ladder before Hopper's own instructions.

A row of a tile is now 128 bytes: a line of global memory and all banks of shared memory. The 8 pieces that 8
lanes copy come from one line and go to one line, where rows of 64 bytes fill each line of shared memory from
two of global memory, in twice the wavefronts. And there are half as many waits and barriers. Three stages of
such tiles take 144 KiB, the most that an A100 has room for; a copy has the time of two tiles, as much as of
four tiles of the rungs before. The stages are unrolled again.

Configuration "256x256": what limits 64x64 warp tiles is reading shared memory. A warp tile of 128x64 needs
3/4 of the reads per mma, and has room in registers when the accumulators are float16. "128x128": less shared
memory, for GPUs that have 99 KiB of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.ladders.hgemm import mma_xor_swizzle
from tir_schedules.model.rung import Rung, run_as_script


@dataclass(frozen=True)
class Config(mma_xor_swizzle.Config):
    """bk: extent of the tiles along K, a multiple of 32. stages: tiles of A and of B in shared memory."""

    bk: int = 64
    stages: int = 3


launch = mma_xor_swizzle.launch
schedule = mma_xor_swizzle.schedule


RUNG = Rung(
    family="hgemm",
    name="mma_multistage",
    summary="tiles 64 deep: copies of whole lines, half the barriers; configurations for other GPUs",
    article="beyond 001 and 004",
    config=Config(),
    configs={"256x256": Config(bn=256, wm=128, bk=32, stages=4), "128x128": Config(bm=128)},
    shapes=mma_xor_swizzle.RUNG.shapes,
    schedule=schedule,
    launch=launch,
    min_arch=80,
    pass_config=mma_xor_swizzle.RUNG.pass_config,
    passes=("unroll_stages", *mma_xor_swizzle.RUNG.passes),
)

if __name__ == "__main__":
    run_as_script(RUNG)
