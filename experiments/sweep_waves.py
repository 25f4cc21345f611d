"""A model of what blocks that run together read: which tiles of A and B the blocks of one wave touch, by the
order in which they start.

A wave is as many blocks as all SMs hold at once. The model starts blocks in the order of their
number, x fastest, and lets the blocks of a wave end together; a GPU starts the next block as soon as one
ends. What a wave touches it reads from device memory at most once, if the L2 cache holds it; nothing is said
of what stays there from one wave to the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, Iterator

from tir_schedules.insight.metrics.counting import SECTOR
from tir_schedules.model.launch import ceil_div
from tir_schedules.model.rung import Rung


@dataclass(frozen=True)
class Waves:
    """count: waves of a grid. mean_bytes: of A and B that a wave touches, each byte once, in the mean over
    waves."""

    count: int
    mean_bytes: float


def waves(rung: Rung, gemm: Any, together: int) -> Waves:
    """together: blocks that run at once."""
    tile, grid = rung.config, rung.declared(gemm).grid
    tiles = list(tiles_in_order(grid))
    parts = [tiles[first : first + together] for first in range(0, len(tiles), together)]
    row, column = (
        2 * extent * gemm.k for extent in (tile.bm, tile.bn)
    )  # bytes of A for a row of blocks, of B for a column
    touched = [row * len({i for i, _ in part}) + column * len({j for _, j in part}) for part in parts]
    return Waves(ceil_div(len(tiles), together), sum(touched) / len(touched))


def block_sectors(rung: Rung, gemm: Any) -> int:
    """Sectors of A and B in fp32 that the blocks need, each once for each block; whole tiles, and rows of A
    and B that start on a sector."""
    tile, grid = vars(rung.config), rung.declared(gemm).grid
    rows, columns = tile.get("bm", tile.get("ts")), tile.get("bn", tile.get("ts"))
    return prod(grid) * (rows + columns) * gemm.k * 4 // SECTOR


def tiles_in_order(grid: tuple[int, int, int]) -> Iterator[tuple[int, int]]:
    """Row and column of each block's tile of C, in the order of their number; groups on z, every second one
    upwards."""
    width, rows, groups = grid
    for group in range(groups):
        for y in range(rows):
            for x in range(width):
                yield rows - 1 - y if group % 2 else y, group * width + x
