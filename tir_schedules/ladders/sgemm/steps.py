"""Schedule steps that several SGEMM rungs share."""

from __future__ import annotations

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


def launch_columns_by_rows(
    gemm: Gemm, rows: int, columns: int, threads: int, dynamic_shared: int = 0
) -> Launch:
    """Blocks of rows x columns elements of C, blockIdx.x along the columns; threads in one dimension.

    dynamic_shared: in bytes.
    """
    return Launch((ceil_div(gemm.n, columns), ceil_div(gemm.m, rows), 1), (threads, 1, 1), dynamic_shared)


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
    tile = sch.fuse(*sch.get_loops(copy)[-2:])
    loops = sch.split(tile, [None, *(extent for _, extent in threads), width])
    bind(sch, loops[1:-1], [axis for axis, _ in threads])
    return loops[-1]


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


def wrap_edges(sch: Schedule, gemm: Gemm, copies: tuple[Block, Block], tile: tuple[int, int]) -> None:
    """Beyond the last row of A, and the last column of B, copies start again at the first: see the pass
    `wrap_edge_tiles`. What they add is in elements of C that are not written.

    tile: block tile (M, N). A matrix less than half as large as its tile keeps its guards.
    """
    extents, widths = (gemm.m, gemm.n), (1, vector_width(gemm.n))
    for dimension, (copy, extent, part, width) in enumerate(zip(copies, extents, tile, widths)):
        if ceil_div(extent, part) * part <= 2 * extent:
            sch.wrap_edge_tiles(copy, dimension, width)


def shift_edges(
    sch: Schedule, gemm: Gemm, copies: tuple[Block, Block], result: Block, tile: tuple[int, int]
) -> None:
    """The last rows and columns of tiles end with C, where it is no smaller than a tile: see the pass
    `shift_edge_tiles`. What is asked of rows of C is asked before its columns.

    tile: block tile (M, N). result: the copy of C to global memory.
    """
    extents = zip((-2, -1), (gemm.m, gemm.n), tile)
    ragged = [(axis, part, extent) for axis, extent, part in extents if part < extent and extent % part]
    for three in ragged:
        sch.shift_edge_tiles(copies[three[0]], three)
    if ragged:
        sch.shift_edge_tiles(result, *ragged)
    for loop in sch.get_loops(result):
        if getattr(sch.get(loop), "thread_binding") is None:
            sch.unswitch(loop)


def part_last_tile(sch: Schedule, gemm: Gemm, k_tile: Loop, depth: int) -> None:
    """Where K is no multiple of `depth`, the guards of the last tile stand in an iteration of their own."""
    if gemm.k % depth:
        sch.peel_last(k_tile)


def hoist_guards(sch: Schedule, gemm: Gemm, edge: int) -> None:
    """Where squares of edge x edge do not cover C, each thread asks once whether its element is within."""
    if gemm.m % edge or gemm.n % edge:
        sch.hoist_guards()


def vectorize_last(sch: Schedule, block: Block, width: int) -> None:
    """The innermost loop of a block in vectors of `width`; a width of 1 leaves it as it is."""
    if width > 1:
        _, vector = sch.split(sch.get_loops(block)[-1], [None, width])
        sch.vectorize(vector)


def vector_width(row_length: int) -> int:
    """Floats per access to a matrix: 16-byte accesses need rows that are a multiple of 16 bytes long."""
    return VECTOR if row_length % VECTOR == 0 else 1
