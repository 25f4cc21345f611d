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

from tir_schedules.model.launch import ceil_div
from tir_schedules.workloads.gemm import Gemm

SMS = 132
MOST_WAVES = 4
"""Blocks for each SM beyond which K is not split."""

LAUNCH, SUM, PART = 2.0, 0.9, 0.015  # microseconds of a launch, of one more that adds up parts, of each part
MEMORY, CACHE = 3.75e6, 2.8e6  # bytes in a microsecond: A, B and C, and copies; partial sums
FILL = 10
"""Extent along K in which a block could multiply while it waits for its first tiles and writes its last."""


@dataclass(frozen=True)
class Rate:
    """Of blocks with a tile. full: multiply-adds of an SM in a nanosecond, where it has many of them. few: b
    blocks on an SM reach b / (b + few) of that. odd: share of it where rows of A or B are no multiples of
    16 bytes, and are copied that way otherwise."""

    full: float
    few: float
    odd: float


RATES = {
    "128x256": Rate(192, 0.0, 0.87),
    "64x128": Rate(197, 0.26, 0.78),
    "32x64": Rate(154, 0.42, 0.82),
    "32x32": Rate(102, 0.35, 0.88),
    "16x128": Rate(129, 0.17, 0.8),
    "128x128": Rate(207, 0.11, 0.77),
    "128x64": Rate(188, 0.25, 0.8),
    "64x64": Rate(195, 0.69, 0.84),
    "64x32": Rate(146, 0.96, 1.0),
    "128x16": Rate(148, 0.93, 0.75),
}
"""Fitted to 140 measurements on an H200, of 33 shapes: the model is off by 8 % (root mean square)."""
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


def microseconds(gemm: Gemm, tile: Tile, parts: int) -> float:
    """What the model says of a tile and parts of K, which are whole tiles of `tile.bk`."""
    rate = RATES.get(f"{tile.bm}x{tile.bn}", RATES["64x128"])
    part = ceil_div(ceil_div(gemm.k, tile.bk), parts) * tile.bk
    on_one = ceil_div(ceil_div(gemm.m, tile.bm) * ceil_div(gemm.n, tile.bn) * parts, SMS)
    speed = rate.full * on_one / (on_one + rate.few)
    odd = misaligned(gemm, tile)
    copies = sum(LAUNCH + 8 * rows * columns / MEMORY for rows, columns in odd.values()) if tile.copied else 0
    if odd and not tile.copied:
        speed *= rate.odd
    busy = max(on_one * tile.bm * tile.bn * (part + FILL) / speed / 1000, gemm.bytes / MEMORY)
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
