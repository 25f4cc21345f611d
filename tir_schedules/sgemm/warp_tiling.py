"""A tile of C per warp.

Between the block tile and the thread tiles stands the warp tile, wm x wn, computed in wmiter x wniter sub-tiles. The
fragments of all sub-tiles are read before the products, which run through article 000's four loops: sub-tile row, sub-tile
column, row, column. Copies and float4 accesses are those of `vectorized`.

TVM keeps a buffer's region as one box. A lane's elements of a warp tile are several boxes with gaps between, so the register
buffers get a layout in which they are adjacent (transform_block_layout, reindex) before anything is placed with compute_at.
"""
from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.rung import Launch, Rung
from tir_schedules.sgemm import vectorized
from tir_schedules.sgemm.steps import bind, launch_columns_by_rows, stage, vector_width, vectorize_last
from tir_schedules.workloads.gemm import Gemm

WARP_SIZE = 32


@dataclass(frozen=True)
class Config:
    """Block tile bm x bn, bk of its tiles along K; warp tile wm x wn in wmiter x wniter sub-tiles; in each of these a lane
    has tm x tn elements, so that (wm / wmiter) * (wn / wniter) == 32 * tm * tn."""

    bm: int = 64
    bn: int = 64
    bk: int = 8
    wm: int = 32
    wn: int = 32
    wmiter: int = 1
    wniter: int = 2
    tm: int = 4
    tn: int = 4

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return (self.bm // self.wm) * (self.bn // self.wn) * WARP_SIZE


def launch(gemm: Gemm, config: Config) -> Launch:
    return launch_columns_by_rows(gemm, config.bm, config.bn, config.threads)


def schedule(sch, gemm: Gemm, config: Config) -> None:
    block = sch.get_sblock("C")
    tile_a, tile_b, write_back = stage(sch, block, (config.bm, config.bn, config.bk))
    sch.transform_layout(tile_a, ("write", 0), lambda i, k: (k, i))

    def place(i, j, k):
        """Warp, sub-tile, lane, element of a row, then of a column."""
        return (*levels(i, config.wm, config.wmiter, config.tm), *levels(j, config.wn, config.wniter, config.tn), k)

    sch.transform_block_layout(block, place)
    fragment_a = sch.reindex(block, ("read", 0))
    fragment_b = sch.reindex(block, ("read", 1))
    result = sch.reindex(block, ("write", 0))
    for fragment in (fragment_a, fragment_b):
        sch.set_scope(fragment, 0, "local")
    sch.set_scope(block, 0, "local")

    loops = iter(sch.get_loops(block))
    warp_i, *sub_i, lane_i, inner_i = (next(loops) for _ in levels(0, config.wm, config.wmiter, config.tm))
    warp_j, *sub_j, lane_j, inner_j = (next(loops) for _ in levels(0, config.wn, config.wniter, config.tn))
    block_i, warp_i = sch.split(warp_i, [None, config.bm // config.wm])
    block_j, warp_j = sch.split(warp_j, [None, config.bn // config.wn])
    k_tile, k_inner = sch.split(next(loops), [None, config.bk])
    sch.reorder(block_i, block_j, warp_i, warp_j, lane_i, lane_j, k_tile, k_inner, *sub_i, *sub_j, inner_i, inner_j)
    thread = sch.fuse(warp_i, warp_j, lane_i, lane_j)
    bind(sch, (block_i, block_j, thread), vectorized.THREADS_ON_X)

    for fragment in (fragment_a, fragment_b):
        sch.compute_at(fragment, k_inner)
        vectorize_last(sch, fragment, 4)
    vectorized.share_vectors(sch, gemm, (tile_a, tile_b), k_tile, config.threads)
    sch.reverse_compute_at(result, thread, preserve_unit_loops=True)
    sch.reverse_compute_inline(write_back)  # last: compute_at forgets the guard that this adds
    vectorize_last(sch, result, vector_width(gemm.n))
    for loop in (k_inner, *sub_i, *sub_j, inner_i, inner_j):
        sch.unroll(loop)
    sch.decompose_reduction(block, k_tile)


def levels(index, warp: int, iterations: int, element: int) -> tuple:
    """An index along one axis of C as (warp, sub-tile, lane, element); a level of extent 1 is left out, as TVM demands."""
    sub_tile = warp // iterations
    sub = (index % warp // sub_tile,) if iterations > 1 else ()
    return (index // warp, *sub, index % sub_tile // element, index % element)


RUNG = Rung(
    family="sgemm",
    name="warp_tiling",
    summary="a tile of C per warp, in sub-tiles, between the tile of the block and those of the threads",
    article="000",
    config=Config(),
    configs={
        "128x128": Config(bm=128, bn=128, bk=16, wm=64, wn=64, wmiter=1, wniter=4, tm=8, tn=4),
        "128x128x8": Config(bm=128, bn=128, bk=8, wm=32, wn=64, wmiter=2, wniter=2, tm=4, tn=4),
    },
    shapes=vectorized.RUNG.shapes,
    schedule=schedule,
    launch=launch,
)

if __name__ == "__main__":
    from tir_schedules.cli import script

    script(RUNG)
