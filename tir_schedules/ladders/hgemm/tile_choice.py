"""Which configuration of a Hopper rung a gemm takes: the one whose tiles are multiplied soonest.

SMs take tiles in rounds, one each, and in the last round some SMs have none. A large tile is multiplied at a
higher rate, for its slabs are used more often, but a matrix has few of them: 1024 x 1024 has 32 tiles of
128x256, and 100 of 132 SMs would have nothing to do. Of 64x128 it has 128. What comes once, before the first
product and behind the last, counts where there are few slabs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Callable, Mapping

from tir_schedules.errors import BadInput
from tir_schedules.ladders.hgemm import hopper
from tir_schedules.model.launch import Launch, ceil_div, check_grid
from tir_schedules.workloads.half_gemm import HalfGemm

TIMES = {
    "256x256": (1300, 2400), "128x256": (687, 3500), "128x256_4_stages": (695, 2400), "128x192": (525, 2400),
    "128x128": (370, 2400), "64x128": (200, 2700), "64x64": (165, 2400),
}  # fmt: skip
"""Configuration -> nanoseconds that an SM takes for a slab of a tile, and those that come once. Measured with
`hgemm/tma_store` on an H200, from sizes that differ in slabs and rounds."""

LINE, LINE_NS = 128, 7 / 8
"""Bytes of a line of L2, and the nanoseconds in which an SM gets one. A row of a slab, 128 bytes, is a line
where rows of the matrix are multiples of that. Else it lies in two, and copies take longer than products: a
slab of 64x128 took 336 ns at 3000x1000x2000."""

SUM_NS, PART_NS = 1500, 10
"""Nanoseconds of a launch that adds up parts of K, and of each part. Both are guesses, as `sgemm/split_k` has
them; a warp has fewer parts here than a thread there."""

MEMORY, CACHE = 3760, 2360
"""Bytes in a nanosecond: of A, B and C, and of parts, which L2 holds. As measured with `sgemm/split_k`."""


@dataclass(frozen=True)
class Estimate:
    """tiles: of C. rounds: in which SMs take them. slabs: of a tile. each: nanoseconds of a slab. once: those
    of a kernel."""

    tiles: int
    rounds: int
    slabs: int
    each: int
    once: int

    @classmethod
    def of(cls, gemm: HalfGemm, name: str, config: hopper.Tiling, parts: int = 1) -> "Estimate":
        """parts: of K, for each of which SMs take all tiles."""
        cluster = getattr(config, "cluster", 1)
        tiles = ceil_div(gemm.m, config.bm * cluster) * ceil_div(gemm.n, config.bn)
        rounds = ceil_div(tiles, max(1, hopper.WAVE // cluster // parts))
        products, once = TIMES[name]
        each = max(products, round(lines_of(gemm, config) * LINE_NS))
        slabs = ceil_div(ceil_div(gemm.k, hopper.DEPTH), parts)
        return cls(tiles * cluster, rounds, slabs, each, once)

    @property
    def products(self) -> int:
        """Nanoseconds of all slabs of an SM."""
        return self.rounds * self.slabs * self.each

    @property
    def nanoseconds(self) -> int:
        return self.once + self.products

    def __str__(self) -> str:
        return (
            f"{self.tiles} tiles, {self.rounds} for an SM, of {self.slabs} slabs in {self.each} ns each, and"
            f" {self.once} ns once: {self.nanoseconds / 1000:.1f} us"
        )


def lines_of(gemm: HalfGemm, config: hopper.Tiling) -> int:
    """Lines that a slab of A and one of B lie in. Of B there is a row for each column: stored K x N, it comes
    in boxes of 64 rows and columns."""
    parts = ((config.bm, gemm.k), (config.bn, gemm.k if gemm.transposed else gemm.n))
    return sum(rows * (1 if row * 2 % LINE == 0 else 2) for rows, row in parts)


def in_parts(gemm: HalfGemm, name: str, config: hopper.Tiling, parts: int) -> float:
    """Nanoseconds where K is in so many parts, with those of the launch that adds them up. Nothing is faster
    than memory."""
    estimate = Estimate.of(gemm, name, config, parts)
    sums = SUM_NS + PART_NS * parts + 4 * (parts + 1) * gemm.m * gemm.n / CACHE if parts > 1 else 0
    return estimate.once + max(estimate.products, gemm.bytes / MEMORY) + sums


@lru_cache(maxsize=1024)
def parts_of(gemm: HalfGemm, config: hopper.Tiling) -> int:
    """In how many parts of whole slabs K is multiplied soonest, each with as many slabs."""
    name, slabs = timed_as(config), ceil_div(gemm.k, hopper.DEPTH)
    most = min(slabs, hopper.WAVE, max(1, (2**31 - 1) // (gemm.m * (gemm.n + 3))))
    counts = {ceil_div(slabs, ceil_div(slabs, parts)) for parts in range(1, most + 1)}
    return min(sorted(counts), key=lambda parts: in_parts(gemm, name, config, parts))


def timed_as(config: hopper.Tiling) -> str:
    """The name in TIMES of a tile, or of one that is about as large."""
    size = {name: abs(tile_size(name) - config.bm * config.bn) for name in TIMES}
    return config.name if config.name in TIMES else min(size, key=lambda name: size[name])


def tile_size(name: str) -> int:
    """Elements of the tile of C that a configuration is named after."""
    rows, columns = name.split("_")[0].split("x")
    return int(rows) * int(columns)


def chooser(
    configs: Mapping[str, hopper.Tiling], launch: Callable[..., Launch], split: bool = False
) -> Callable[[HalfGemm], str]:
    """The `choose` of a rung: the name of the configuration that is estimated to be the fastest. Where a gemm
    can have none of them, it is the first, and that is refused. launch: the rung's. split: whether K is in as
    many parts as are best."""

    def nanoseconds(gemm: HalfGemm, name: str) -> float:
        config = configs[name]
        if split:
            return in_parts(gemm, name, config, parts_of(gemm, config))
        return Estimate.of(gemm, name, config).nanoseconds

    def choose(gemm: HalfGemm) -> str:
        able = {name: config for name, config in configs.items() if can_launch(gemm, config)}
        names = able or dict([*configs.items()][:1])
        return min(names, key=lambda name: nanoseconds(gemm, name))

    def can_launch(gemm: HalfGemm, config: hopper.Tiling) -> bool:
        try:
            check_grid("", launch(gemm, config).grid)
        except BadInput:
            return False
        return True

    return choose
