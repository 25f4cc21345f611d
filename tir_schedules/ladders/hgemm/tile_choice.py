"""Which configuration of a Hopper rung a gemm takes: the one whose tiles are multiplied soonest.

SMs take tiles in rounds, one each, and in the last round some SMs have none. A large tile is multiplied at a
higher rate, for its slabs are used more often, but a matrix has few of them: 1024 x 1024 has 32 tiles of
128x256, and 100 of 132 SMs would have nothing to do. Of 64x128 it has 128. What comes once, before the first
product and behind the last, counts where there are few slabs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Callable, Mapping

from tir_schedules.errors import BadInput
from tir_schedules.ladders.hgemm import hopper
from tir_schedules.ladders.waves import MEMORY
from tir_schedules.model.launch import Launch, ceil_div, check_grid
from tir_schedules.model.rung import Rung
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

COPY = 1.5
"""Microseconds of a launch that copies a matrix, besides those of its bytes."""


@dataclass(frozen=True)
class Estimate:
    """tiles: of C. rounds: in which SMs take them. slabs: of a tile. each: nanoseconds of a slab. once: those
    of a kernel. copies: matrices that launches before or after copy. copying: microseconds of that."""

    tiles: int
    rounds: int
    slabs: int
    each: int
    once: int
    copies: tuple[str, ...] = ()
    copying: float = 0

    @classmethod
    def of(cls, gemm: HalfGemm, name: str, config: hopper.Tiling) -> "Estimate":
        cluster = getattr(config, "cluster", 1)
        tiles = ceil_div(gemm.m, config.bm * cluster) * ceil_div(gemm.n, config.bn)
        rounds = ceil_div(tiles, hopper.WAVE // cluster)
        products, once = TIMES[name]
        each = max(products, round(lines_of(gemm, config) * LINE_NS))
        return cls(tiles * cluster, rounds, ceil_div(gemm.k, hopper.DEPTH), each, once)

    @property
    def nanoseconds(self) -> int:
        return self.once + self.rounds * self.slabs * self.each

    @property
    def microseconds(self) -> float:
        """Of all launches."""
        return self.nanoseconds / 1000 + self.copying

    def __str__(self) -> str:
        copies = f", {self.copying:.1f} us for copies of {' and '.join(self.copies)}" if self.copies else ""
        return (
            f"{self.tiles} tiles, {self.rounds} for an SM, of {self.slabs} slabs in {self.each} ns each, and"
            f" {self.once} ns once{copies}: {self.microseconds:.1f} us"
        )


def with_copies(gemm: HalfGemm, rung: Rung) -> Estimate | None:
    """The estimate of a rung with launches around its own."""
    name = (rung.variant or "128x256").removesuffix("_registers")
    if name not in TIMES:
        return None
    before, after = rung.others(gemm)
    copied = {each.names["X"][0]: 4 * prod(each.workload.shape[:2]) for each in (*before, *after)}
    copying = sum(COPY + each / MEMORY for each in copied.values())
    return replace(Estimate.of(gemm, name, rung.config), copies=tuple(copied), copying=copying)


def lines_of(gemm: HalfGemm, config: hopper.Tiling) -> int:
    """Lines that a slab of A and one of B lie in. Of B there is a row for each column: stored K x N, it comes
    in boxes of 64 rows and columns."""
    parts = ((config.bm, gemm.k), (config.bn, gemm.k if gemm.transposed else gemm.n))
    return sum(rows * (1 if row * 2 % LINE == 0 else 2) for rows, row in parts)


def chooser(configs: Mapping[str, hopper.Tiling], launch: Callable[..., Launch]) -> Callable[[HalfGemm], str]:
    """The `choose` of a rung: the name of the configuration that is estimated to be the fastest. Where a gemm
    can have none of them, it is the first, and that is refused. launch: the rung's."""

    def choose(gemm: HalfGemm) -> str:
        able = {name: config for name, config in configs.items() if can_launch(gemm, config)}
        names = able or dict([*configs.items()][:1])
        return min(names, key=lambda name: Estimate.of(gemm, name, configs[name]).nanoseconds)

    def can_launch(gemm: HalfGemm, config: hopper.Tiling) -> bool:
        try:
            check_grid("", launch(gemm, config).grid)
        except BadInput:
            return False
        return True

    return choose
