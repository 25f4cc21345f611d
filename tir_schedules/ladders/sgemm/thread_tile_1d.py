"""A row of `ls` elements of C per thread.

The innermost loop of the thread runs over `ls` neighbours in a row of C, whose accumulators are in registers.
The element of A they share is read from shared memory once, into a register above that loop: article 003, "1D
block tiling".
"""

from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.ladders.sgemm.coalesced import COLUMNS_ON_X
from tir_schedules.ladders.sgemm.steps import launch_rows_by_columns, share_copy, stage
from tir_schedules.model.launch import Launch
from tir_schedules.model.rung import Rung, run_as_script
from tir_schedules.tir.schedule import Schedule, bind, unroll
from tir_schedules.workloads.gemm import Gemm


@dataclass(frozen=True)
class Config:
    """ts: rows of C per block, depth of a tile, edge of the block of threads. ls: elements per thread."""

    ts: int = 32
    ls: int = 4


def launch(gemm: Gemm, config: Config) -> Launch:
    return launch_rows_by_columns(gemm, config.ts, config.ts * config.ls, (config.ts, config.ts))


def schedule(sch: Schedule, gemm: Gemm, config: Config) -> None:
    ts, ls = config.ts, config.ls
    block = sch.get_sblock("C")
    tile_a, tile_b, result = stage(sch, block, (ts, ts * ls, ts))
    element_a = sch.cache_read(block, 0, "local")

    i, j, k = sch.get_loops(block)
    block_i, thread_i = sch.split(i, [None, ts])
    block_j, thread_j, element = sch.split(j, [None, ts, ls])
    k_tile, k_inner = sch.split(k, [None, ts])
    sch.reorder(block_i, block_j, thread_i, thread_j, k_tile, k_inner, element)
    bind(sch, (block_i, block_j, thread_i, thread_j), COLUMNS_ON_X)

    sch.compute_at(element_a, k_inner)
    threads = [("threadIdx.y", ts), ("threadIdx.x", ts)]
    share_copy(sch, tile_a, k_tile, threads)
    sch.unroll(share_copy(sch, tile_b, k_tile, threads, width=ls))  # a thread brings the columns it computes
    sch.reverse_compute_at(result, thread_j, preserve_unit_loops=True)
    unroll(sch, (k_inner, element, sch.get_loops(result)[-1]))
    sch.decompose_reduction(block, k_tile)


RUNG = Rung(
    family="sgemm",
    name="thread_tile_1d",
    summary="four neighbours of a row of C per thread, one register of A for all four",
    article="003, 1D block tiling",
    config=Config(),
    schedule=schedule,
    launch=launch,
)

if __name__ == "__main__":
    run_as_script(RUNG)
