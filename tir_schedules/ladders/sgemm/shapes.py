"""Which tile a shape should have, and into how many parts K is cut: the model behind the default of
`split_k`.

The busiest SM decides. Its blocks are the blocks of the grid divided by the number of SMs, rounded up. They
multiply at a rate that was measured, and that is lower if an SM has few blocks at a time. The time of a
launch is added. If K is cut into parts, the times of the partial sums and of the launch that adds them up are
added, too. An estimate is never below the time in which memory delivers the matrices. The model compares all
tiles and numbers of parts, and takes the fastest. The figures are of an H200. On another GPU with about as
many SMs the order of the choices is much the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Mapping, Protocol

from tir_schedules.ladders.waves import CACHE, LAUNCH, MEMORY, SMS, counts_of_parts
from tir_schedules.model.launch import MOST_BLOCKS, ceil_div
from tir_schedules.model.rung import Rung, Tiled
from tir_schedules.workloads.gemm import Gemm

MOST_WAVES = 5
"""Blocks for each SM beyond which K is not split."""
SUM, PART = 0.53, 0.016  # microseconds of a launch that adds up, which begins early, and of each part
FEW_LEFT = 8
"""Blocks after whole rounds that take SMs of their own."""
MOST = 206
"""Multiply-adds of an SM in a nanosecond: no tile had more where SMs have many blocks."""


@dataclass(frozen=True)
class Rate:
    """Of blocks with a tile. full: multiply-adds of an SM in a nanosecond, where it has many of them. few: b
    blocks on an SM reach b / (b + few) of that. fill: extent along K in which a block could multiply while it
    waits for its first tiles and writes its last. odd: what stands for these where rows of A or B are not
    multiples of 16 bytes and are read in smaller pieces; None if it is the same. parts: what stands for
    `fill` where blocks leave parts, whose rows are multiples of 16 bytes; None where it is the same.
    resident: blocks of an SM at a time where they take rounds, see `rounds`; 0 where they are so many that
    rounds do not matter."""

    full: float
    few: float
    fill: int
    odd: Rate | None = None
    parts: int | None = None
    resident: int = 0


RATES = {
    "128x256": Rate(179, 0, 68, Rate(136, 0.24, 2, parts=0), parts=57),
    "128x256_rows_first": Rate(184, 0, 21, Rate(169, 0.14, 2, parts=3), parts=17),
    "64x128": Rate(185, 0.14, 10, Rate(169, 0.18, 12, parts=18), parts=16),
    "64x256": Rate(219, 0.41, 29, Rate(173, 0.08, 12, resident=1), resident=2),
    "56x128": Rate(183, 0.36, 21, Rate(161, 0.51, 16, parts=33), parts=16),
    "48x256": Rate(202, 0.2, 79, Rate(156, 0.17, 118), parts=81),
    "40x128": Rate(194, 0.95, 1, Rate(179, 0.54, 47, parts=52), parts=13),
    "32x256": Rate(175, 0.23, 15, Rate(136, 0.06, 34), parts=20),
    "32x64": Rate(154, 0.43, 8, Rate(128, 0.38, 5, parts=15)),
    "32x32": Rate(112, 0.66, 4, Rate(89, 0.38, 2, parts=11), parts=8),
    "24x256": Rate(162, 0.11, 41, Rate(114, 0, 69), parts=40),
    "16x128": Rate(142, 0.23, 0, Rate(109, 0.55, 0, parts=7), parts=25),
    "256x64": Rate(229, 0.39, 73, Rate(162, 0.11, 49, parts=52, resident=2), parts=74, resident=2),
    "128x128": Rate(247, 0.55, 17, Rate(196, 0.14, 34, parts=47), parts=18, resident=2),
    "96x128": Rate(224, 0.35, 37, Rate(279, 1.2, 41, parts=44, resident=2), parts=39, resident=2),
    "96x96": Rate(202, 0.42, 20, Rate(178, 0.19, 80, parts=87), parts=18),
    "80x128": Rate(190, 0.14, 43, Rate(188, 0.35, 47, parts=49), parts=55),
    "128x64": Rate(198, 0.48, 22, Rate(184, 0.48, 19, parts=38), parts=24),
    "96x64": Rate(193, 0.41, 23, Rate(193, 0.4, 48, parts=77), parts=29),
    "64x64": Rate(176, 0.41, 10, Rate(185, 0.61, 15, parts=25), parts=13),
    "64x32": Rate(154, 1.1, 15, Rate(152, 0.86, 11, parts=27), parts=5),
    "128x16": Rate(95, 0.47, 12, Rate(76, 0.57, 0), parts=2),
}
"""Fitted to 1199 measurements on an H200, most of them with inputs in DRAM, of 316 shapes. A measurement
counts less the longer it takes beside the fastest of its shape. Errors are 4 to 14 % (root mean square), of
128x256 18 %. The tile that is ranked first takes 2.5 % longer than the fastest, in the mean of 118 shapes."""
THIN = {
    "16x128": (32, 0), "24x256": (24, 0), "32x256": (32, 0), "40x128": (40, 0), "48x256": (48, 0),
    "56x128": (56, 0), "128x16": (0, 32),
}  # fmt: skip
"""Tiles for matrices with few rows or columns -> the most rows and columns of C; 0 for any number."""


class Tile(Tiled, Protocol):
    """What the model asks of a configuration."""

    @property
    def asynchronous(self) -> int: ...

    @property
    def stages(self) -> int: ...


def misaligned(gemm: Gemm, tile: Tile) -> dict[str, tuple[int, int]]:
    """Rows and columns of the matrices that are read 16 bytes at a time where their rows are multiples of 16
    bytes, and are not: B, and A where it comes through registers. If parts of elements are copied, their rows
    are filled up, and this is C."""
    if getattr(tile, "copies_parts", False):
        return {"C": (gemm.m, gemm.n)} if gemm.n % gemm.vector else {}
    return {name: shape for name, shape in gemm.misaligned.items() if name == "B" or not tile.asynchronous}


def adding_up(gemm: Gemm, parts: int) -> float:
    """Microseconds of the launch that adds up the sums of parts of K; 0 where there is one part."""
    return SUM + PART * parts + 4 * (parts + 1) * gemm.m * gemm.n / CACHE if parts > 1 else 0.0


@dataclass(frozen=True)
class Estimate:
    """What the model says. tiles: of C. parts: of K. on_one: blocks for the busiest SM. odd: matrices
    that are copied to shared memory, or a C that is written, in pieces of less than 16 bytes."""

    tiles: int
    parts: int
    on_one: int
    odd: tuple[str, ...]
    microseconds: float

    def __str__(self) -> str:
        parts = f" in {self.parts} parts of K" if self.parts > 1 else ""
        odd = f", {' and '.join(self.odd)} in less than 16 bytes at a time" if self.odd else ""
        blocks = f"{self.tiles} tiles{parts}, {self.on_one} for an SM{odd}"
        return f"{blocks}: {self.microseconds:.1f} us"


def estimate(gemm: Gemm, rung: Rung) -> Estimate:
    """Of `split_k` as it is configured."""
    tile, deep = rung.config, ceil_div(gemm.k, rung.config.bk)
    parts = ceil_div(deep, ceil_div(deep, tile.splits)) if tile.splits else splits(gemm, tile)
    tiles = ceil_div(gemm.m, tile.bm) * ceil_div(gemm.n, tile.bn)
    odd = tuple(misaligned(gemm, tile))
    return Estimate(tiles, parts, ceil_div(tiles * parts, SMS), odd, microseconds(gemm, tile, parts))


def microseconds(gemm: Gemm, tile: Tile, parts: int) -> float:
    """What the model says of a tile and parts of K, which are whole tiles of `tile.bk`. A tile may have
    `rates` and `most` of its own."""
    rate = rate_of(tile)
    if rate.odd and misaligned(gemm, tile):
        rate = rate.odd
    fill = rate.fill if parts == 1 or rate.parts is None else rate.parts
    part = ceil_div(ceil_div(gemm.k, tile.bk), parts) * tile.bk
    blocks = ceil_div(gemm.m, tile.bm) * ceil_div(gemm.n, tile.bn) * parts
    times = max(rounds(blocks, rate) / rate.full, ceil_div(blocks, SMS) / getattr(tile, "most", MOST))
    busy = max(times * tile.bm * tile.bn * (part + fill) / 1000, gemm.bytes / MEMORY)
    return LAUNCH + busy + adding_up(gemm, parts)


def rate_of(tile: Tile) -> Rate:
    """The rate of a tile, or of 64x128 if there is none. One may go through rows first, see `multistage`."""
    rates, name = getattr(tile, "rates", RATES), f"{tile.bm}x{tile.bn}"
    rows_first = f"{name}_rows_first" if getattr(tile, "rows_first", 0) else name
    return rates.get(rows_first) or rates.get(name) or rates["64x128"]


def rounds(blocks: int, rate: Rate) -> float:
    """How many times as long the busiest SM takes as one block at the full rate. SMs take blocks when others
    end. So if more than a few are left after whole rounds, some SM takes one more of these than its share."""
    whole, left = divmod(blocks, SMS * rate.resident) if rate.resident else (0, blocks)
    last = ceil_div(left, SMS)
    if whole and left > FEW_LEFT:
        last = min(rate.resident, last + 1)
    return whole * (rate.resident + rate.few) + (last + rate.few if left else 0.0)


@lru_cache(maxsize=1024)
def splits(gemm: Gemm, tile: Tile) -> int:
    """The number of parts of K with which a tile is fastest."""
    blocks, deep = ceil_div(gemm.m, tile.bm) * ceil_div(gemm.n, tile.bn), ceil_div(gemm.k, tile.bk)
    counts = counts_of_parts(gemm, deep, MOST_WAVES * SMS // blocks)
    return min(counts, key=lambda parts: microseconds(gemm, tile, parts))


LARGE = 128 * 128
"""Elements of a tile that spills where it is larger than a matrix with odd rows."""


def fastest(gemm: Gemm, tiles: Mapping[str, Tile]) -> str:
    """The name of the tile with which the model says a product is fastest; where a grid has too many rows
    with each of them, of the first, and that is refused."""

    def takes(name: str) -> bool:
        tile = tiles[name]
        rows, columns = THIN.get(name, (0, 0))
        if ceil_div(gemm.m, tile.bm) > MOST_BLOCKS[1]:
            return False
        # Odd rows of A through registers need tiles that end with the matrix, see shift_edge_tiles. Else
        # large ones spill: 128x128 took 253 us at 83x307x38613 on an H200, and 96x64 69.
        smaller = gemm.m < tile.bm or gemm.n < tile.bn
        if not tile.asynchronous and "A" in gemm.misaligned and smaller and tile.bm * tile.bn >= LARGE:
            return False
        return gemm.m <= (rows or gemm.m) and gemm.n <= (columns or gemm.n)

    able = [*filter(takes, tiles)] or [*tiles][:1]
    return min(able, key=lambda name: microseconds(gemm, tiles[name], splits(gemm, tiles[name])))
