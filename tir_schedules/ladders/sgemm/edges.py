"""Ragged shapes from `pipelined` on: edge tiles wrap around or are shifted inwards to end with C, and the
last K tile is peeled off the loop."""

from __future__ import annotations

from tir_schedules.ladders.sgemm.steps import vector_width
from tir_schedules.model.launch import ceil_div
from tir_schedules.tir.schedule import Block, Loop, Schedule
from tir_schedules.workloads.gemm import Gemm


def wrap_edges(
    sch: Schedule, gemm: Gemm, copies: tuple[Block, Block], tile: tuple[int, int], width: int = 0
) -> None:
    """Beyond the last row of A, and the last column of B, copies start again at the first: see the pass
    `wrap_edge_tiles`. What they add is in elements of C that are not written.

    tile: block tile (M, N). width: columns of B that are copied at a time; 0: four where rows allow it, else
    one. Columns of a B that is stored N x K are rows. A matrix less than half as large as its tile keeps its
    guards.
    """
    of_columns = (0, 1) if gemm.transposed else (1, width or vector_width(gemm.n))
    places = (0, 1), of_columns
    for (dimension, width), copy, extent, part in zip(places, copies, (gemm.m, gemm.n), tile):
        if ceil_div(extent, part) * part <= 2 * extent:
            sch.wrap_edge_tiles(copy, dimension, width)


def shift_edges(
    sch: Schedule, gemm: Gemm, copies: tuple[Block, Block], result: Block, tile: tuple[int, int]
) -> None:
    """The last rows and columns of tiles end with C, if it is at least as large as a tile: see the pass
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
    """Where K is not a multiple of `depth`, the guards of the last tile stand in an iteration of their
    own."""
    if gemm.k % depth:
        sch.peel_last(k_tile)
