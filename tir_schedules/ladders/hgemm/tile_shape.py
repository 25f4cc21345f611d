"""The configuration of a tile with a free side: what `hgemm/tile_shapes` and its costs both know."""

from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.ladders.hgemm import specialization


@dataclass(frozen=True)
class Config(specialization.Stored):
    """As Stored. swap: 1 where A and B change places: then bn is a multiple of 64 and bm of 16, else bm and
    bn. part_columns: 1 where warpgroups part a tile along the columns of wgmma. cluster_m, cluster_n: blocks
    of a cluster along rows and columns of C, two in all at most; programs are rounded down to whole
    clusters."""

    boxes: int = 2
    swap: int = 0
    part_columns: int = 0
    cluster_m: int = 1
    cluster_n: int = 1

    free = True
