"""Which tile a shape should have, and in how many parts K: the model behind the default of `split_k`.

The busiest SM decides: it has as many blocks as the grid divided by the SMs gives, rounded up. They multiply
at a rate that was measured, less where an SM has few of them at a time. To that come a launch, and where K is
in parts the partial sums and the launch that adds them up; and nothing is faster than memory. Of all tiles
and numbers of parts the fastest is taken. The figures are of an H200; on another GPU with about as many SMs
the order of the choices is much the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Mapping, Protocol

from tir_schedules.ladders.waves import LAUNCH, MEMORY, SMS
from tir_schedules.model.launch import ceil_div
from tir_schedules.model.rung import Rung
from tir_schedules.workloads.gemm import Gemm

MOST_WAVES = 4
"""Blocks for each SM beyond which K is not split."""

SUM, PART = 0.86, 0.03  # microseconds of a launch that adds up, beyond another, and of each part
CACHE = 2.36e6  # bytes in a microsecond, of partial sums
MOST = 206
"""Multiply-adds of an SM in a nanosecond, of which no tile had more where SMs have many blocks."""


@dataclass(frozen=True)
class Rate:
    """Of blocks with a tile. full: multiply-adds of an SM in a nanosecond, where it has many of them. few: b
    blocks on an SM reach b / (b + few) of that. odd: share of it where rows of A or B are no multiples of
    16 bytes, and are copied that way otherwise; copied: where they were copied to such rows before. fill:
    extent along K in which a block could multiply while it waits for its first tiles and writes its last."""

    full: float
    few: float
    odd: float
    copied: float
    fill: int


RATES = {
    "128x256": Rate(216, 0.14, 0.75, 0.79, 36),
    "64x128": Rate(200, 0.24, 0.78, 0.80, 16),
    "32x64": Rate(158, 0.38, 0.82, 0.89, 31),
    "32x32": Rate(105, 0.49, 0.90, 0.85, 2),
    "16x128": Rate(160, 0.66, 0.82, 0.85, 16),
    "128x128": Rate(236, 0.38, 0.68, 0.74, 47),
    "128x64": Rate(196, 0.29, 0.78, 0.78, 20),
    "64x64": Rate(189, 0.61, 0.80, 0.80, 18),
    "64x32": Rate(161, 1.23, 0.97, 0.97, 13),
    "128x16": Rate(137, 1.33, 1.00, 0.93, 40),
}
"""Fitted to 225 measurements on an H200, of 34 shapes, first to their times and then to the order of the
choices: the model is off by 10 % (root mean square). Of 33 shapes whose choice was measured 26 take the
fastest that was measured or one as fast within 2 %, the others lose up to 8 %.

A share is lost where rows are copied, too: C is written float by float, and where M, N and K are odd nvcc has
not enough registers for the tile of 128x128, of which 648 bytes are read back from local memory."""
COPIED = "_copied"
"""What names of configurations end with that have misaligned matrices copied before."""
THIN = {"16x128": (32, 0), "128x16": (0, 32)}
"""Tiles for matrices with few rows or columns -> the most rows and columns of C; 0 for any number."""


class Tile(Protocol):
    """What the model asks of a configuration."""

    @property
    def bm(self) -> int: ...

    @property
    def bn(self) -> int: ...

    @property
    def bk(self) -> int: ...

    @property
    def asynchronous(self) -> int: ...

    @property
    def copied(self) -> int: ...


def misaligned(gemm: Gemm, tile: Tile) -> dict[str, tuple[int, int]]:
    """Rows and columns of the matrices that are read 16 bytes at a time where their rows are multiples of 16
    bytes, and are not: B, and A where it comes through registers."""
    return {name: shape for name, shape in gemm.misaligned.items() if name == "B" or not tile.asynchronous}


@dataclass(frozen=True)
class Estimate:
    """What the model says. tiles: of C. parts: of K. on_one: blocks for the busiest SM. copied: matrices that
    are copied to aligned rows before. odd: those that are copied to shared memory in pieces of less than 16
    bytes."""

    tiles: int
    parts: int
    on_one: int
    copied: tuple[str, ...]
    odd: tuple[str, ...]
    microseconds: float

    def __str__(self) -> str:
        parts = f" in {self.parts} parts of K" if self.parts > 1 else ""
        copied = f" after copies of {' and '.join(self.copied)}" if self.copied else ""
        odd = f", {' and '.join(self.odd)} float by float" if self.odd else ""
        blocks = f"{self.tiles} tiles{parts}{copied}, {self.on_one} for an SM{odd}"
        return f"{blocks}: {self.microseconds:.1f} us"


def estimate(gemm: Gemm, rung: Rung) -> Estimate:
    """Of `split_k` as it is configured."""
    tile, deep = rung.config, ceil_div(gemm.k, rung.config.bk)
    parts = ceil_div(deep, ceil_div(deep, tile.splits)) if tile.splits else splits(gemm, tile)
    tiles = ceil_div(gemm.m, tile.bm) * ceil_div(gemm.n, tile.bn)
    odd = tuple(misaligned(gemm, tile))
    copied = odd if tile.copied else ()
    return Estimate(
        tiles, parts, ceil_div(tiles * parts, SMS), copied, () if copied else odd,
        microseconds(gemm, tile, parts),
    )  # fmt: skip


def microseconds(gemm: Gemm, tile: Tile, parts: int) -> float:
    """What the model says of a tile and parts of K, which are whole tiles of `tile.bk`."""
    rate = RATES.get(f"{tile.bm}x{tile.bn}", RATES["64x128"])
    part = ceil_div(ceil_div(gemm.k, tile.bk), parts) * tile.bk
    on_one = ceil_div(ceil_div(gemm.m, tile.bm) * ceil_div(gemm.n, tile.bn) * parts, SMS)
    speed = min(MOST, rate.full * on_one / (on_one + rate.few))
    odd = misaligned(gemm, tile)
    copies = sum(LAUNCH + 8 * rows * columns / MEMORY for rows, columns in odd.values()) if tile.copied else 0
    if odd:
        speed *= rate.copied if tile.copied else rate.odd
    busy = max(on_one * tile.bm * tile.bn * (part + rate.fill) / speed / 1000, gemm.bytes / MEMORY)
    sums = SUM + PART * parts + 4 * (parts + 1) * gemm.m * gemm.n / CACHE if parts > 1 else 0
    return copies + LAUNCH + busy + sums


@lru_cache(maxsize=1024)
def splits(gemm: Gemm, tile: Tile) -> int:
    """The number of parts of K with which a tile is fastest."""
    blocks, deep = ceil_div(gemm.m, tile.bm) * ceil_div(gemm.n, tile.bn), ceil_div(gemm.k, tile.bk)
    most = min(deep, max(1, MOST_WAVES * SMS // blocks), (2**31 - 1) // (gemm.m * gemm.n))
    counts = {ceil_div(deep, ceil_div(deep, parts)) for parts in range(1, most + 1)}
    return min(sorted(counts), key=lambda parts: microseconds(gemm, tile, parts))


def fastest(gemm: Gemm, tiles: Mapping[str, Tile]) -> str:
    """The name of the tile with which the model says a product is fastest."""

    def takes(name: str) -> bool:
        rows, columns = THIN.get(name.removesuffix(COPIED), (0, 0))
        if tiles[name].copied and not misaligned(gemm, tiles[name]):
            return False
        return gemm.m <= (rows or gemm.m) and gemm.n <= (columns or gemm.n)

    return min(
        filter(takes, tiles), key=lambda name: microseconds(gemm, tiles[name], splits(gemm, tiles[name]))
    )
