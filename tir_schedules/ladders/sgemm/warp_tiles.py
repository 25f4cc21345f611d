"""Steps after `warp_tiling`: lanes in quads, double-buffered fragments, C through shared memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gcd, prod
from typing import Any, Sequence

from tir_schedules.ladders.sgemm import warp_tiling
from tir_schedules.ladders.sgemm.steps import THREADS_ON_X, VECTOR, stage, vector_width, vectorize_last
from tir_schedules.ladders.sgemm.warp_tiling import (
    WARP_SIZE,
    columns_of,
    hold_in_registers,
    read_fragments,
    rows_of,
)
from tir_schedules.model.gpus import find_sm
from tir_schedules.model.launch import Launch
from tir_schedules.tir.schedule import Block, Loop, Schedule, bind, pipeline, unroll
from tir_schedules.workloads.gemm import Gemm

ORDER = ("sub_i", "sub_j", "inner_i", "inner_j")
"""The loops of a thread's FMA in the order of `warp_tiling`."""

LEAST_SHARED = find_sm("sm_86").shared_limit
"""Bytes of shared memory for a block, the least from sm_80 on."""

LINE, ROTATED, LOW = 32, 64, 40
"""Floats of a line of memory, which a warp stores at once; and columns and rows of a tile above which its
rows are rotated. On an H200 that makes tiles with 96 or more columns up to 12 % faster, and those with 64 2
to 8 % slower. In a tile of 40 rows it costs registers: nine shapes of 40x128 are predicted 13 % slower, at
worst 53, because an SM has fewer blocks, or FMA wait for loads of the next tile."""

ROW_PADDING = 4
"""Floats after each row of C in shared memory: lanes that store to two rows meet in no bank."""

COVER = "tm x tn each, must cover wm/wmiter x wn/wniter"
UNCOVERED, UNCOVERED_QUADS = f"32 lanes, {COVER}", f"32 lanes in pairs of rows and 2 columns or more, {COVER}"


@dataclass(frozen=True)
class WarpTiling(warp_tiling.Config):
    """As that of `warp_tiling`."""

    @property
    def lane_sums(self) -> int:
        """Elements of C that a lane accumulates: its FMA for each k."""
        return self.wmiter * self.wniter * self.tm * self.tn

    def covered_by_quads(self) -> bool:
        """Whether they also stand in pairs of rows; of those TVM takes no single column."""
        rows, columns = self.wm // (self.wmiter * self.tm), self.wn // (self.wniter * self.tn)
        return self.covered() and rows % 2 == 0 and columns > 1


Staged = tuple[Block, Block, Block]
"""The copies of A, B and C that an algorithm has already."""


@dataclass(frozen=True)
class Parts:
    """Blocks and loops of a tiled GEMM.

    compute: the block of the FMA. copies: of A and B to shared memory, not yet placed. result: the copy of C
    from registers. write_back: the copy of C to global memory. block: the loop on blockIdx.x. thread: that on
    threadIdx.x. fmas: the loops within k_inner.
    """

    compute: Block
    copies: tuple[Block, Block]
    result: Block
    write_back: Block
    block: Loop
    thread: Loop
    k_tile: Loop
    k_inner: Loop
    fmas: tuple[Loop, ...]


def launch(gemm: Gemm, tiling: WarpTiling, dynamic_shared: int) -> Launch:
    """The launch of `warp_tiling`, with so many bytes of dynamic shared memory."""
    return replace(warp_tiling.launch(gemm, tiling), dynamic_shared=dynamic_shared)


def split_up(
    sch: Schedule,
    tiling: WarpTiling,
    scope: str = "shared",
    order: Sequence[str] = ORDER,
    staged: Staged | None = None,
    k_multiple: int = 0,
) -> Parts:
    """The tiles of `warp_tiling` with lanes in quads, see `lane_quads`.

    scope: of the shared tiles. order: of the loops of a thread's FMA. staged: the copies of A, B and C, where
    the algorithm has them already, as `stage` makes them. Their first loop, over parts of K, goes to
    blockIdx.z. k_multiple: K is padded to multiples of it, 0 for those of bk.
    """
    block = sch.get_sblock("C")
    tile = (tiling.bm, tiling.bn, k_multiple or tiling.bk)
    copy_a, copy_b, write_back = staged or stage(sch, block, tile, scope)
    transposed = (lambda part, i, k: (part, k, i)) if staged else (lambda i, k: (k, i))
    sch.transform_layout(copy_a, ("write", 0), transposed)

    def divided(i: Any, j: Any, k: Any) -> tuple[Any, ...]:
        return *rows_of(tiling, i), *columns_of(tiling, j), k

    of_parts = (lambda part, i, j, k: (part, *divided(i, j, k))) if staged else divided
    sch.transform_block_layout(block, of_parts)
    fragments, result = hold_in_registers(sch, block)

    of_block = iter(sch.get_loops(block))
    parts = [next(of_block)] if staged else []
    loops = warp_tiling.split_up(sch, of_block, tiling)
    by_name = {
        "sub_i": loops.sub_i,
        "sub_j": loops.sub_j,
        "inner_i": [loops.inner_i],
        "inner_j": [loops.inner_j],
    }
    fmas = tuple(loop for name in order for loop in by_name[name])
    lane_i, row_of_quad = sch.split(loops.lanes[0], [None, 2])
    threads = (*loops.warps, lane_i, loops.lanes[1], row_of_quad)
    sch.reorder(*parts, *loops.blocks, *threads, loops.k_tile, loops.k_inner, *fmas)
    thread = sch.fuse(*threads)
    bind(sch, parts, ["blockIdx.z"])
    bind(sch, (*loops.blocks, thread), THREADS_ON_X)
    read_fragments(sch, fragments, loops.k_inner, tiling)
    copies, block_j = (copy_a, copy_b), loops.blocks[1]
    return Parts(block, copies, result, write_back, block_j, thread, loops.k_tile, loops.k_inner, fmas)


def pad_rows(sch: Schedule, tiling: WarpTiling, parts: Parts, padding: int) -> None:
    """Rows of the transposed tile of A `padding` floats longer, less than 32."""
    offset = (tiling.bm + padding) % WARP_SIZE
    sch.storage_align(parts.copies[0], 0, axis=-2, factor=WARP_SIZE, offset=offset)


def double_buffer_fragments(sch: Schedule, parts: Parts, tiling: WarpTiling, unrolled: int = 0) -> None:
    """Fragments of the next k are read while those of this one are multiplied.

    In the loop over tiles this makes three statements of one: first fragments, FMA of all k but the last,
    those of the last. unrolled: for how many k there is code of their own; by default for all.
    """
    sch.annotate(parts.k_inner, "pragma_unroll", unrolled or tiling.bk)
    read_a, read_b, compute = 0, 0, 1
    pipeline(sch, parts.k_inner, stage=[read_a, read_b, compute], order=[0, 1, 2])


def finish(
    sch: Schedule, gemm: Gemm, parts: Parts, tiling: WarpTiling, in_rows: bool = False, pitch: int = 0
) -> None:
    """C copied to global memory; a thread's loops unrolled, its accumulators zero before the first tile.

    in_rows: tiles of C go through shared memory, see `write_in_rows`; else each lane writes its own elements.
    pitch: elements of a row of C that is written, 0 for its columns.
    """
    sch.reverse_compute_at(parts.result, parts.thread, preserve_unit_loops=True)
    if in_rows:
        write_in_rows(sch, parts, tiling)
    else:
        sch.reverse_compute_inline(parts.write_back)  # last: compute_at forgets the guard that this adds
        vectorize_last(sch, parts.result, gcd(tiling.tn, vector_width(pitch or gemm.n)))
    unroll(sch, parts.fmas)
    sch.decompose_reduction(parts.compute, parts.k_tile)


def write_in_rows(sch: Schedule, parts: Parts, tiling: WarpTiling) -> None:
    """C through shared memory: lanes store their elements there, and all threads copy rows from there. A
    store from registers touches eight rows, because a lane holds four neighbours of a row. Rows of large
    tiles are rotated, see the pass `rotate_rows`.
    """
    sch.set_scope(parts.result, 0, "shared.dyn")
    vectorize_last(sch, parts.result, gcd(tiling.tn, VECTOR))
    sch.storage_align(parts.result, 0, axis=-2, factor=2 * VECTOR, offset=ROW_PADDING)
    copy_in_rows(
        sch, parts.write_back, parts.block, (tiling.bm, tiling.bn), [("threadIdx.x", tiling.threads)]
    )
    if tiling.bm > LOW and tiling.bn > ROTATED and tiling.bn % LINE == 0:
        sch.rotate_rows(parts.write_back, tiling.bn, LINE)


def copy_in_rows(
    sch: Schedule, copy: Block, at: Loop, tile: tuple[int, int], threads: Sequence[tuple[str, int]]
) -> None:
    """All threads of a block copy its tile of C from shared memory at loop `at`, float by float.
    Neighbouring threads copy neighbours of a row.

    threads: thread axes and their extents, slowest first.
    """
    height, width = tile
    sch.reverse_compute_at(copy, at, preserve_unit_loops=True)
    row, column = sch.get_loops(copy)[-2:]  # as long as the tile, or as C where it is smaller
    _, row = sch.split(row, [None, height])
    outer, column = sch.split(column, [None, width])
    sch.reorder(outer, row, column)
    extents = [extent for _, extent in threads]
    unrolled = gcd(8, height * width // prod(extents))  # loads before the first of their stores
    _, iteration, *bound = sch.split(sch.fuse(row, column), [None, unrolled, *extents])
    bind(sch, bound, [axis for axis, _ in threads])
    sch.unroll(iteration)


def rows_bytes(tiling: WarpTiling) -> int:
    """Bytes of shared memory for the tile of C of `write_in_rows`."""
    return 4 * tiling.bm * (tiling.bn + ROW_PADDING)


def writes_in_rows(gemm: Gemm, tiling: WarpTiling, beside: int, always: bool = False) -> bool:
    """Whether C goes through shared memory: where its rows are not multiples of 16 bytes, or `always`, and
    its tile fits there on every GPU from sm_80 on. beside: bytes of other tiles."""
    asked = always or gemm.n % VECTOR != 0
    return asked and rows_bytes(tiling) + beside <= LEAST_SHARED
