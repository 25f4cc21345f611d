"""A tile of C per warp.

The block tile is divided into warp tiles, wm x wn, and each of these into wmiter x wniter sub-tiles. The
fragments of all sub-tiles are read before the FMA, which run through the four loops of article 000 ("Warp
Tiling"): sub-tile row, sub-tile column, row, column. Copies and float4 accesses are those of `transposed`. In
a sub-tile the float4 of neighbouring lanes lie side by side. In `transposed` they are 32 bytes apart. So
fragments now take fewer wavefronts. The price is that a lane has only 32 elements of C, and a thread of
`transposed` 64. This costs time if matrices are large.

The article prints no values of these parameters. Configuration `article` has those of its program: the two
sub-tiles of a warp tile are one below the other. By default they are side by side, and everything else is the
same.

Measured on an H100 80GB HBM3 at 2048: 31.0 TFLOPS, 0.89 times the 35.0 of `transposed:article`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Any, Iterator

from tir_schedules.ladders.sgemm import transposed
from tir_schedules.ladders.sgemm.steps import (
    THREADS_ON_X,
    VECTOR,
    launch_columns_by_rows,
    share_vectors,
    stage,
    vector_width,
    vectorize_last,
)
from tir_schedules.model.launch import Launch
from tir_schedules.model.rung import run_as_script
from tir_schedules.tir.schedule import Block, Loop, Schedule, bind, unroll
from tir_schedules.workloads.gemm import Gemm

WARP_SIZE = 32


@dataclass(frozen=True)
class Config:
    """Block tile bm x bn, bk of its tiles along K; warp tile wm x wn in wmiter x wniter sub-tiles; in each of
    these a lane has tm x tn elements, so that (wm / wmiter) * (wn / wniter) == 32 * tm * tn."""

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

    def covered(self) -> bool:
        """Whether the lanes of a warp cover a sub-tile."""
        rows, rows_left = divmod(self.wm, self.wmiter * self.tm)
        columns, columns_left = divmod(self.wn, self.wniter * self.tn)
        return not rows_left and not columns_left and rows * columns == WARP_SIZE


def launch(gemm: Gemm, config: Config) -> Launch:
    return launch_columns_by_rows(gemm, config.bm, config.bn, config.threads)


def schedule(sch: Schedule, gemm: Gemm, config: Config) -> None:
    block = sch.get_sblock("C")
    tile_a, tile_b, write_back = stage(sch, block, (config.bm, config.bn, config.bk))
    sch.transform_layout(tile_a, ("write", 0), lambda i, k: (k, i))
    sch.transform_block_layout(block, lambda i, j, k: (*rows_of(config, i), *columns_of(config, j), k))
    fragments, result = hold_in_registers(sch, block)

    loops = split_up(sch, iter(sch.get_loops(block)), config)
    fmas = (*loops.sub_i, *loops.sub_j, loops.inner_i, loops.inner_j)
    sch.reorder(*loops.blocks, *loops.warps, *loops.lanes, loops.k_tile, loops.k_inner, *fmas)
    thread = sch.fuse(*loops.warps, *loops.lanes)
    bind(sch, (*loops.blocks, thread), THREADS_ON_X)

    read_fragments(sch, fragments, loops.k_inner, config)
    share_vectors(sch, gemm, (tile_a, tile_b), loops.k_tile, [("threadIdx.x", config.threads)])
    sch.unroll(loops.k_inner)
    sch.reverse_compute_at(result, thread, preserve_unit_loops=True)
    sch.reverse_compute_inline(write_back)  # last: compute_at forgets the guard that this adds
    vectorize_last(sch, result, gcd(config.tn, vector_width(gemm.n)))
    unroll(sch, fmas)
    sch.decompose_reduction(block, loops.k_tile)


def rows_of(config: Config, i: Any) -> tuple[Any, ...]:
    """A row of C as (warp, sub-tile, lane, element)."""
    return levels(i, config.wm, config.wmiter, config.tm)


def columns_of(config: Config, j: Any) -> tuple[Any, ...]:
    """A column of C likewise."""
    return levels(j, config.wn, config.wniter, config.tn)


def levels(index: Any, warp: int, iterations: int, element: int) -> tuple[Any, ...]:
    """An index along one axis of C, an int or TVM's, as (warp, sub-tile, lane, element).

    A level of extent 1 is left out, as TVM demands.
    """
    sub_tile = warp // iterations
    sub = (index % warp // sub_tile,) if iterations > 1 else ()
    return (index // warp, *sub, index % sub_tile // element, index % element)


def hold_in_registers(sch: Schedule, block: Block) -> tuple[tuple[Block, ...], Block]:
    """The fragments of A and B, and the result, in registers.

    TVM keeps a buffer's region as one box. A lane's elements of a warp tile are several boxes with gaps
    between. So these buffers get the layout of the block's loops (reindex), in which they are adjacent,
    before anything is placed with compute_at.
    """
    fragments = tuple(sch.reindex(block, ("read", operand)) for operand in (0, 1))
    result = sch.reindex(block, ("write", 0))
    for buffer in (*fragments, block):
        sch.set_scope(buffer, 0, "local")
    return fragments, result


@dataclass(frozen=True)
class Loops:
    """Loops of a product in warp tiles. blocks, warps, lanes: along the rows of C and along its columns.
    sub_i, sub_j: over sub-tiles, empty if there is one. inner_i, inner_j: over the elements of a lane in a
    sub-tile."""

    blocks: tuple[Loop, Loop]
    warps: tuple[Loop, Loop]
    lanes: tuple[Loop, Loop]
    sub_i: list[Loop]
    sub_j: list[Loop]
    inner_i: Loop
    inner_j: Loop
    k_tile: Loop
    k_inner: Loop


def split_up(sch: Schedule, loops: Iterator[Loop], config: Config) -> Loops:
    """The loops over warps split into those over blocks and over the warps of one, that over k into tiles.

    loops: of a block in the layout of `rows_of` and `columns_of`.
    """
    warp_i, *sub_i, lane_i, inner_i = (next(loops) for _ in rows_of(config, 0))
    warp_j, *sub_j, lane_j, inner_j = (next(loops) for _ in columns_of(config, 0))
    block_i, warp_i = sch.split(warp_i, [None, config.bm // config.wm])
    block_j, warp_j = sch.split(warp_j, [None, config.bn // config.wn])
    k_tile, k_inner = sch.split(next(loops), [None, config.bk])
    blocks, warps, lanes = (block_i, block_j), (warp_i, warp_j), (lane_i, lane_j)
    return Loops(blocks, warps, lanes, sub_i, sub_j, inner_i, inner_j, k_tile, k_inner)


def read_fragments(sch: Schedule, fragments: tuple[Block, ...], k_inner: Loop, config: Config) -> None:
    """Fragments read from shared memory for each k, in float4 where a lane has four neighbours."""
    for fragment, width in zip(fragments, (config.tm, config.tn)):
        sch.compute_at(fragment, k_inner)
        vectorize_last(sch, fragment, gcd(width, VECTOR))


RUNG = transposed.RUNG.followed_by(
    "warp_tiling",
    "a tile of C per warp, in sub-tiles, between the tile of the block and those of the threads",
    schedule,
    article="000",
    config=Config(),
    configs={
        "article": Config(wmiter=2, wniter=1),
        "128x128": Config(bm=128, bn=128, bk=16, wm=64, wn=64, wmiter=1, wniter=4, tm=8, tn=4),
        "128x128x8": Config(bm=128, bn=128, bk=8, wm=32, wn=64, wmiter=2, wniter=2, tm=4, tn=4),
    },
    launch=launch,
)

if __name__ == "__main__":
    run_as_script(RUNG)
