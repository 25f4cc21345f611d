"""float4 accesses, with A transposed in shared memory.

Global reads of A and B, shared reads of both fragments and writes of C move 16 bytes at a time. A thread's
fragment of A is a column of the tile; stored transposed it becomes a row, which float4 can read. Look for the
float4 read of A whose four components go to four rows of the shared tile: article 003, kernel 5, with the
transposed A of article 000's series.
"""

from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.ladders.sgemm.steps import (
    launch_columns_by_rows,
    share_copy,
    stage,
    vector_width,
    vectorize_last,
)
from tir_schedules.model.launch import Launch
from tir_schedules.model.rung import Rung, run_as_script
from tir_schedules.tir.schedule import Block, Loop, Schedule, bind, unroll
from tir_schedules.workloads.gemm import Gemm

THREADS_ON_X = ("blockIdx.y", "blockIdx.x", "threadIdx.x")


@dataclass(frozen=True)
class Config:
    """Block tile bm x bn, bk of its tiles along K; thread tile tm x tn."""

    bm: int = 128
    bn: int = 128
    bk: int = 8
    tm: int = 8
    tn: int = 8

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return (self.bm // self.tm) * (self.bn // self.tn)


def launch(gemm: Gemm, config: Config) -> Launch:
    return launch_columns_by_rows(gemm, config.bm, config.bn, config.threads)


def schedule(sch: Schedule, gemm: Gemm, config: Config) -> None:
    block = sch.get_sblock("C")
    tile_a, tile_b, result = stage(sch, block, (config.bm, config.bn, config.bk))
    sch.transform_layout(tile_a, ("write", 0), lambda i, k: (k, i))
    fragment_a = sch.cache_read(block, 0, "local")
    fragment_b = sch.cache_read(block, 1, "local")

    i, j, k = sch.get_loops(block)
    block_i, thread_i, inner_i = sch.split(i, [None, config.bm // config.tm, config.tm])
    block_j, thread_j, inner_j = sch.split(j, [None, config.bn // config.tn, config.tn])
    k_tile, k_inner = sch.split(k, [None, config.bk])
    sch.reorder(block_i, block_j, thread_i, thread_j, k_tile, k_inner, inner_i, inner_j)
    sch.reverse_compute_at(result, thread_j, preserve_unit_loops=True)  # before thread_i and thread_j are one
    thread = sch.fuse(thread_i, thread_j)
    bind(sch, (block_i, block_j, thread), THREADS_ON_X)

    for fragment in (fragment_a, fragment_b):
        sch.compute_at(fragment, k_inner)
        vectorize_last(sch, fragment, 4)
    share_vectors(sch, gemm, (tile_a, tile_b), k_tile, config.threads)
    vectorize_last(sch, result, vector_width(gemm.n))
    unroll(sch, (k_inner, inner_i, inner_j))
    sch.decompose_reduction(block, k_tile)


def share_vectors(sch: Schedule, gemm: Gemm, copies: tuple[Block, Block], k_tile: Loop, threads: int) -> None:
    """The copies of A and B to shared memory, four elements at a time where rows are aligned."""
    for copy, row_length in zip(copies, (gemm.k, gemm.n)):
        share_rows(sch, copy, k_tile, threads, vector_width(row_length))


def share_rows(sch: Schedule, copy: Block, k_tile: Loop, threads: int, width: int) -> None:
    """The copy of one matrix to shared memory, `width` neighbouring elements of a row at a time."""
    vector = share_copy(sch, copy, k_tile, [("threadIdx.x", threads)], width)
    if width > 1:
        sch.vectorize(vector)


RUNG = Rung(
    family="sgemm",
    name="vectorized",
    summary="float4 reads and writes; A transposed in shared memory so that its fragments are rows, too",
    article="003, kernel 5; 000",
    config=Config(),
    configs={"32x32": Config(bk=32, tm=4, tn=4)},
    shapes="any; float4 for A where K % 4 == 0, for B and C where N % 4 == 0, else one element at a time",
    schedule=schedule,
    launch=launch,
)

if __name__ == "__main__":
    run_as_script(RUNG)
