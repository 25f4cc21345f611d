"""Schedule steps that several SGEMM rungs share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Sequence

from tir_schedules.model.launch import Launch, ceil_div
from tir_schedules.tir.schedule import Block, Loop, Schedule, bind, stage_operands
from tir_schedules.workloads.gemm import Gemm

VECTOR = 4  # floats in 16 bytes, the widest access

FLOAT4_SHAPES = "any; float4 for A where K % 4 == 0, for B and C where N % 4 == 0, else one element at a time"
"""What rungs with float4 accesses say of shapes."""

COLUMNS_ON_X = ("blockIdx.x", "blockIdx.y", "threadIdx.y", "threadIdx.x")
"""Axes of block row, block column, row and column, where threads are in two dimensions."""

THREADS_ON_X = ("blockIdx.y", "blockIdx.x", "threadIdx.x")
"""Axes of block row, block column and thread, where threads are in one dimension."""


def launch_rows_by_columns(gemm: Gemm, rows: int, columns: int, threads: tuple[int, int]) -> Launch:
    """Blocks of rows x columns elements of C, blockIdx.x along the rows; threads: block size (x, y)."""
    return Launch((ceil_div(gemm.m, rows), ceil_div(gemm.n, columns), 1), (*threads, 1))


def launch_columns_by_rows(gemm: Gemm, rows: int, columns: int, threads: int) -> Launch:
    """Blocks of rows x columns elements of C, blockIdx.x along the columns; threads in one dimension."""
    return Launch((ceil_div(gemm.n, columns), ceil_div(gemm.m, rows), 1), (threads, 1, 1))


@dataclass(frozen=True)
class Squares:
    """ts: edge of the square of C that a block computes, one thread per element; where A and B are in shared
    memory, of their tiles, too."""

    ts: int = 32


def launch_squares(gemm: Gemm, squares: Squares) -> Launch:
    """A block for each square, blockIdx.x along the rows; threads in two dimensions."""
    return launch_rows_by_columns(gemm, squares.ts, squares.ts, (squares.ts, squares.ts))


def one_element_per_thread(sch: Schedule, ts: int, axes: tuple[str, ...]) -> Loop:
    """Squares of ts x ts elements over blocks, elements over threads; returns the loop over k.

    axes: of block row, block column, row, column.
    """
    block = sch.get_sblock("C")
    result = sch.cache_write(block, 0, "local")
    i, j, k = sch.get_loops(block)
    block_i, thread_i = sch.split(i, [None, ts])
    block_j, thread_j = sch.split(j, [None, ts])
    sch.reorder(block_i, block_j, thread_i, thread_j, k)
    bind(sch, (block_i, block_j, thread_i, thread_j), axes)
    sch.reverse_compute_at(result, thread_j, preserve_unit_loops=True)
    sch.decompose_reduction(block, k)
    return k


def hoist_guards(sch: Schedule, gemm: Gemm, edge: int) -> None:
    """Where squares of edge x edge do not cover C, each thread asks once whether its element is within."""
    if gemm.m % edge or gemm.n % edge:
        sch.hoist_guards()


def stage(
    sch: Schedule, block: Block, tile: tuple[int, int, int], scope: str = "shared"
) -> tuple[Block, Block, Block]:
    """Copy A and B to shared memory, and C from registers, in blocks of their own: returns the three blocks.

    tile: block tile (M, N, K). scope: "shared", or "shared.dyn" for dynamic shared memory. Ragged shapes are
    padded, see `stage_operands`.
    """
    copy_a, copy_b = stage_operands(sch, block, tile, scope)
    consumers = sch.get_consumers(block)
    if consumers:
        sch.set_scope(block, 0, "local")
    return copy_a, copy_b, consumers[0] if consumers else sch.cache_write(block, 0, "local")


def share_copy(
    sch: Schedule, copy: Block, at: Loop, threads: Sequence[tuple[str, int]], width: int = 1
) -> Loop:
    """All threads of a block copy a tile together at loop `at`; returns the loop over the `width`.

    Each copies `width` neighbouring elements at a time, neighbouring threads neighbouring ones. threads:
    thread axes and their extents, slowest first.
    """
    sch.compute_at(copy, at)
    row, column = sch.get_loops(copy)[-2:]
    extents, elements = [extent for _, extent in threads], int(getattr(sch.get(column), "extent"))
    if width == 1 or elements & (elements - 1) == 0:
        *loops, vector = sch.split(sch.fuse(row, column), [None, *extents, width])
    else:  # TVM vectorizes no access whose row is divided out of the loop over the width: (4 i + v) // 96
        column, vector = sch.split(column, [None, width])
        loops = sch.split(sch.fuse(row, column), [None, *extents])
    bind(sch, loops[1:], [axis for axis, _ in threads])
    return vector


def share_rows(sch: Schedule, copy: Block, at: Loop, threads: Sequence[tuple[str, int]], width: int) -> None:
    """`share_copy` with one access for the `width` elements, which are neighbours in a row."""
    vector = share_copy(sch, copy, at, threads, width)
    if width > 1:
        sch.vectorize(vector)


def share_vectors(
    sch: Schedule, gemm: Gemm, copies: tuple[Block, Block], at: Loop, threads: Sequence[tuple[str, int]]
) -> None:
    """The copies of A and B to shared memory, four elements at a time where rows are aligned."""
    for copy, row_length in zip(copies, (gemm.k, gemm.n)):
        share_rows(sch, copy, at, threads, vector_width(row_length))


def vectorize_last(sch: Schedule, block: Block, width: int) -> None:
    """The innermost loop of a block in vectors of `width`; a width of 1 leaves it as it is."""
    if width > 1:
        _, vector = sch.split(sch.get_loops(block)[-1], [None, width])
        sch.vectorize(vector)


def vector_width(row_length: int) -> int:
    """Floats per access to a matrix: 16-byte accesses need rows that are a multiple of 16 bytes long."""
    return VECTOR if row_length % VECTOR == 0 else 1


@dataclass(frozen=True)
class ThreadTiling:
    """Block tile bm x bn, bk of its tiles along K; thread tile tm x tn."""

    bm: int = 128
    bn: int = 128
    bk: int = 32
    tm: int = 4
    tn: int = 4

    @property
    def threads_y(self) -> int:
        """Threads of a block along the rows of C."""
        return self.bm // self.tm

    @property
    def threads_x(self) -> int:
        """Threads of a block along the columns of C."""
        return self.bn // self.tn

    @property
    def both(self) -> list[tuple[str, int]]:
        """Thread axes and their extents, slowest first."""
        return [("threadIdx.y", self.threads_y), ("threadIdx.x", self.threads_x)]


def launch_thread_tiles(gemm: Gemm, tiling: ThreadTiling) -> Launch:
    """A block for each tile of C, blockIdx.x along the rows; threads in two dimensions."""
    return launch_rows_by_columns(gemm, tiling.bm, tiling.bn, (tiling.threads_x, tiling.threads_y))


@dataclass(frozen=True)
class Loops:
    """Loops of a tiled GEMM. thread: the innermost that is bound. fmas: those of a thread's FMA within
    k_inner."""

    thread: Loop
    k_tile: Loop
    k_inner: Loop
    fmas: tuple[Loop, Loop]


def split_into_thread_tiles(sch: Schedule, block: Block, tiling: ThreadTiling) -> Loops:
    """Tiles of blocks and threads on blockIdx and threadIdx, threadIdx.x along the columns."""
    i, j, k = sch.get_loops(block)
    block_i, thread_i, inner_i = sch.split(i, [None, tiling.threads_y, tiling.tm])
    block_j, thread_j, inner_j = sch.split(j, [None, tiling.threads_x, tiling.tn])
    k_tile, k_inner = sch.split(k, [None, tiling.bk])
    sch.reorder(block_i, block_j, thread_i, thread_j, k_tile, k_inner, inner_i, inner_j)
    bind(sch, (block_i, block_j, thread_i, thread_j), COLUMNS_ON_X)
    return Loops(thread_j, k_tile, k_inner, (inner_i, inner_j))
