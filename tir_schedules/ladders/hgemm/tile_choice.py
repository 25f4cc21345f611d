"""Which configuration of a Hopper rung a gemm takes: the one whose tiles are multiplied soonest.

SMs take tiles in rounds, one each, and in the last round some SMs have none. A large tile is multiplied at a
higher rate, for its slabs are used more often, but a matrix has few of them: 1024 x 1024 has 32 tiles of
128x256, and 100 of 132 SMs would have nothing to do. Of 64x128 it has 128. What comes once, before the first
product and behind the last, counts where there are few slabs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Callable, Mapping

from tir_schedules.errors import BadInput
from tir_schedules.ladders.hgemm import hopper
from tir_schedules.ladders.waves import CACHE, MEMORY
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

WHOLE = "_whole"
"""What names of configurations end with that take K in one part."""

SM = 36e3
"""Bytes of A and B that an SM gets in a microsecond where both are too large to be found in L2 at
once: its ring has a few slabs under way, and waits for them. Measured with products of 48 and 64 tiles, by
vectors and thin matrices; 128 SMs together get what memory gives."""

COPY = 1.5
"""Microseconds of a launch that copies a matrix, besides those of its bytes."""

SUM, PART = 1.5, 0.01
"""Microseconds of a launch that adds up parts of K, and of each part. Guesses, with what `sgemm/split_k` was
measured to have in mind; a warp has fewer parts here than a thread there."""


@dataclass(frozen=True)
class Estimate:
    """tiles: of C. rounds: in which SMs take them. slabs: of a tile. each: nanoseconds of a slab. once: those
    of a kernel. reading: nanoseconds in which the SMs that have tiles get A and B. parts: of K, for each of
    which SMs take all tiles. adding: microseconds of the launch that adds these up. copies: matrices that
    launches before or after copy. copying: microseconds of that. slower: how many times as long as
    `tma_store` a rung takes besides."""

    tiles: int
    rounds: int
    slabs: int
    each: int
    once: int
    reading: int = 0
    parts: int = 1
    adding: float = 0
    copies: tuple[str, ...] = ()
    copying: float = 0
    slower: float = 1

    @classmethod
    def of(cls, gemm: HalfGemm, name: str, config: hopper.Tiling, parts: int = 1) -> "Estimate":
        cluster = getattr(config, "cluster", 1)
        tiles = ceil_div(gemm.m, config.bm * cluster) * ceil_div(gemm.n, config.bn)
        rounds = ceil_div(tiles, max(1, hopper.WAVE // cluster // parts))
        products, once = TIMES[name]
        each = max(products, round(lines_of(gemm, config) * LINE_NS))
        slabs = ceil_div(ceil_div(gemm.k, hopper.DEPTH), parts)
        adding = SUM + PART * parts + 4 * (parts + 1) * gemm.m * gemm.n / CACHE if parts > 1 else 0
        busy = tiles * cluster * parts / rounds  # SMs, in the mean
        reading = round(1000 * gemm.bytes / min(MEMORY, SM * busy))
        return cls(tiles * cluster, rounds, slabs, each, once, reading, parts, adding)

    @property
    def multiplying(self) -> int:
        """Nanoseconds of an SM."""
        return self.rounds * self.slabs * self.each

    @property
    def alone(self) -> int:
        """Nanoseconds of the launch that multiplies, where memory is fast enough."""
        return self.once + self.multiplying

    @property
    def nanoseconds(self) -> int:
        """Of that launch."""
        return self.once + max(self.multiplying, self.reading)

    @property
    def microseconds(self) -> float:
        """Of all launches."""
        return self.slower * self.nanoseconds / 1000 + self.adding + self.copying

    def __str__(self) -> str:
        parts = f" in {self.parts} parts of K" if self.parts > 1 else ""
        slow = f", {self.reading} ns for A and B" if self.reading > self.multiplying else ""
        slower = f", {self.slower:.2f} times that" if self.slower != 1 else ""
        sums = f", {self.adding:.1f} us for the sum of parts" if self.parts > 1 else ""
        copies = f", {self.copying:.1f} us for copies of {' and '.join(self.copies)}" if self.copies else ""
        return (
            f"{self.tiles} tiles{parts}, {self.rounds} for an SM, of {self.slabs} slabs in {self.each} ns"
            f" each{slow}, and {self.once} ns once{slower}{sums}{copies}: {self.microseconds:.1f} us"
        )


def with_copies(gemm: HalfGemm, rung: Rung, slower: float = 1, odd: float = 1) -> Estimate | None:
    """The estimate of a rung, with the launches around its own.

    slower: how many times as long as `tma_store` it takes, in the geometric mean of sizes from 1024 to 8192
    on an H200. odd: the same where rows of A or B are no multiples of 16 bytes, of sizes from 1023 to 4095.
    """
    name = rung.variant.partition(",")[0].removesuffix("_registers").removesuffix(WHOLE) or "128x256"
    if name not in TIMES:
        return None
    before, after = rung.others(gemm)
    copied = [name[0] for each in (*before, *after) for name in each.copies]
    copying = sum(COPY + each.workload.bytes / MEMORY for each in (*before, *after))
    estimate = Estimate.of(gemm, name, rung.config, rung.declared(gemm).parts)
    times = odd if gemm.misaligned else slower
    return replace(estimate, copies=tuple(copied), copying=copying, slower=times)


def lines_of(gemm: HalfGemm, config: hopper.Tiling) -> int:
    """Lines that a slab of A and one of B lie in. Of B there is a row for each column: stored K x N, it comes
    in boxes of 64 rows and columns."""
    parts = ((config.bm, gemm.k), (config.bn, gemm.k if gemm.transposed else gemm.n))
    return sum(rows * (1 if row * 2 % LINE == 0 else 2) for rows, row in parts)


@lru_cache(maxsize=1024)
def parts_of(gemm: HalfGemm, config: hopper.Tiling) -> int:
    """In how many parts of whole slabs K is multiplied soonest, each with as many slabs."""
    name, slabs = timed_as(config), ceil_div(gemm.k, hopper.DEPTH)
    most = min(slabs, hopper.WAVE, max(1, (2**31 - 1) // (gemm.m * gemm.part_pitch)))
    counts = {ceil_div(slabs, ceil_div(slabs, parts)) for parts in range(1, most + 1)}
    return min(sorted(counts), key=lambda parts: Estimate.of(gemm, name, config, parts).microseconds)


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

    def times(gemm: HalfGemm, name: str) -> tuple[float, int]:
        """In parts, what multiplies sooner where memory decides."""
        if not split:
            return 0, Estimate.of(gemm, name, configs[name]).alone
        estimate = Estimate.of(gemm, name, configs[name], parts_of(gemm, configs[name]))
        return estimate.microseconds, estimate.alone

    def choose(gemm: HalfGemm) -> str:
        able = {name: config for name, config in configs.items() if can_launch(gemm, config)}
        names = able or dict([*configs.items()][:1])
        return min(names, key=lambda name: times(gemm, name))

    def can_launch(gemm: HalfGemm, config: hopper.Tiling) -> bool:
        try:
            check_grid("", launch(gemm, config).grid)
        except BadInput:
            return False
        return True

    return choose
