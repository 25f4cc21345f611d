"""Tiles 64 deep, as many stages as fit: for aligned rows the best before Hopper's own instructions.

A row of a tile is now 128 bytes: a line of global memory and all banks of shared memory. The 8 pieces that 8
lanes copy come from one line and go to one line. In the rungs before, rows have 64 bytes. There the 128 bytes
that fill all banks once come from two lines of global memory, so the copy takes twice the wavefronts. Now
neither loads nor copies have bank conflicts, and there are half as many waits and barriers. Three stages of
these tiles take 144 KiB, and an A100 has no room for more. The loop over stages is unrolled, as in
`wmma_register_pipelined`.

If rows are not multiples of 16 bytes, `mma_xor_swizzle` is faster.

Copies come first in an iteration, not after the work. This is right, because the barrier of the iteration
before comes after the last read of the stage that they refill. The wait for the next tile is at the end of
the iteration, right before the first fragments of that tile. So a copy has the time of two tiles to arrive.
In the rungs before, it has the time of one.

Configuration "256x256": warp tiles of 64x64 are limited by reads of shared memory. A warp tile of 128x64
needs 3/4 of the reads per mma, and fits into registers if the accumulators (the registers of sums) are
float16. The tiles of "256x256" are 32 deep, so its copies take twice the wavefronts again. These copies come
after the work, because that is faster with these tiles. "128x128" takes less shared memory, for GPUs that
have 99 KiB of it. "64x64", with warp tiles of 32x32, is for a small C, which has few tiles.

At 4096 an H200 was 4 % slower if "256x256" copied first.

Sums in float32 go through shared memory before they are written. If C is float16, they are rounded on the way
out, and nothing else changes.

Measured on an H200 at 4096 nt float16: 547 TFLOPS, 1.16 times the 473 of `mma_xor_swizzle`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.ladders.hgemm import mma_xor_swizzle
from tir_schedules.model.rung import run_as_script
from tir_schedules.tir.schedule import Schedule
from tir_schedules.workloads import RESULTS
from tir_schedules.workloads.half_gemm import HalfGemm


@dataclass(frozen=True)
class Config(mma_xor_swizzle.Config):
    """copies_first: 1 when an iteration begins with its copies, 0 when the work comes first, as in the rungs
    before.
    """

    bk: int = 64
    copies_first: int = 1

    rounds = True


def schedule(sch: Schedule, gemm: HalfGemm, config: Config) -> None:
    tiles = mma_xor_swizzle.swizzled(sch, gemm, config)
    sch.unroll_stages(tiles.k_tile, config.stages)
    if config.copies_first:
        sch.keep_copies_first(tiles.k_tile)


RUNG = mma_xor_swizzle.RUNG.followed_by(
    "mma_multistage",
    "tiles 64 deep: copies of whole lines, half the barriers; configurations for other GPUs",
    schedule,
    article="beyond 001 and 004",
    config=Config(),
    configs={
        "256x256": Config(bn=256, wm=128, bk=32, stages=4, copies_first=0),
        "128x128": Config(bm=128),
        "64x64": Config(bm=64, bn=64, wm=32, wn=32),
    },
    outputs=RESULTS[:2],
)

if __name__ == "__main__":
    run_as_script(RUNG)
