"""A tile of `tm` x `tn` elements of C per thread.

For each k a thread brings `tm` elements of A and `tn` of B from shared memory into registers for tm * tn FMA.
Look for the two fragment copies at the head of the k loop and the outer product below: article 003, kernel 4
(4x4 elements). Configuration 8x8 is the size of the series that article 000 belongs to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Sequence

from tir_schedules.ladders.sgemm.coalesced import COLUMNS_ON_X
from tir_schedules.ladders.sgemm.steps import launch_rows_by_columns, share_copy, stage
from tir_schedules.model.launch import Launch
from tir_schedules.model.rung import Rung, run_as_script
from tir_schedules.tir.schedule import Block, Loop, Schedule, bind, unroll
from tir_schedules.workloads.gemm import Gemm


@dataclass(frozen=True)
class Config:
    """Block tile bm x bn, bk of its tiles along K; thread tile tm x tn."""

    bm: int = 128
    bn: int = 128
    bk: int = 32
    tm: int = 4
    tn: int = 4


def threads(config: Config) -> tuple[int, int]:
    """Threads of a block along columns (x) and rows (y) of C."""
    return config.bn // config.tn, config.bm // config.tm


def launch(gemm: Gemm, config: Config) -> Launch:
    return launch_rows_by_columns(gemm, config.bm, config.bn, threads(config))


def schedule(sch: Schedule, gemm: Gemm, config: Config) -> None:
    block = sch.get_sblock("C")
    tile_a, tile_b, result = stage(sch, block, (config.bm, config.bn, config.bk))
    fragment_a = sch.cache_read(block, 0, "local")
    fragment_b = sch.cache_read(block, 1, "local")

    threads_x, threads_y = threads(config)
    i, j, k = sch.get_loops(block)
    block_i, thread_i, inner_i = sch.split(i, [None, threads_y, config.tm])
    block_j, thread_j, inner_j = sch.split(j, [None, threads_x, config.tn])
    k_tile, k_inner = sch.split(k, [None, config.bk])
    sch.reorder(block_i, block_j, thread_i, thread_j, k_tile, k_inner, inner_i, inner_j)
    bind(sch, (block_i, block_j, thread_i, thread_j), COLUMNS_ON_X)

    for fragment in (fragment_a, fragment_b):
        sch.compute_at(fragment, k_inner)
    for tile in (tile_a, tile_b):
        share_copy(sch, tile, k_tile, [("threadIdx.y", threads_y), ("threadIdx.x", threads_x)])
    sch.reverse_compute_at(result, thread_j, preserve_unit_loops=True)
    unroll_thread_tile(sch, (k_inner, inner_i, inner_j), (fragment_a, fragment_b, result))
    sch.decompose_reduction(block, k_tile)


def unroll_thread_tile(sch: Schedule, loops: Sequence[Loop], copies: Sequence[Block]) -> None:
    """Unroll the loops of a thread, and of the copies between shared memory and its registers."""
    unroll(sch, (*loops, *(loop for copy in copies for loop in sch.get_loops(copy)[-2:])))


RUNG = Rung(
    family="sgemm",
    name="thread_tile_2d",
    summary="a 4x4 tile of C per thread: 8 values from shared memory serve 16 FMA",
    article="003, kernel 4",
    config=Config(),
    configs={"8x8": Config(bk=8, tm=8, tn=8)},
    schedule=schedule,
    launch=launch,
)

if __name__ == "__main__":
    run_as_script(RUNG)
