"""A tile of C per warp.

Between the block tile and the thread tiles stands the warp tile, wm x wn, computed in wmiter x wniter
sub-tiles. The fragments of all sub-tiles are read before the FMA, which run through the four loops of
article 000 ("Warp Tiling"): sub-tile row, sub-tile column, row, column. Copies and float4 accesses are those
of `transposed`. How the tiles come about is in warp_tiles.py.

The article prints no values. Those of its program are configuration 000, where the two sub-tiles of a warp
tile stand one below the other; by default they stand side by side, and all else is the same.
"""

from __future__ import annotations

from tir_schedules.ladders.sgemm import transposed
from tir_schedules.ladders.sgemm.steps import share_vectors
from tir_schedules.ladders.sgemm.warp_tiles import WarpTiling, finish, launch, split_up
from tir_schedules.model.rung import run_as_script
from tir_schedules.tir.schedule import Schedule
from tir_schedules.workloads.gemm import Gemm

Config = WarpTiling


def schedule(sch: Schedule, gemm: Gemm, config: Config) -> None:
    parts = split_up(sch, config)
    share_vectors(sch, gemm, parts.copies, parts.k_tile, [("threadIdx.x", config.threads)])
    sch.unroll(parts.k_inner)
    finish(sch, gemm, parts, config)


RUNG = transposed.RUNG.followed_by(
    "warp_tiling",
    "a tile of C per warp, in sub-tiles, between the tile of the block and those of the threads",
    schedule,
    article="000",
    config=Config(),
    configs={
        "000": Config(wmiter=2, wniter=1),
        "128x128": Config(bm=128, bn=128, bk=16, wm=64, wn=64, wmiter=1, wniter=4, tm=8, tn=4),
        "128x128x8": Config(bm=128, bn=128, bk=8, wm=32, wn=64, wmiter=2, wniter=2, tm=4, tn=4),
    },
    launch=launch,
)

if __name__ == "__main__":
    run_as_script(RUNG)
