"""Tiles of warps and the lanes in them, for `warp_tiling` and all rungs after it."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Any, Sequence

from tir_schedules.ladders.sgemm.steps import (
    THREADS_ON_X,
    VECTOR,
    launch_columns_by_rows,
    stage,
    vector_width,
    vectorize_last,
)
from tir_schedules.model.gpus import find_sm
from tir_schedules.model.launch import Launch
from tir_schedules.tir.schedule import Block, Loop, Schedule, bind, pipeline, unroll
from tir_schedules.workloads.gemm import Gemm

WARP_SIZE = 32
ORDER = ("sub_i", "sub_j", "inner_i", "inner_j")
"""The loops of a thread's FMA in the order of article 000 ("Warp Tiling"): over sub-tiles, then over the
elements of one."""

LEAST_SHARED = find_sm("sm_86").shared_limit
"""Bytes of shared memory for a block, the least from sm_80 on."""

ROW_PADDING = 4
"""Floats after each row of C in shared memory: lanes that store to two rows meet in no bank."""

COVER = "tm x tn each, must cover wm/wmiter x wn/wniter"
UNCOVERED, UNCOVERED_QUADS = f"32 lanes, {COVER}", f"32 lanes in pairs of rows and 2 columns or more, {COVER}"


@dataclass(frozen=True)
class WarpTiling:
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

    @property
    def lane_sums(self) -> int:
        """Elements of C that a lane accumulates: its FMA for each k."""
        return self.wmiter * self.wniter * self.tm * self.tn

    def covered(self, quads: bool = False) -> bool:
        """Whether the lanes of a warp cover a sub-tile. quads: and stand in pairs of rows; of those TVM takes
        no single column."""
        rows, rows_left = divmod(self.wm, self.wmiter * self.tm)
        columns, columns_left = divmod(self.wn, self.wniter * self.tn)
        whole = not rows_left and not columns_left and rows * columns == WARP_SIZE
        return whole and (not quads or rows % 2 == 0 and columns > 1)


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


def launch(gemm: Gemm, tiling: WarpTiling, dynamic_shared: int = 0) -> Launch:
    """A block for each tile of C, blockIdx.x along the columns."""
    return launch_columns_by_rows(gemm, tiling.bm, tiling.bn, tiling.threads, dynamic_shared)


def split_up(
    sch: Schedule,
    tiling: WarpTiling,
    scope: str = "shared",
    quads: bool = False,
    order: Sequence[str] = ORDER,
    staged: Staged | None = None,
    k_multiple: int = 0,
) -> Parts:
    """Tiles of blocks, warps and lanes on blockIdx and threadIdx.x; fragments in registers; A transposed in
    shared memory.

    scope: of the shared tiles. quads: neighbouring lanes in two rows instead of one, see `lane_quads`. order:
    of the loops of a thread's FMA. staged: the copies of A, B and C, where the algorithm has them already, as
    `stage` makes them. Their first loop, over parts of K, goes to blockIdx.z. k_multiple: K is padded to
    multiples of it, 0 for those of bk.

    TVM keeps a buffer's region as one box. A lane's elements of a warp tile are several boxes with gaps
    between, so the register buffers get a layout in which they are adjacent (transform_block_layout, reindex)
    before anything is placed with compute_at.
    """
    block = sch.get_sblock("C")
    tile = (tiling.bm, tiling.bn, k_multiple or tiling.bk)
    copy_a, copy_b, write_back = staged or stage(sch, block, tile, scope)
    transposed = (lambda part, i, k: (part, k, i)) if staged else (lambda i, k: (k, i))
    sch.transform_layout(copy_a, ("write", 0), transposed)

    rows = (tiling.wm, tiling.wmiter, tiling.tm)
    columns = (tiling.wn, tiling.wniter, tiling.tn)

    def divided(i: Any, j: Any, k: Any) -> tuple[Any, ...]:
        """Warp, sub-tile, lane, element of a row, then of a column."""
        return *levels(i, *rows), *levels(j, *columns), k

    of_parts = (lambda part, i, j, k: (part, *divided(i, j, k))) if staged else divided
    sch.transform_block_layout(block, of_parts)
    fragments = tuple(sch.reindex(block, ("read", operand)) for operand in (0, 1))
    result = sch.reindex(block, ("write", 0))
    for buffer in (*fragments, block):
        sch.set_scope(buffer, 0, "local")

    loops = iter(sch.get_loops(block))
    parts = [next(loops)] if staged else []
    warp_i, *sub_i, lane_i, inner_i = (next(loops) for _ in levels(0, *rows))
    warp_j, *sub_j, lane_j, inner_j = (next(loops) for _ in levels(0, *columns))
    block_i, warp_i = sch.split(warp_i, [None, tiling.bm // tiling.wm])
    block_j, warp_j = sch.split(warp_j, [None, tiling.bn // tiling.wn])
    k_tile, k_inner = sch.split(next(loops), [None, tiling.bk])
    by_name = {"sub_i": sub_i, "sub_j": sub_j, "inner_i": [inner_i], "inner_j": [inner_j]}
    fmas = tuple(loop for name in order for loop in by_name[name])
    lanes = [lane_i, lane_j]
    if quads:
        lane_i, row_of_quad = sch.split(lane_i, [None, 2])
        lanes = [lane_i, lane_j, row_of_quad]
    sch.reorder(*parts, block_i, block_j, warp_i, warp_j, *lanes, k_tile, k_inner, *fmas)
    thread = sch.fuse(warp_i, warp_j, *lanes)
    bind(sch, parts, ["blockIdx.z"])
    bind(sch, (block_i, block_j, thread), THREADS_ON_X)
    for fragment, width in zip(fragments, (tiling.tm, tiling.tn)):
        sch.compute_at(fragment, k_inner)
        vectorize_last(sch, fragment, gcd(width, VECTOR))
    return Parts(block, (copy_a, copy_b), result, write_back, block_j, thread, k_tile, k_inner, fmas)


def levels(index: Any, warp: int, iterations: int, element: int) -> tuple[Any, ...]:
    """An index along one axis of C, an int or TVM's, as (warp, sub-tile, lane, element).

    A level of extent 1 is left out, as TVM demands.
    """
    sub_tile = warp // iterations
    sub = (index % warp // sub_tile,) if iterations > 1 else ()
    return (index // warp, *sub, index % sub_tile // element, index % element)


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
    """C through shared memory: lanes store their elements there, and all threads copy rows, neighbours
    neighbouring elements. For rows that are no multiples of 16 bytes, whose elements are written one by one:
    lanes that hold four neighbours would touch eight rows with each store.
    """
    sch.set_scope(parts.result, 0, "shared.dyn")
    sch.reverse_compute_at(parts.write_back, parts.block, preserve_unit_loops=True)
    vectorize_last(sch, parts.result, gcd(tiling.tn, VECTOR))
    sch.storage_align(parts.result, 0, axis=-2, factor=2 * VECTOR, offset=ROW_PADDING)
    row, column = sch.get_loops(parts.write_back)[-2:]  # as long as the tile, or as C where it is smaller
    _, row = sch.split(row, [None, tiling.bm])
    outer, column = sch.split(column, [None, tiling.bn])
    sch.reorder(outer, row, column)
    unrolled = gcd(8, tiling.bm * tiling.bn // tiling.threads)  # loads before the first of their stores
    _, iteration, thread = sch.split(sch.fuse(row, column), [None, unrolled, tiling.threads])
    sch.bind(thread, "threadIdx.x")
    sch.unroll(iteration)


def rows_bytes(tiling: WarpTiling) -> int:
    """Of shared memory, for the tile of C of `write_in_rows`."""
    return 4 * tiling.bm * (tiling.bn + ROW_PADDING)


def writes_in_rows(gemm: Gemm, tiling: WarpTiling, beside: int) -> bool:
    """Whether C goes through shared memory: where its rows are no multiples of 16 bytes, and its tile fits
    there on every GPU from sm_80 on. beside: bytes of other tiles."""
    return gemm.n % VECTOR != 0 and rows_bytes(tiling) + beside <= LEAST_SHARED
