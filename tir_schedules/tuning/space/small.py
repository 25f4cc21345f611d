"""What a candidate is verified on: a small workload that takes the paths which the asked one takes."""

from __future__ import annotations

from dataclasses import replace
from math import gcd
from typing import Any

from tir_schedules.ladders.reduce.vectorized import VECTOR, width
from tir_schedules.model.launch import ceil_div
from tir_schedules.model.rung import Rung


def small(rung: Rung, workload: Any) -> tuple[Rung, Any]:
    """A rung and its workload made small: of a product only the workload, of a sum the grid as well."""
    return (
        small_sum(rung, workload) if rung.family == "reduce" else (rung, small_product(workload, rung.config))
    )


def small_product(workload: Any, config: Any) -> Any:
    """A product of the same kind that takes the paths of a kernel which the given one takes, and little time
    on the CPU machine.

    Along K there are as many tiles as use a place of shared memory twice, and where their number is not a
    multiple of the places, it is not here. There are two rows of block tiles; columns as `few_columns` says.
    The last tile of each is as full as it was.
    """
    rows, columns, deep = (
        ceil_div(workload.m, config.bm),
        ceil_div(workload.n, config.bn),
        ceil_div(workload.k, config.bk),
    )
    stages = getattr(config, "stages", 2)
    extents = {
        "m": part(workload.m, config.bm, min(rows, 2)),
        "n": part(workload.n, config.bn, few_columns(columns, getattr(config, "stripe", 1))),
        "k": part(workload.k, config.bk, min(deep, stages + 1 + (deep - 1) % stages)),
    }
    return replace(workload, **extents)


def small_sum(rung: Rung, reduction: Any) -> tuple[Rung, Any]:
    """reduce/vectorized with so few blocks that half a million elements, or far fewer, are enough to see all
    that each of them does.

    Of the first launch are kept the width of loads, and that of the next, which comes from the number of
    blocks; one block, or a further launch, of which there is one where there were more; whether the loop over
    turns is done more than once; how full its last turn is and, in that, the last block with something to do.
    """
    config, wide = rung.config, width(reduction)
    chunk, grid = config.block * wide, rung.launch(reduction, config).grid[0]
    turns, in_last_turn = ceil_div(reduction.n, grid * chunk), (reduction.n - 1) % (grid * chunk) + 1
    busy = ceil_div(in_last_turn, chunk)
    blocks = min(grid, 4 if grid % VECTOR == 0 else 3)
    loops = VECTOR // wide  # single elements take more turns for as many blocks
    whole_turns = min(turns, loops * config.unroll + (turns - 1) % config.unroll + 1) - 1
    rest = part(in_last_turn, chunk, blocks if busy == grid else min(busy, blocks - 1))
    return replace(rung, config=replace(config, most_blocks=blocks)), replace(
        reduction, n=whole_turns * blocks * chunk + rest
    )


def few_columns(columns: int, stripe: int) -> int:
    """Columns of blocks for three stripes of the grid, or one where there is one, two wide where they are
    wider than one.

    stripe: most columns of a stripe, a power of two; 1 for a plain grid. See hgemm.steps.stripe_width.
    """
    width = gcd(columns, stripe)
    return min(columns, min(width, 2) * (1 if columns == width else 3))


def part(extent: int, tile: int, count: int) -> int:
    """The extent of so many tiles, the last as full as it is in the whole."""
    return (count - 1) * tile + (extent - 1) % tile + 1
