"""Which configuration of a Hopper rung a gemm takes: that whose tiles are multiplied soonest.

An SM multiplies the slabs of one tile after the other, and so all SMs take tiles in rounds; in the last one
some have none. A large tile is multiplied at a higher rate, for its slabs are used more often, but a matrix
has few of them: 1024 x 1024 has 32 tiles of 128x256, and most of 132 SMs would have nothing to do. Of 64x128
it has 128. What comes once for a kernel, the first copies and the last stores, is alike for all tiles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Mapping

from tir_schedules.errors import BadInput
from tir_schedules.ladders.hgemm import hopper
from tir_schedules.model.launch import Launch, ceil_div, check_grid
from tir_schedules.workloads.half_gemm import HalfGemm

PACE = {
    (256, 256): 1335, (192, 256): 960, (128, 256): 700, (128, 192): 540, (128, 128): 375, (64, 128): 195,
    (64, 64): 165,
}  # fmt: skip
"""Rows and columns of a tile -> nanoseconds that an SM of an H200 takes for a slab of it. Measured with
`hgemm/tma_store`, as the time that more slabs of as many tiles take more."""


@dataclass(frozen=True)
class Estimate:
    """tiles: of C. rounds: in which SMs take them. slabs: of a tile. pace: nanoseconds for a slab."""

    tiles: int
    rounds: int
    slabs: int
    pace: int

    @classmethod
    def of(cls, gemm: HalfGemm, config: hopper.Tiling) -> "Estimate":
        cluster = getattr(config, "cluster", 1)
        tiles = ceil_div(gemm.m, config.bm * cluster) * ceil_div(gemm.n, config.bn)
        rounds = ceil_div(tiles, hopper.WAVE // cluster)
        slabs = ceil_div(gemm.k, hopper.DEPTH)
        return cls(tiles * cluster, rounds, slabs, PACE[config.bm, config.bn])

    @property
    def nanoseconds(self) -> int:
        return self.rounds * self.slabs * self.pace

    def __str__(self) -> str:
        return (
            f"{self.tiles} tiles in {self.rounds} round{'s' * (self.rounds > 1)} of {hopper.WAVE} SMs, each"
            f" {self.slabs} slab{'s' * (self.slabs > 1)} of {self.pace} ns"
        )


def chooser(
    configs: Mapping[str, hopper.Tiling], launch: Callable[[HalfGemm, hopper.Tiling], Launch]
) -> Callable[[HalfGemm], str]:
    """The `choose` of a rung: the name of the first of its fastest configurations. Where a gemm can have none
    of them, it is the first, and that is refused. launch: the rung's."""

    def choose(gemm: HalfGemm) -> str:
        able = [name for name, config in configs.items() if can_launch(gemm, config)]
        return min(
            able or configs, key=lambda name: Estimate.of(gemm, configs[name]).nanoseconds if able else 0
        )

    def can_launch(gemm: HalfGemm, config: hopper.Tiling) -> bool:
        try:
            check_grid("", launch(gemm, config).grid)
        except BadInput:
            return False
        return True

    return choose
