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
from functools import lru_cache, partial
from typing import Mapping, Protocol

from tir_schedules.ladders.waves import CACHE, EARLIER, LAUNCH, MEMORY, SMS, counts_of_parts
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
    resident: blocks of an SM at a time, 0 for any number. rounds: whether SMs take so many in rounds, see
    `turns`; small blocks are so many that rounds do not matter. reads: bytes that all blocks read in a
    microsecond, at most."""

    full: float
    few: float
    fill: int
    odd: Rate | None = None
    parts: int | None = None
    resident: int = 0
    rounds: bool = False
    reads: float = MEMORY


in_rounds = partial(Rate, rounds=True)

RATES = {
    "128x256": Rate(179, 0, 67, Rate(138, 0.14, 115, parts=0, resident=1), parts=54, resident=1),
    "128x256_rows_first": Rate(184, 0, 14, Rate(171, 0, 115, parts=9, resident=1), resident=1),
    "64x128": Rate(190, 0.17, 9, Rate(171, 0.17, 18, parts=19, resident=3), parts=17, resident=3),
    "64x256": in_rounds(217, 0.22, 24, in_rounds(212, 0.34, 25, parts=46, resident=2), parts=22, resident=2),
    "56x128": Rate(194, 0.57, 18, Rate(160, 0.48, 17, parts=34, resident=4), parts=13, resident=4),
    "48x256": Rate(205, 0.21, 78, Rate(156, 0.17, 118, resident=2), parts=83, resident=2),
    "40x128": Rate(198, 0.92, 1, Rate(182, 0.54, 47, parts=53, resident=4), parts=18, resident=4),
    "32x256": Rate(178, 0.25, 13, Rate(136, 0.06, 34, resident=3), parts=23, resident=3),
    "32x64": Rate(161, 0.52, 8, Rate(126, 0.3, 7, parts=16, resident=5), parts=12, resident=5),
    "32x32": Rate(115, 0.75, 3, Rate(90, 0.36, 2, parts=19, resident=10), parts=9, resident=10),
    "24x256": Rate(166, 0.15, 42, Rate(114, 0, 69, resident=3), resident=3),
    "16x128": Rate(141, 0.15, 0, Rate(109, 0.48, 0, parts=9, resident=4), parts=40, resident=4, reads=3.2e6),
    "256x64": in_rounds(224, 0.35, 74, in_rounds(182, 0.12, 48, resident=2), parts=70, resident=2),
    "128x128": in_rounds(250, 0.56, 6, Rate(203, 0.19, 32, parts=47, resident=2), parts=17, resident=2),
    "96x128": in_rounds(229, 0.4, 37, in_rounds(281, 1.2, 34, parts=45, resident=2), parts=42, resident=2),
    "96x96": Rate(209, 0.38, 14, Rate(181, 0.21, 45, parts=87, resident=3), parts=22, resident=3),
    "80x128": Rate(201, 0.31, 43, in_rounds(210, 0.39, 40, parts=57, resident=2), parts=55, resident=3),
    "128x64": Rate(215, 0.52, 18, Rate(197, 0.57, 22, parts=42, resident=3), parts=34, resident=3),
    "96x64": Rate(206, 0.6, 20, Rate(190, 0.41, 19, parts=61, resident=4), parts=35, resident=4),
    "64x96": Rate(189, 0.42, 12, Rate(172, 0.51, 17, parts=26, resident=3), parts=25, resident=3),
    "64x64": Rate(182, 0.53, 9, Rate(189, 0.67, 11, parts=27, resident=6), parts=12, resident=6),
    "64x32": Rate(155, 1.1, 8, Rate(154, 0.9, 10, parts=25, resident=7), parts=7, resident=7),
    "256x32": Rate(187, 0.45, 13, Rate(160, 0.48, 13, parts=27, resident=2), parts=26, resident=2),
    "128x16": Rate(97, 0.44, 10, Rate(76, 0.56, 0, resident=4), parts=3, resident=4),
}
"""Fitted to 1902 measurements on an H200, most of them with inputs in DRAM. A measurement counts less the
longer it takes beside the fastest of its shape. Errors are 3 to 16 % (root mean square). The tile that is
ranked first takes 3.0 % longer than the fastest, in the mean of 161 shapes. At 31 of these shapes cuBLAS was
faster or nearly as fast.

Later 64x256, 96x64, 64x96 and 256x32 were fitted to launches of 43 more shapes, which may begin early. The
rate of 64x256 with odd rows was then lowered from 226 to 212, because 128x128 is faster at 2047x2047x2047.
`fill` of 128x256 with odd rows is from 553x4993x35. Since tiles of 96 columns or more write C in rotated
rows, `fill` is less for 128x128, and for 80x128, 96x96 and 96x128 with odd rows. `reads` of 16x128 is from
15x8192x28672, which took 307 us, and 219 by 48x256."""
THIN = {
    "16x128": (32, 0), "24x256": (24, 0), "32x256": (32, 0), "40x128": (40, 0), "48x256": (48, 0),
    "56x128": (56, 0), "128x16": (0, 32), "256x32": (0, 32),
}  # fmt: skip
"""Tiles for matrices with few rows or columns -> the most rows and columns of C; 0 for any number."""

ALONE, SHARED = 26e3, 33e3
"""Bytes that an SM reads in a microsecond with one block of a tile of LIVE that multiplies few rows, and
waits for what it reads; and with several. On an H200 9x8192x28672 took 305 us by 32x256 in 4 parts, one
block for an SM, 300 in 6, two for some SMs, and 225 in 8, two for nearly all."""

LIVE, LEAST = ("24x256", "32x256", "40x128", "48x256"), 0.35
"""LIVE: tiles that were timed with fewer rows of C than they have, see `live_rows`. LEAST: the share of their
time that remains with any number of rows, because they copy B as before."""


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
    times = max(turns(blocks, rate) / rate.full, ceil_div(blocks, SMS) / getattr(tile, "most", MOST))
    live = 1 if misaligned(gemm, tile) else live_rows(gemm.m, tile)
    reads = rate.reads if live == 1 else bytes_by_live(blocks)
    busy = max(times * tile.bm * tile.bn * (part * live + fill) / 1000, gemm.bytes / reads)
    return LAUNCH - (EARLIER if blocks <= SMS else 0) + busy + adding_up(gemm, parts)


def live_rows(rows: int, tile: Tile) -> float:
    """The share of a tile's products that counts with so many rows of C. If C is lower than the tile, nvcc
    leaves out sums that no thread stores. On an H200 15x8192x28672 took 219 us by 48x256, in which 4 of 12
    rows of a thread are left: it is limited by memory, and all its products would take 489."""
    if f"{tile.bm}x{tile.bn}" not in LIVE or rows >= tile.bm:
        return 1
    each, iterations, apart = getattr(tile, "tm"), getattr(tile, "wmiter"), getattr(tile, "wm")
    firsts = (number * apart // iterations for number in range(iterations))
    return max(LEAST, sum(min(each, max(0, rows - first)) for first in firsts) / (each * iterations))


def bytes_by_live(blocks: int) -> float:
    """Bytes that blocks of a tile of LIVE read in a microsecond, if the busiest SM decides. All blocks read
    as much."""
    on_one = ceil_div(blocks, SMS)
    return blocks / on_one * (ALONE if on_one == 1 else SHARED)


def rate_of(tile: Tile) -> Rate:
    """The rate of a tile, or of 64x128 if there is none. One may go through rows first, see `multistage`."""
    rates, name = getattr(tile, "rates", RATES), f"{tile.bm}x{tile.bn}"
    rows_first = f"{name}_rows_first" if getattr(tile, "rows_first", 0) else name
    return rates.get(rows_first) or rates.get(name) or rates["64x128"]


def turns(blocks: int, rate: Rate) -> float:
    """How many times as long the busiest SM takes as one block at the full rate. SMs take blocks when others
    end. So if more than a few are left after whole rounds, some SM takes one more of these than its share."""
    if not rate.rounds:
        on_one = ceil_div(blocks, SMS)
        return on_one + rate.few * max(1.0, on_one / rate.resident if rate.resident else 0.0)
    whole, left = divmod(blocks, SMS * rate.resident)
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


LARGE, FULL = 128 * 128, (96, 96)
"""Where a matrix with odd rows is smaller than the tile: elements of a tile that spills, and rows and columns
of one that takes all registers. 96x96 takes 255 then, and 168 else. So an SM has two blocks, and not three:
270x81x170051 took 334 us, and 266 with 64x96."""


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
        too_large = tile.bm * tile.bn >= LARGE or (tile.bm, tile.bn) == FULL
        if not tile.asynchronous and "A" in gemm.misaligned and smaller and too_large:
            return False
        return gemm.m <= (rows or gemm.m) and gemm.n <= (columns or gemm.n)

    able = [*filter(takes, tiles)] or [*tiles][:1]
    return min(able, key=lambda name: microseconds(gemm, tiles[name], splits(gemm, tiles[name])))
