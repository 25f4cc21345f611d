"""The configuration of a tile with a free side, which `hgemm/tile_shapes` and `tile_costs` share."""

from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.ladders.hgemm import specialization


@dataclass(frozen=True)
class Config(specialization.Stored):
    """As Stored. swap: 1 where A and B change places. Then bn is a multiple of 64 and bm of 8; otherwise bm
    is one of 64 and bn of 16. part_columns: 1 where warpgroups part a tile along the columns of wgmma, 0
    where they part it along its rows. cluster_m, cluster_n: blocks of a cluster along rows and columns of C,
    at most four in all. Programs are rounded down to whole clusters."""

    boxes: int = 2
    swap: int = 0
    part_columns: int = 0
    cluster_m: int = 1
    cluster_n: int = 1

    free = True
