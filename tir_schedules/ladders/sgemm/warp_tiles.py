"""Tiles of warps and the lanes in them, for `warp_tiling` and all rungs after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Sequence

from tir_schedules.ladders.sgemm import vectorized
from tir_schedules.ladders.sgemm.steps import (
    bind,
    launch_columns_by_rows,
    stage,
    vector_width,
    vectorize_last,
)
from tir_schedules.model.launch import Launch
from tir_schedules.tir.pipelining import pipeline
from tir_schedules.workloads.gemm import Gemm

WARP_SIZE = 32
ORDER = ("sub_i", "sub_j", "inner_i", "inner_j")
"""The loops of a thread's products: row and column of sub-tiles, row and column of elements in one, article
000's order."""


@dataclass(frozen=True)
class Tile:
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


@dataclass(frozen=True)
class Parts:
    """Blocks and loops of a scheduled product.

    copies: of A and B to shared memory, not yet placed. fragments: their copies to registers. result: the
    copy of C from registers,
    write_back: what pad_einsum leaves of C. thread: the loop on threadIdx.x; products: the loops within
    k_inner.
    """

    product: Any
    copies: tuple[Any, Any]
    fragments: tuple[Any, Any]
    result: Any
    write_back: Any
    thread: Any
    k_tile: Any
    k_inner: Any
    products: tuple[Any, ...]


def launch(gemm: Gemm, tile: Tile, dynamic_shared: int = 0) -> Launch:
    """A block for each tile of C, blockIdx.x along the columns."""
    return launch_columns_by_rows(gemm, tile.bm, tile.bn, tile.threads, dynamic_shared)


def split_up(
    sch: Any, tile: Tile, scope: str = "shared", quads: bool = False, order: Sequence[str] = ORDER
) -> Parts:
    """Tiles of blocks, warps and lanes bound to blockIdx and threadIdx.x, fragments in registers, A
    transposed in shared memory.

    scope: of the shared tiles. quads: neighbouring lanes in two rows instead of one, see `lane_quads`. order:
    of the products' loops.

    TVM keeps a buffer's region as one box. A lane's elements of a warp tile are several boxes with gaps
    between, so the register buffers get a layout in which they are adjacent (transform_block_layout, reindex)
    before anything is placed with compute_at.
    """
    block = sch.get_sblock("C")
    *copies, write_back = stage(sch, block, (tile.bm, tile.bn, tile.bk), scope)
    sch.transform_layout(copies[0], ("write", 0), lambda i, k: (k, i))

    def place(i, j, k):
        """Warp, sub-tile, lane, element of a row, then of a column."""
        return (*levels(i, tile.wm, tile.wmiter, tile.tm), *levels(j, tile.wn, tile.wniter, tile.tn), k)

    sch.transform_block_layout(block, place)
    fragments = tuple(sch.reindex(block, ("read", operand)) for operand in (0, 1))
    result = sch.reindex(block, ("write", 0))
    for buffer in (*fragments, block):
        sch.set_scope(buffer, 0, "local")

    loops = iter(sch.get_loops(block))
    warp_i, *sub_i, lane_i, inner_i = (next(loops) for _ in levels(0, tile.wm, tile.wmiter, tile.tm))
    warp_j, *sub_j, lane_j, inner_j = (next(loops) for _ in levels(0, tile.wn, tile.wniter, tile.tn))
    block_i, warp_i = sch.split(warp_i, [None, tile.bm // tile.wm])
    block_j, warp_j = sch.split(warp_j, [None, tile.bn // tile.wn])
    k_tile, k_inner = sch.split(next(loops), [None, tile.bk])
    by_name = {"sub_i": sub_i, "sub_j": sub_j, "inner_i": [inner_i], "inner_j": [inner_j]}
    products = tuple(loop for name in order for loop in by_name[name])
    lanes = [lane_i, lane_j]
    if quads:
        lane_i, row_of_quad = sch.split(lane_i, [None, 2])
        lanes = [lane_i, lane_j, row_of_quad]
    sch.reorder(block_i, block_j, warp_i, warp_j, *lanes, k_tile, k_inner, *products)
    thread = sch.fuse(warp_i, warp_j, *lanes)
    bind(sch, (block_i, block_j, thread), vectorized.THREADS_ON_X)
    for fragment, width in zip(fragments, (tile.tm, tile.tn)):
        sch.compute_at(fragment, k_inner)
        vectorize_last(sch, fragment, min(width, 4))
    return Parts(block, tuple(copies), fragments, result, write_back, thread, k_tile, k_inner, products)


def levels(index, warp: int, iterations: int, element: int) -> tuple:
    """An index along one axis of C as (warp, sub-tile, lane, element); a level of extent 1 is left out, as
    TVM demands."""
    sub_tile = warp // iterations
    sub = (index % warp // sub_tile,) if iterations > 1 else ()
    return (index // warp, *sub, index % sub_tile // element, index % element)


def pad_rows(sch: Any, parts: Parts, skew: int) -> None:
    """Rows of the transposed tile of A `skew` floats longer."""
    sch.storage_align(parts.copies[0], 0, axis=-2, factor=WARP_SIZE, offset=skew)


def double_buffer_fragments(sch: Any, parts: Parts, tile: Tile) -> None:
    """Fragments of the next k are read while those of this one are multiplied.

    In the loop over tiles this makes three statements of one: first fragments, products of all k but the
    last, those of the last.
    """
    sch.annotate(parts.k_inner, "pragma_unroll", tile.bk)
    read_a, read_b, products = 0, 0, 1
    pipeline(sch, parts.k_inner, stage=[read_a, read_b, products], order=[0, 1, 2])


def finish(sch: Any, gemm: Gemm, parts: Parts) -> None:
    """The copy of C to global memory, the loops of a thread unrolled, its sums zero before the first tile."""
    sch.reverse_compute_at(parts.result, parts.thread, preserve_unit_loops=True)
    sch.reverse_compute_inline(parts.write_back)  # last: compute_at forgets the guard that this adds
    vectorize_last(sch, parts.result, vector_width(gemm.n))
    for loop in parts.products:
        sch.unroll(loop)
    sch.decompose_reduction(parts.product, parts.k_tile)
