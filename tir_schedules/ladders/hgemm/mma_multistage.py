"""Tiles 64 deep, as many stages as fit: the best of the ladder before Hopper's own instructions.

A row of a tile is now 128 bytes: a line of global memory and all banks of shared memory. The 8 pieces that 8
lanes copy come from one line and go to one line, where rows of 64 bytes fill each line of shared memory from
two of global memory, in twice the wavefronts. And there are half as many waits and barriers. Three stages of
such tiles take 144 KiB, the most that an A100 has room for; a copy has the time of two tiles, as much as of
four tiles of the rungs before. The turns of the ring are written out again.

Configuration "256x256": what limits 64x64 warp tiles is reading shared memory. A warp tile of 128x64 needs
3/4 of the reads per product, and has room in registers when the sums are float16. "128x128": less shared
memory, for GPUs that have 99 KiB of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.ladders.hgemm import mma_permuted
from tir_schedules.model.rung import Rung, run_as_script


@dataclass(frozen=True)
class Config(mma_permuted.Config):
    """bk: extent of the tiles along K, a multiple of 32; stages: tiles of A and of B in shared memory at a
    time."""

    bk: int = 64
    stages: int = 3


launch = mma_permuted.launch
schedule = mma_permuted.schedule


RUNG = Rung(
    family="hgemm",
    name="mma_multistage",
    summary=(
        "tiles 64 deep: copies of whole lines, half as many barriers; configurations for larger and smaller"
        " GPUs"
    ),
    article="beyond 001 and 004",
    config=Config(),
    configs={"256x256": Config(bn=256, wm=128, bk=32, stages=4), "128x128": Config(bm=128)},
    shapes=mma_permuted.RUNG.shapes,
    schedule=schedule,
    launch=launch,
    min_arch=80,
    pass_config=mma_permuted.RUNG.pass_config,
    passes=("unroll_ring", *mma_permuted.RUNG.passes),
)

if __name__ == "__main__":
    run_as_script(RUNG)
