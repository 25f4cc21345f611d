"""The workload that a candidate is verified on: small, yet taking the paths that the asked one takes."""
from __future__ import annotations

from dataclasses import replace
from math import gcd
from typing import Any

from tir_schedules.rung import ceil_div


def small(workload: Any, config: Any) -> Any:
    """A product of the same kind that takes the paths of a kernel which the given one takes, and little time on the CPU machine.

    Along K there are as many tiles as use a place of shared memory twice, and where their number is not a multiple of the places, it is
    not here. There are two rows of block tiles; columns as `few_columns` says. The last tile of each is as full as it was.
    """
    rows, columns, deep = ceil_div(workload.m, config.bm), ceil_div(workload.n, config.bn), ceil_div(workload.k, config.bk)
    stages = getattr(config, "stages", 2)
    extents = {
        "m": part(workload.m, config.bm, min(rows, 2)),
        "n": part(workload.n, config.bn, few_columns(columns, getattr(config, "stripe", 1))),
        "k": part(workload.k, config.bk, min(deep, stages + 1 + (deep - 1) % stages)),
    }
    return replace(workload, **extents)


def few_columns(columns: int, stripe: int) -> int:
    """Columns of blocks for three stripes of the grid, or one where there is one, two wide where they are wider than one.

    stripe: most columns of a stripe, a power of two; 1 for a plain grid. See hgemm.steps.stripe_width.
    """
    width = gcd(columns, stripe)
    return min(columns, min(width, 2) * (1 if columns == width else 3))


def part(extent: int, tile: int, count: int) -> int:
    """The extent of so many tiles, the last as full as it is in the whole."""
    return (count - 1) * tile + (extent - 1) % tile + 1
