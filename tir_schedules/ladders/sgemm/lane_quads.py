"""Lanes in quads.

A warp reads 16 bytes per lane from shared memory, and a wavefront is one turn of all banks. If pairs of near
lanes read the same piece, that takes two wavefronts, otherwise four. In the rungs before, neighbouring lanes
are in one row of the warp's 4x8 lanes. They share their piece of A, which takes two wavefronts, but not their
piece of B, which takes four. Here lane 1 is below lane 0, and lane 2 is to the right of lane 0. Lanes 0 and 1
share their piece of B, lanes 0 and 2 that of A, and both reads take two wavefronts. The elements of C are the
same. Look at the index of the fragments in the emitted CUDA, and at the counters.

`warp_tiling:128x128x8` has the same tiles. Compared with it, wavefronts of shared loads fall by a third, from
98,304 to 65,536 at 256 cubed. The default of `warp_tiling` has tiles of 64x64 and takes 163,840. The rates
below compare the two defaults, so they include the effect of the larger tiles.

Measured on an H200 at 4096: 43.0 TFLOPS, 1.27 times the 33.9 of `warp_tiling`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.ladders.sgemm import warp_tiling
from tir_schedules.ladders.sgemm.steps import share_vectors
from tir_schedules.ladders.sgemm.warp_tiles import WarpTiling, finish, split_up
from tir_schedules.model.rung import run_as_script
from tir_schedules.tir.schedule import Schedule
from tir_schedules.workloads.gemm import Gemm


@dataclass(frozen=True)
class Config(WarpTiling):
    """Block tile 128x128, warp tile 32x64: a lane has 8x8 elements of C, in four pieces of 4x4."""

    bm: int = 128
    bn: int = 128
    wm: int = 32
    wn: int = 64
    wmiter: int = 2
    wniter: int = 2


def schedule(sch: Schedule, gemm: Gemm, config: Config) -> None:
    parts = split_up(sch, config)
    share_vectors(sch, gemm, parts.copies, parts.k_tile, [("threadIdx.x", config.threads)])
    sch.unroll(parts.k_inner)
    finish(sch, gemm, parts, config)


RUNG = warp_tiling.RUNG.followed_by(
    "lane_quads",
    "lanes two by two instead of in rows: shared memory is read in fewer wavefronts",
    schedule,
    article="beyond 000",
    config=Config(),
    configs={"64x64": Config(wm=64, wniter=4)},
)

if __name__ == "__main__":
    run_as_script(RUNG)
