"""Which configuration of a Hopper rung a gemm takes: the one whose tiles are multiplied soonest.

SMs take tiles in rounds, one each, and in the last round some SMs have none. A large tile is multiplied at a
higher rate, for its K tiles are used more often, but a matrix has few of them: 1024 x 1024 has 32 tiles of
128x256, and 100 of 132 SMs would have nothing to do. Of 64x128 it has 128. What comes once, before the first
product and behind the last, counts where there are few K tiles.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Callable, Collection, Iterable, Mapping

from tir_schedules.errors import BadInput
from tir_schedules.ladders.hgemm import hopper
from tir_schedules.ladders.waves import MEMORY
from tir_schedules.model.launch import Launch, ceil_div, check_grid
from tir_schedules.model.rung import Preparation, Rung
from tir_schedules.workloads import MOST_ELEMENTS
from tir_schedules.workloads.half_gemm import HalfGemm

TIMES = {
    "256x256": (1300, 2400), "128x256": (687, 3500), "128x256_4_stages": (695, 2400), "192x192": (806, 2400),
    "128x192": (525, 2400), "128x128": (365, 2400), "64x128": (200, 2700), "128x64": (200, 2700),
    "64x64": (165, 2400), "64x32": (131, 2400),
}  # fmt: skip
"""Configuration -> nanoseconds that an SM takes for a K tile of a tile while all SMs do, and those that come
once. Measured with `hgemm/tma_store` on an H200, from sizes that differ in K tiles and rounds, 64x32 with
`split_k`; 128x64 is taken for as fast as 64x128."""

FOR_ALL_SUMS = ("128x256", "128x128")
"""What rungs before `tma_store` choose from: their larger tiles are for sums in float16."""

STORED, ELEMENT, DEEP = 50, 0.045, 64
"""Nanoseconds for the end of a tile, and for each of its elements: its last products, and C through shared
memory. Meanwhile its SM multiplies nothing of the next tile. Measured on an H100 from tiles one after another
at two depths of K. TIMES are from tiles of DEEP K tiles, and have that in each of these."""

ALONE = 100 / 128
"""Of the time of a K tile, where next to no other SM multiplies: 128x128 took 295 ns with 16 of them and 362
with 128, and other tiles as much less. In between it grows by the share of SMs."""

ROWS = {64: (0.87, 0), 32: (0.5, 1.22), 16: (0.9, 1.68)}
"""Nanoseconds in which an SM gets a row of a K tile, 128 bytes, where rows of the matrix are multiples of so
many bytes: the first, and the other times the share of SMs that multiply. Sectors have 32 bytes: of rows that
start within one TMA reads five for four. So 128x256 took 272 us at 4096x4096x4072, 183 at 4080, and 181 at
4064 and 4096; 128x128 took 380, 241, 196 and 189. At 1896x640, with 75 SMs, only 3112 of the same kinds of K
took longer: 26.5 us, and all others 17.7."""

SUFFIXES = LINES, REGISTERS, WHOLE = "_lines", "_registers", "_whole"
"""What names of configurations end with, in this order, that have rows of A and B copied which are no
multiples of 32 bytes, that write C from registers, and that take K in one part."""

READ, HALF, MOST = 5.9e6, 5e6, 3.9e6
"""Where A and B are too large to be found in L2: bytes of them in a microsecond that SMs get with no end of
bytes under way, those with which they get half of that, in the rings of all SMs, and the most they get.
Fitted to thin matrices: with 64 tiles of 64x64 17x4096x4096 is read at 2.5 MB in a microsecond, with 32 of
64x128 and two parts of K at 3.6."""

FILLED = 5.1e6
"""Bytes in a microsecond that SMs get of whole boxes, as if memory were as fast. Rows of a box beyond a
matrix are not read, but take as long: 17 rows in boxes of 64 and 128 columns are 0.76 of such a box, and
with 64 columns 0.63, however many SMs there are."""

BEGIN = 900
"""Nanoseconds more that reading takes, but an eighth of its time at most: the first bytes are long under
way."""

COPY = 1.2
"""Microseconds of a launch that copies a matrix, besides those of its bytes; the next one begins early."""

ODD = 0.3
"""Nanoseconds more for each element of a tile of C written from registers where its rows are odd: one
element at a time. 64x128 took 11.4 us at 699x1001x825, of which 8.5 are products and copies."""

AGAIN = 1.5
"""Times as long as a K tile of 64x32 takes where an SM has several tiles: 8192x64x8192 took 51 us in two
rounds."""

SUM, PART, PARTS = 0.6, 0.025, 3.3e6
"""Microseconds of a launch that adds up parts of K, which begins early, and of each part: 209x43x1928 took
5.5 us in two parts of 64x32, 4.4 in four and 4.3 in eight, 64x64x16384 5.5 in 18 and 4.8 in 32. And bytes
of parts that are written, two elements at a time, and read in a microsecond."""


@dataclass(frozen=True)
class Estimate:
    """tiles: of C. rounds: in which SMs take them. k_tiles: of a tile. each: nanoseconds of a K tile. once:
    those of a kernel. reading: nanoseconds in which the SMs that have tiles get A and B. parts: of K; SMs
    take all tiles for each of them. adding: microseconds of the launch that adds these up. copies:
    matrices that launches before or after copy. copying: microseconds of that. slower: how many times as
    long as `tma_store` a rung takes besides. stored: nanoseconds for the end of a tile."""

    tiles: int
    rounds: int
    k_tiles: int
    each: float
    once: int
    reading: int = 0
    parts: int = 1
    adding: float = 0
    copies: tuple[str, ...] = ()
    copying: float = 0
    slower: float = 1
    stored: float = 0

    @classmethod
    def of(cls, gemm: HalfGemm, name: str, config: hopper.Tiling, parts: int = 1) -> "Estimate":
        cluster = getattr(config, "cluster", 1)
        tiles = ceil_div(gemm.m, config.bm * cluster) * ceil_div(gemm.n, config.bn)
        programs = max(1, hopper.WAVE // cluster // parts)  # at most, or clusters, of a part
        rounds = ceil_div(tiles, programs)
        share = ceil_div(tiles, rounds) * cluster * parts / hopper.WAVE
        stored = STORED + ELEMENT * config.bm * config.bn
        each = nanoseconds_per_k_tile(gemm, name, config, share) - stored / DEEP
        each *= AGAIN if rounds > 1 and config.bn == 32 else 1
        k_tiles = ceil_div(ceil_div(gemm.k, hopper.DEPTH), parts)
        adding = SUM + PART * parts + 4 * (parts + 1) * gemm.m * gemm.n / PARTS if parts > 1 else 0
        busy = tiles * cluster * parts / rounds  # SMs, in the mean of rounds
        reading = round(nanoseconds_of_reading(gemm, config, busy))
        elements = parts == 1 and gemm.n % 2 and not getattr(config, "boxes", 1)
        once = TIMES[name][1] + (round(ODD * config.bm * config.bn * rounds) if elements else 0)
        return cls(tiles * cluster, rounds, k_tiles, each, once, reading, parts, adding, stored=stored)

    @property
    def multiplying(self) -> int:
        """Nanoseconds of an SM. The end of the last tile is among those that come once."""
        return round(self.rounds * self.k_tiles * self.each + (self.rounds - 1) * self.stored)

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
            f"{self.tiles} tiles{parts}, {self.rounds} for an SM, of {self.k_tiles} K tiles in"
            f" {self.each:.0f} ns"
            f" each{slow}, and {self.once} ns once{slower}{sums}{copies}: {self.microseconds:.1f} us"
        )

    def after(self, launches: Iterable[Preparation]) -> "Estimate":
        """With launches around it."""
        launches = tuple(launches)
        copied = tuple(name[0] for each in launches for name in each.copies)
        return replace(self, copies=copied, copying=copying(launches))


def copying(launches: Iterable[Preparation]) -> float:
    """Microseconds of launches that copy matrices."""
    return sum(COPY + each.workload.bytes / MEMORY for each in launches)


def estimate_with_copies(gemm: HalfGemm, rung: Rung, slower: float = 1, odd: float = 1) -> Estimate | None:
    """The estimate of a rung, with the launches around its own.

    slower: how many times as long as `tma_store` it takes, in the geometric mean of sizes from 1024 to 8192
    on an H200. odd: the same where rows of A or B are no multiples of 16 bytes, of sizes from 1023 to 4095.
    """
    name = rung.variant.partition(",")[0] or "128x256"
    for suffix in reversed(SUFFIXES):
        name = name.removesuffix(suffix)
    if name not in TIMES:
        return None
    name = name if name.startswith(rung.config.name) else timing_name(rung.config)
    before, after = rung.others(gemm)
    estimate = Estimate.of(gemm, name, rung.config, rung.declared(gemm).parts)
    return replace(estimate.after([*before, *after]), slower=odd if gemm.misaligned else slower)


def nanoseconds_per_k_tile(gemm: HalfGemm, name: str, config: hopper.Tiling, share: float) -> float:
    """Of a tile, while a share of the SMs multiply: the longer one of products and copies."""
    products = TIMES[name][0] * (ALONE + (1 - ALONE) * share)
    return max(products, nanoseconds_of_rows(gemm, config, share))


def nanoseconds_of_rows(gemm: HalfGemm, config: hopper.Tiling, share: float) -> float:
    """In which a K tile of A and one of B are copied. Of B there is a row for each column: stored K x N, it
    comes in boxes of 64 rows and columns."""
    found = 0.0
    for rows, row in ((config.bm, gemm.k), (config.bn, gemm.k if gemm.transposed else gemm.n)):
        start, busy = ROWS[alignment(2 * row, getattr(config, "line", 16))]
        found += rows * (start + busy * share)
    return found


def alignment(row: int, line: int) -> int:
    """The largest of ROWS that rows of so many bytes are multiples of, or their copies. line: rows that
    are no multiple of it are copied to whole lines."""
    return next((bytes for bytes in ROWS if row % bytes == 0 and row % line == 0), max(ROWS))


def nanoseconds_of_reading(gemm: HalfGemm, config: hopper.Tiling, busy: float) -> float:
    """In which so many SMs get A and B from memory, and write C."""
    rows = [extent / ceil_div(extent, tile) for extent, tile in ((gemm.m, config.bm), (gemm.n, config.bn))]
    under_way = busy * getattr(config, "stages", 2) * hopper.ROW_BYTES * sum(rows)
    filled = sum(rows) / (config.bm + config.bn)  # share of boxes
    time = 1000 * gemm.bytes / min(MOST, FILLED * filled, READ * under_way / (under_way + HALF))
    return time + min(BEGIN, time / 8)


@lru_cache(maxsize=1024)
def parts_of(gemm: HalfGemm, config: hopper.Tiling) -> int:
    """In how many parts of whole K tiles K is multiplied soonest, each with as many K tiles."""
    name, k_tiles = timing_name(config), ceil_div(gemm.k, hopper.DEPTH)
    most = min(k_tiles, hopper.WAVE, max(1, (MOST_ELEMENTS - 1) // (gemm.m * gemm.part_pitch)))
    counts = {ceil_div(k_tiles, ceil_div(k_tiles, parts)) for parts in range(1, most + 1)}
    return min(sorted(counts), key=lambda parts: Estimate.of(gemm, name, config, parts).microseconds)


def timing_name(config: hopper.Tiling) -> str:
    """The name in TIMES of a tile, or of one that is about as large."""
    size = {name: abs(tile_size(name) - config.bm * config.bn) for name in TIMES}
    return config.name if config.name in TIMES else min(size, key=lambda name: size[name])


def tile_size(name: str) -> int:
    """Elements of the tile of C that a configuration is named after."""
    rows, columns = name.split("_")[0].split("x")
    return int(rows) * int(columns)


def chooser(
    configs: Mapping[str, hopper.Tiling],
    launch: Callable[..., Launch],
    around: Callable[..., list[Preparation]] = lambda gemm, config: [],
    split: bool = False,
    among: Collection[str] = (),
) -> Callable[[HalfGemm], str]:
    """The `choose` of a rung: the name of the configuration that is estimated to be the fastest. Where a gemm
    cannot have any of them, it is the first, and that is refused. launch: the rung's. around: launches before
    and after it. split: whether K is in as many parts as are best. among: names that it chooses from, where
    these are not all."""
    chosen = {name: configs[name] for name in among or configs}

    def times(gemm: HalfGemm, name: str) -> tuple[float, int]:
        """Of what memory is too slow for, that which multiplies sooner."""
        config, tile = chosen[name], name.removesuffix(LINES)
        estimate = Estimate.of(gemm, tile, config, parts_of(gemm, config) if split else 1)
        return estimate.microseconds + copying(around(gemm, config)), estimate.alone

    def choose(gemm: HalfGemm) -> str:
        able = {name: config for name, config in chosen.items() if can_launch(gemm, config)}
        names = able or dict([*chosen.items()][:1])
        return min(names, key=lambda name: times(gemm, name))

    def can_launch(gemm: HalfGemm, config: hopper.Tiling) -> bool:
        try:
            check_grid("", launch(gemm, config).grid)
        except BadInput:
            return False
        return True

    return choose
