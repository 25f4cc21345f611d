"""Schedule steps of the warp-specialized HGEMM rungs, and what these rungs have in common."""

from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.ladders.hgemm import hopper
from tir_schedules.ladders.hgemm.hopper import SIZES, Ring, Tiles, Tiling
from tir_schedules.model.launch import Launch, TensorMap, ceil_div
from tir_schedules.tir.schedule import Schedule, unroll
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.half_gemm import HalfGemm

HEIGHTS = (64, 48, 32, 56, 40, 24, 16)
"""Rows of a box of C where A and B are swapped, those first that are to be taken first: stmatrix stores 16 at
once."""


@dataclass(frozen=True)
class Persistent(Ring):
    """As Ring. programs: most blocks of the grid. group: rows of tiles in a stripe."""

    programs: int = hopper.WAVE
    group: int = 16


@dataclass(frozen=True)
class Stored(Persistent):
    """As Persistent. boxes: of C, 64 rows of 128 bytes, for which a warpgroup has shared memory; a tile's
    take turns."""

    boxes: int = 4


def reason_against_specialization(gemm: HalfGemm, config: Ring) -> str:
    """Why a configuration cannot be, or empty. One that is Stored has C go through shared memory."""
    reason = hopper.reason_against_tile(gemm, config) or hopper.reason_against_boxes(gemm)
    if reason or not isinstance(config, Stored):
        return reason or hopper.reason_against_ring(gemm, config, 2)
    return hopper.reason_against_stored_boxes(gemm) or reason_against_places(gemm, config)


def reason_against_places(gemm: HalfGemm, config: Stored) -> str:
    """The same of its boxes of C and its shared memory."""
    rows, columns, places = boxes_of(gemm, config)
    if places < 1:
        return f"boxes is {config.boxes}: a warpgroup has {rows * columns}, and needs room for one at least"
    return hopper.reason_against_ring(gemm, config, 2, bytes_of_boxes(gemm, config))


def box_of(gemm: HalfGemm, config: Tiling) -> tuple[int, int]:
    """Rows and columns of a box of C. Its rows have 128 bytes, or 64 or 32 where those of a warpgroup's tile
    are not a multiple of more. Where A and B are swapped it has 16 to 64 of the rows that a warpgroup has, or
    all of them if only boxes of 8 rows would divide them."""
    if config.swap:
        fitting = (height for height in HEIGHTS if config.columns % height == 0)
        return next(fitting, config.columns), hopper.COLUMNS
    size = SIZES[gemm.result]
    return hopper.ROWS, next((w for w in (128, 64) if config.columns * size % w == 0), 32) // size


def boxes_of(gemm: HalfGemm, config: Stored) -> tuple[int, int, int]:
    """Rows and columns of the boxes in a warpgroup's tile, as wgmma has them, and for how many boxes there is
    shared memory."""
    tall, wide = box_of(gemm, config)
    rows, columns = config.rows // hopper.ROWS, config.columns // (tall if config.swap else wide)
    return rows, columns, min(rows * columns, config.boxes)


def bytes_of_boxes(gemm: HalfGemm, config: Stored) -> int:
    """Shared memory for boxes of C."""
    tall, wide = box_of(gemm, config)
    return config.consumers * boxes_of(gemm, config)[-1] * tall * wide * SIZES[gemm.result]


def block_of(config: Tiling) -> tuple[int, int, int]:
    """Threads of a block: consumer warpgroups, and a producer warpgroup."""
    return hopper.WARPGROUP, config.consumers + 1, 1


def programs_of(gemm: Gemm, config: Persistent) -> int:
    """Blocks of the grid: whole clusters, as few as take the tiles in as many rounds as the most of them do.
    Of 512 tiles 132 programs take four each at most, and so do 128, which leave more power to each other."""
    tiles = tiles_of(gemm, config)
    rounds = ceil_div(tiles, clusters_at_once(config.programs, config.blocks))
    return config.blocks * ceil_div(tiles, rounds)


def clusters_at_once(programs: int, blocks: int) -> int:
    """Clusters of so many blocks that are executed at a time, of that many programs at most."""
    return max(1, min(programs // blocks, hopper.CLUSTERS[blocks]))


def tiles_of(gemm: Gemm, config: Tiling) -> int:
    """Tiles of C, of whole clusters."""
    return ceil_div(gemm.m, config.cluster_m * config.bm) * ceil_div(gemm.n, config.cluster_n * config.bn)


def launch_programs(gemm: HalfGemm, config: Persistent) -> Launch:
    """The launch of blocks that compute tile after tile."""
    grid = programs_of(gemm, config), 1, 1
    maps = hopper.maps_of(gemm, config)
    shared = config.ring_bytes
    if isinstance(config, Stored) and config.boxes:
        shared += bytes_of_boxes(gemm, config)
        if gemm.c_aligned:
            maps = *maps, map_of_result(gemm, config)
    return Launch(grid, block_of(config), shared, (config.blocks, 1, 1), maps)


def map_of_result(gemm: HalfGemm, config: Tiling) -> TensorMap:
    """The tensor map of C."""
    return hopper.map_of("C", gemm.result, (gemm.m, gemm.n), box_of(gemm, config))


def specialize_warps(sch: Schedule, gemm: HalfGemm, config: Ring) -> Tiles:
    """Warp specialization: a producer warpgroup has TMA copy K tiles into stages."""
    tiles = hopper.split_into_tiles(sch, config)
    hopper.lay_out_operands(sch, gemm, config, tiles, ring=True)
    hopper.copy_boxes(sch, gemm, config, tiles)
    boxes = boxes_of(gemm, config) if isinstance(config, Stored) else (0, 0, 0)
    part_columns = config.part_columns > 0
    sch.specialize_warps(tiles.k_tile, config.stages, (config.stacked, config.beside), boxes, part_columns)
    return tiles


def walk_tiles(sch: Schedule, gemm: Gemm, config: Persistent, tiles: Tiles) -> None:
    """A block computes tile after tile."""
    cluster = config.stacked, config.beside
    sch.make_persistent(tiles.block_i, programs_of(gemm, config), config.group, cluster)


def store_boxes(sch: Schedule, gemm: HalfGemm, config: Stored, tiles: Tiles) -> None:
    """A warpgroup's sums go through shared memory, box by box. TMA writes them to C, or threads
    do if it does not take C's rows."""
    from tir_schedules.tir.intrinsics import boxes, stmatrix
    from tir_schedules.tir.intrinsics.wgmma import sums_map

    (height, width), places = box_of(gemm, config), boxes_of(gemm, config)[-1]
    stored = sch.cache_write(tiles.result, 0, boxes.BOXES)
    sch.reverse_compute_at(tiles.result, tiles.warpgroup)
    row, column = sch.get_loops(tiles.result)[-2:]
    box_row, row = sch.split(row, [None, height])
    box_column, column = sch.split(column, [None, width])
    order = (box_column, box_row) if config.swap else (box_row, box_column)
    sch.reorder(*order, row, column)
    sch.reverse_compute_at(stored, order[-1])
    sch.transform_layout(
        tiles.products, ("write", 0), sums_map(config.columns), assume_injective_transform=True
    )
    numbered = stmatrix.boxes_map(height, width, config.swap > 0)
    sch.transform_layout(tiles.result, ("write", 0), numbered, assume_injective_transform=True)
    unroll(sch, order)
    store = stmatrix.store_transposed if config.swap else stmatrix.store
    sch.tensorize(
        row, store(height if config.swap else width, places, gemm.accumulate, gemm.result, gemm.c_aligned)
    )
    box = height, width, gemm.result
    written = boxes.store(*box) if gemm.c_aligned else boxes.store_by_threads(*box, (gemm.m, gemm.n))
    sch.tensorize(sch.get_loops(stored)[-2], written)


def store_whole_boxes(sch: Schedule, gemm: HalfGemm, config: Stored, tiles: Tiles, programs: int) -> None:
    """The same of tiles whose sums several programs share."""
    from tir_schedules.tir.intrinsics import parts
    from tir_schedules.tir.intrinsics.wgmma import SUMS, sums_map

    whole = sch.cache_read(tiles.result, 0, SUMS)
    sch.reverse_compute_at(whole, tiles.warpgroup)
    sch.transform_layout(whole, ("write", 0), sums_map(config.columns), assume_injective_transform=True)
    store_boxes(sch, gemm, config, tiles)
    shared = parts.whole(
        config.rows // hopper.ROWS, config.columns, gemm.accumulate, programs, config.consumers
    )
    sch.tensorize(sch.get_loops(whole)[-2], shared)
