"""Tiles of A and B in shared memory.

The loop over K is split into tiles of `ts`. At the head of each tile the block copies ts x ts elements of A
and of B to shared memory, one of each per thread, and computes from there. So an element that is read from
global memory once serves `ts` threads. Look for two barriers per tile. Before the first, all threads have
finished with the tile before. After the second, the new tile is complete. This is article 003 ("choiBLAMS"),
kernel 3. The step before the thread tiles in the series of article 000 ("Warp Tiling") has the same tiles:
configuration `article_000`.

The listing of article 003 is right if whole tiles cover M, N and K. Its loop over K / 32 tiles leaves out the
last K % 32 products. Its threads outside C return before the barriers, although all threads of a block must
reach these. And the elements that these threads should copy are missing. Here threads outside C stay, and
tiles are filled with zeros.

Measured on an H200 at 4096: 9.20 TFLOPS, 1.50 times the 6.14 of `coalesced`.
"""

from __future__ import annotations

from tir_schedules.ladders.sgemm import coalesced
from tir_schedules.ladders.sgemm.steps import COLUMNS_ON_X, Squares, share_copy, stage
from tir_schedules.model.rung import run_as_script
from tir_schedules.tir.schedule import Schedule, bind
from tir_schedules.workloads.gemm import Gemm


def schedule(sch: Schedule, gemm: Gemm, config: Squares) -> None:
    ts = config.ts
    block = sch.get_sblock("C")
    tile_a, tile_b, result = stage(sch, block, (ts, ts, ts))

    i, j, k = sch.get_loops(block)
    block_i, thread_i = sch.split(i, [None, ts])
    block_j, thread_j = sch.split(j, [None, ts])
    k_tile, k_inner = sch.split(k, [None, ts])
    sch.reorder(block_i, block_j, thread_i, thread_j, k_tile, k_inner)
    bind(sch, (block_i, block_j, thread_i, thread_j), COLUMNS_ON_X)

    for tile in (tile_a, tile_b):
        share_copy(sch, tile, k_tile, [("threadIdx.y", ts), ("threadIdx.x", ts)])
    sch.reverse_compute_at(result, thread_j, preserve_unit_loops=True)
    sch.unroll(k_inner)
    sch.decompose_reduction(block, k_tile)


RUNG = coalesced.RUNG.followed_by(
    "shared_tile",
    "32x32 tiles of A and B in shared memory, each element read once from global memory and used 32 times",
    schedule,
    article="003, kernel 3",
    configs={"article_000": Squares()},
)

if __name__ == "__main__":
    run_as_script(RUNG)
