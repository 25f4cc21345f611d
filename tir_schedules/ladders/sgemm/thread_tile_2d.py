"""A tile of `tm` x `tn` elements of C per thread.

For each k a thread reads `tm` elements of A and `tn` of B from shared memory into registers. These are its
fragments, and they serve tm * tn FMA. By default 8 reads serve 16 FMA. In `thread_tile_1d` 5 reads serve 4.
Look for the two copies of fragments at the head of the loop over k, and for the outer product below. This is
kernel 4 of article 003 ("choiBLAMS"), with 4x4 elements, and a step of the series of article 000 ("Warp
Tiling"), with 8x8.

Both copies to shared memory run over the tile in row-major order, and neighbouring threads copy neighbouring
elements. This order and the fragments of B are from article 000's series. In article 003 (configuration
`article_003`) a thread loads the elements of its own tile, for example four elements in a row of B. So
neighbouring threads read at a stride of four. That takes 2.5 times the sectors for both matrices together.
The article's code names no fragments of B, but nvcc keeps them in registers.

Measured on an H200 at 4096: 32.4 TFLOPS, 2.64 times the 12.3 of `thread_tile_1d`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Sequence

from tir_schedules.ladders.sgemm import thread_tile_1d
from tir_schedules.ladders.sgemm.steps import ThreadTiling, share_copy, split_into_thread_tiles, stage
from tir_schedules.model.rung import run_as_script
from tir_schedules.tir.schedule import Block, Loop, Schedule, bind, unroll
from tir_schedules.workloads.gemm import Gemm


@dataclass(frozen=True)
class Config(ThreadTiling):
    """copy_own: 1 when a thread copies elements of the rows of A and columns of B of its own thread tile, for
    which a block has bk threads each way; 0 when neighbouring threads copy neighbouring elements."""

    copy_own: int = 0


def schedule(sch: Schedule, gemm: Gemm, config: Config) -> None:
    block = sch.get_sblock("C")
    tile_a, tile_b, result = stage(sch, block, (config.bm, config.bn, config.bk))
    fragments = sch.cache_read(block, 0, "local"), sch.cache_read(block, 1, "local")
    loops = split_into_thread_tiles(sch, block, config)

    for fragment in fragments:
        sch.compute_at(fragment, loops.k_inner)
    if config.copy_own:
        copy_own_rows(sch, tile_a, loops.k_tile, config.tm)
        sch.unroll(share_copy(sch, tile_b, loops.k_tile, config.both, width=config.tn))
    else:
        for tile in (tile_a, tile_b):
            share_copy(sch, tile, loops.k_tile, config.both)
    sch.reverse_compute_at(result, loops.thread, preserve_unit_loops=True)
    unroll_thread_tile(sch, (loops.k_inner, *loops.fmas), (*fragments, result))
    sch.decompose_reduction(block, loops.k_tile)


def copy_own_rows(sch: Schedule, copy: Block, at: Loop, rows: int) -> None:
    """A tile of A is copied at a loop: by each thread one column of the `rows` rows it computes."""
    sch.compute_at(copy, at)
    row, column = sch.get_loops(copy)[-2:]
    thread, own = sch.split(row, [None, rows])
    sch.reorder(thread, column, own)
    bind(sch, (thread, column), ("threadIdx.y", "threadIdx.x"))
    sch.unroll(own)


def unroll_thread_tile(sch: Schedule, loops: Sequence[Loop], copies: Sequence[Block]) -> None:
    """Unroll the loops of a thread, and of the copies between shared memory and its registers."""
    unroll(sch, (*loops, *(loop for copy in copies for loop in sch.get_loops(copy)[-2:])))


RUNG = thread_tile_1d.RUNG.followed_by(
    "thread_tile_2d",
    "a 4x4 tile of C per thread: 8 values from shared memory serve 16 FMA",
    schedule,
    article="003, kernel 4",
    config=Config(),
    configs={
        "8x8": Config(bk=8, tm=8, tn=8),
        "article_003": Config(copy_own=1),
        "article_000": Config(bm=64, bn=64, bk=8, tm=8, tn=8),
    },
)

if __name__ == "__main__":
    run_as_script(RUNG)
