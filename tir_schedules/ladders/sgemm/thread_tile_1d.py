"""Several elements of C per thread, in a row or in a column.

The innermost loop of a thread runs over neighbours in a row of C. Their sums are in registers. They share an
element of A, which is read from shared memory once, into a register before that loop. This is article 003
("choiBLAMS"), "1D Blocktiling". As there, a thread also loads the elements of B for its own columns, at a
stride.

Configuration `article_000` is the step of that name in the series of article 000 ("Warp Tiling"). There a
thread has eight elements of a column of C, which share an element of B. Neighbouring threads copy
neighbouring elements of both tiles.

Measured on an H200 at 4096: 12.3 TFLOPS, 1.34 times the 9.20 of `shared_tile`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.ladders.sgemm import shared_tile
from tir_schedules.ladders.sgemm.steps import (
    ThreadTiling,
    launch_thread_tiles,
    share_copy,
    split_into_thread_tiles,
    stage,
)
from tir_schedules.model.rung import run_as_script
from tir_schedules.tir.schedule import Schedule, unroll
from tir_schedules.workloads.gemm import Gemm


@dataclass(frozen=True)
class Config(ThreadTiling):
    """One of tm and tn is 1. As many threads as elements in a tile of A; bk of them along the rows of C."""

    bm: int = 32
    tm: int = 1


def schedule(sch: Schedule, gemm: Gemm, config: Config) -> None:
    block = sch.get_sblock("C")
    tile_a, tile_b, result = stage(sch, block, (config.bm, config.bn, config.bk))
    shared_by_all = sch.cache_read(block, 0 if config.tm == 1 else 1, "local")
    loops = split_into_thread_tiles(sch, block, config)

    sch.compute_at(shared_by_all, loops.k_inner)
    share_copy(sch, tile_a, loops.k_tile, config.both)
    # A thread brings the columns it computes.
    sch.unroll(share_copy(sch, tile_b, loops.k_tile, config.both, width=config.tn))
    sch.reverse_compute_at(result, loops.thread, preserve_unit_loops=True)
    unroll(sch, (loops.k_inner, *loops.fmas, *sch.get_loops(result)[-2:]))
    sch.decompose_reduction(block, loops.k_tile)


RUNG = shared_tile.RUNG.followed_by(
    "thread_tile_1d",
    "four neighbours of a row of C per thread, one register of A for all four",
    schedule,
    article="003, 1D block tiling",
    config=Config(),
    configs={"article_000": Config(bm=64, bn=64, bk=8, tm=8, tn=1)},
    launch=launch_thread_tiles,
)

if __name__ == "__main__":
    run_as_script(RUNG)
