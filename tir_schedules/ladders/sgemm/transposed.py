"""A transposed in shared memory, so that both fragments are float4 rows.

A thread's fragment of A is a column of the tile. If A is stored transposed, the fragment becomes a row, and
float4 can read it like that of B. A thread tile of 8x8 then takes four reads for 64 FMA. Look for the float4
read of A whose four components go to four rows of the shared tile. These stores are the price. `vectorized`
stores a float4 at once, but here the threads of a warp meet in a few banks of shared memory and take turns
(bank conflicts). `pipelined` pads the rows to avoid this. There is a second loss: the float4 of B that
neighbouring threads read are 32 bytes apart. A wavefront is one turn of all banks, and both fragments
together take 1.67 times the wavefronts that they need. `warp_tiling` mends this by sub-tiles of the thread
tile.

Article 000 ("Warp Tiling") starts from this step, which it calls vectorized accesses. There threads have one
dimension, blockIdx.x runs along the columns of C, thread tiles are 8x8, and tiles are 8 deep. Its block tile
is 64x64: see configuration `article`.

Configuration `diagonal` uses diagonal storage in place of padding. "Why does padding resolve bank conflicts?"
(article 004) names this storage in its last section, for fp32. Each row of A's tile is rotated by four floats
more than the row above it. A warp stores to two rows at once, which are 4 apart. After the rotation they are
16 banks apart, so a store takes 1 wavefront in place of 2. At 256x256x256 all stores of A take 8,192 in place
of 16,384. A float4 stays whole, so reads are as before. The tile is that of `article`, because with 128x128
the additional addresses do not fit into registers.

Measured on an H200 at 4096: 40.3 TFLOPS, 1.23 times the 32.8 of `vectorized`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.ladders.sgemm import vectorized
from tir_schedules.ladders.sgemm.steps import (
    THREADS_ON_X,
    VECTOR,
    ThreadTiling,
    launch_columns_by_rows,
    share_vectors,
    stage,
    vector_width,
    vectorize_last,
)
from tir_schedules.model.launch import Launch
from tir_schedules.model.rung import run_as_script
from tir_schedules.tir.schedule import Schedule, bind, unroll
from tir_schedules.workloads.gemm import Gemm


@dataclass(frozen=True)
class Config(ThreadTiling):
    """Threads are in one dimension. diagonal: 1 when each row of A's tile begins four floats after the row
    above it."""

    bk: int = 8
    tm: int = 8
    tn: int = 8
    diagonal: int = 0

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.threads_y * self.threads_x


def launch(gemm: Gemm, config: Config) -> Launch:
    return launch_columns_by_rows(gemm, config.bm, config.bn, config.threads)


def schedule(sch: Schedule, gemm: Gemm, config: Config) -> None:
    block = sch.get_sblock("C")
    tile_a, tile_b, result = stage(sch, block, (config.bm, config.bn, config.bk))
    sch.transform_layout(tile_a, ("write", 0), lambda i, k: (k, i))
    if config.diagonal:
        sch.store_diagonally(tile_a, VECTOR)
    fragment_a = sch.cache_read(block, 0, "local")
    fragment_b = sch.cache_read(block, 1, "local")

    i, j, k = sch.get_loops(block)
    block_i, thread_i, inner_i = sch.split(i, [None, config.threads_y, config.tm])
    block_j, thread_j, inner_j = sch.split(j, [None, config.threads_x, config.tn])
    k_tile, k_inner = sch.split(k, [None, config.bk])
    sch.reorder(block_i, block_j, thread_i, thread_j, k_tile, k_inner, inner_i, inner_j)
    sch.reverse_compute_at(result, thread_j, preserve_unit_loops=True)  # before thread_i and thread_j are one
    thread = sch.fuse(thread_i, thread_j)
    bind(sch, (block_i, block_j, thread), THREADS_ON_X)

    for fragment in (fragment_a, fragment_b):
        sch.compute_at(fragment, k_inner)
        vectorize_last(sch, fragment, 4)
    share_vectors(sch, gemm, (tile_a, tile_b), k_tile, [("threadIdx.x", config.threads)])
    vectorize_last(sch, result, vector_width(gemm.n))
    unroll(sch, (k_inner, inner_i, inner_j))
    sch.decompose_reduction(block, k_tile)


RUNG = vectorized.RUNG.followed_by(
    "transposed",
    "A transposed in shared memory: the fragments of both operands are rows that float4 reads",
    schedule,
    article="the step before 000's",
    config=Config(),
    configs={
        "32x32": Config(bk=32, tm=4, tn=4),
        "diagonal": Config(bm=64, bn=64, diagonal=1),
        "article": Config(bm=64, bn=64),
    },
    launch=launch,
)

if __name__ == "__main__":
    run_as_script(RUNG)
