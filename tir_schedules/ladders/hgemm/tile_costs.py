"""What tiles cost on Hopper, and how long a GEMM takes by that.

A form is a tile as wgmma sees it: its rows and columns, the warpgroups that multiply and how they part it,
and what a pair of blocks shares. What is measured is the form, never the time of a gemm: the nanoseconds of a
K tile while all SMs multiply, and while few do. The time of a gemm is estimated from these, from the rounds
in which SMs take tiles, from what comes once, and from the launches around it.

Rates of memory are of an H200, and those of products of an H100, whose SMs are the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Iterable, Mapping

from tir_schedules.ladders.hgemm import hopper, specialization
from tir_schedules.ladders.waves import MEMORY
from tir_schedules.model.launch import ceil_div
from tir_schedules.model.rung import Preparation, Rung
from tir_schedules.workloads.half_gemm import HalfGemm

K_TILE = {
    (64, 1, 0): {
        16: (127, 116), 32: (132, 121), 64: (156, 148), 96: (193, 167), 128: (229, 176), 192: (297, 223),
        256: (398, 295),
    },
    (64, 2, 1): {128: (231, 173), 192: (308, 230), 256: (399, 290)},
    (128, 2, 0): {
        16: (182, 170), 32: (272, 185), 64: (302, 191), 96: (330, 231), 128: (364, 290), 160: (431, 358),
        192: (507, 430), 224: (595, 506), 256: (670, 571),
    },
    (192, 1, 0): {64: (426, 245), 96: (414, 329)},
    (192, 2, 1): {96: (441, 376), 128: (516, 434), 160: (638, 531), 192: (758, 644)},
    (192, 3, 0): {192: (806, 650)},
    (256, 2, 0): {64: (594, 327), 96: (569, 442), 128: (683, 570), 160: (836, 700), 256: (1300, 1010)},
}  # fmt: skip
"""(rows, warpgroups that multiply, 1 where these part columns) -> columns -> nanoseconds of a K tile while
all SMs multiply, and while 16 do. Measured on an H100 at two depths of K, with a tile for each SM and sums in
float32; 192 columns of three warpgroups, and 256 columns of 256 rows, whose sums are in float16, on an H200.
Between measured columns the time is interpolated linearly."""

Form = tuple[int, int, int]
"""Rows, warpgroups that multiply, and whether these part columns."""

SHARED_ROWS = {(128, 32): 188, (128, 64): 214, (128, 96): 265, (256, 64): 374, (256, 96): 511}
"""(rows, columns) -> nanoseconds of a K tile while all SMs multiply, in pairs that share rows. A pair with
larger tiles takes as long as two blocks."""

ROWS = {64: (0.87, 0), 32: (0.5, 1.42), 16: (0.9, 1.85)}
"""Bytes that rows of a matrix are multiples of -> nanoseconds in which an SM gets a row of a K tile, 128
bytes: the first, and the other times the share of SMs that multiply. Only the rows that it copies itself
count. A K tile takes as long as its rows where that is more than its products take. Sectors have 32 bytes: of
rows that start within one TMA reads five for four. So 128x256 took 272 us at 4096x4096x4072, 183 at 4080, and
181 at 4064 and 4096."""

STORED, ELEMENT = 50, 0.045
"""Nanoseconds for the end of a tile, and for each of its elements: its last products, and C through shared
memory. Meanwhile its SM multiplies nothing of the next tile. Measured as K_TILE, from tiles one after
another."""

NARROW_ROWS = {128: 0.0, 64: 0.003, 32: 0.1}
"""Bytes of a row of a box of C -> nanoseconds more for each element. Rows of 32 bytes are a quarter of a line
of L2: 8192x8192x8192 by tiles of 256x144 took 1539 us, and 1446 with A and B swapped, whose boxes have rows
of 128."""

REGISTERS, FLOATS, SINGLE = 0.1, 0.05, 0.3
"""Nanoseconds more for each element of a tile of C that is written from registers; of one of parts, whose
floats fill sectors; and of one that is written one element at a time, as where rows of C are odd. 64x128 took
5.1 us at 512x512x512 and 64x64 3.8, and through boxes 64x64 took 3.5. At 699x1001x825 64x128 took 11.4 us, of
which 8.5 are products and copies."""

LAUNCH, PAIR, SHALLOW = 2100, 950, 1000
"""Nanoseconds that come once, measured with few tiles of 64x64 and few K tiles; those that come with
clusters, because blocks meet before their first copies and at the end; and those of a ring of fewer than
ENOUGH stages, where nothing hides the wait for the first K tiles."""

ENOUGH = 4

READ, HALF, MOST = 5.9e6, 5e6, 3.9e6
"""Where A and B are too large to be found in L2: bytes of them in a microsecond that SMs get with no end of
bytes under way, those with which they get half of that, in the rings of all SMs, and the most they get.
Fitted to thin matrices: with 64 tiles of 64x64 17x4096x4096 is read at 2.5 MB in a microsecond, with 32 of
64x128 and two parts of K at 3.6."""

FILLED = 5.1e6
"""Bytes in a microsecond that SMs get of whole boxes, as if memory were as fast. Rows of a box beyond a
matrix are not read, but take as long: 17 rows in boxes of 64 and 128 columns are 0.76 of such a box, and
with 64 columns 0.63, however many SMs there are."""

AGAIN = 1.3
"""Times as long as that takes where SMs have several tiles each, with all of K: 8192x64x8192 took 51 us by
tiles of 64x32. It took 35 us by tiles of 64x64, because then an SM has one."""

BEGIN = 900
"""Nanoseconds more that reading takes, but an eighth of its time at most: the first bytes are long under
way."""

COPY = 1.2
"""Microseconds of a launch that copies a matrix, besides those of its bytes; the next one begins early."""

SUM, PART, PARTS = 0.6, 0.025, 3.3e6
"""Microseconds of a launch that adds up parts of K, which begins early, and of each part: 209x43x1928 took
5.5 us in two parts of 64x32, 4.4 in four and 4.3 in eight, 64x64x16384 5.5 in 18 and 4.8 in 32. And bytes
of parts that are written, two elements at a time, and read in a microsecond."""


@dataclass(frozen=True)
class Estimate:
    """What the time of a gemm is made of. tiles: of C. rounds: in which SMs take them. k_tiles: of a tile.
    each: nanoseconds of a K tile. stored: those of the end of a tile. once: those of the launch. reading:
    those in which the SMs that have tiles get A and B. parts: of K; SMs take all tiles for each of them.
    adding: microseconds of the launch that adds these up. copies: matrices that launches before or after
    copy. copying: microseconds of that. slower: how many times as long as `tma_store` a rung takes
    besides."""

    tiles: int
    rounds: int
    k_tiles: int
    each: float
    stored: float
    once: float
    reading: float = 0
    parts: int = 1
    adding: float = 0
    copies: tuple[str, ...] = ()
    copying: float = 0
    slower: float = 1

    @classmethod
    def of(cls, gemm: HalfGemm, config: hopper.Tiling, parts: int = 1) -> "Estimate":
        clusters, blocks = specialization.tiles_of(gemm, config), config.blocks
        rounds = ceil_div(clusters, max(1, hopper.WAVE // blocks // parts))
        share = ceil_div(clusters, rounds) * blocks * parts / hopper.WAVE
        once = LAUNCH + (PAIR if blocks > 1 else 0)
        if rounds == 1 and getattr(config, "stages", ENOUGH) < ENOUGH:
            once += SHALLOW
        return cls(
            clusters * blocks,
            rounds,
            ceil_div(ceil_div(gemm.k, hopper.DEPTH), parts),
            nanoseconds_per_k_tile(gemm, config, share),
            STORED + nanoseconds_per_element(gemm, config, parts) * config.bm * config.bn,
            once,
            nanoseconds_of_reading(gemm, config, clusters * blocks * parts / rounds)
            * (AGAIN if rounds > 1 and parts == 1 else 1),
            parts,
            SUM + PART * parts + 4 * (parts + 1) * gemm.m * gemm.n / PARTS if parts > 1 else 0,
        )

    @property
    def multiplying(self) -> float:
        """Nanoseconds of an SM, until its last tile ends."""
        return self.rounds * self.k_tiles * self.each + (self.rounds - 1) * self.stored

    @property
    def alone(self) -> float:
        """Nanoseconds of the launch that multiplies, where memory is fast enough."""
        return self.once + self.multiplying + self.stored

    @property
    def nanoseconds(self) -> float:
        """Of that launch."""
        return self.once + max(self.multiplying, self.reading) + self.stored

    @property
    def microseconds(self) -> float:
        """Of all launches."""
        return self.slower * self.nanoseconds / 1000 + self.adding + self.copying

    def __str__(self) -> str:
        parts = f" in {self.parts} parts of K" if self.parts > 1 else ""
        read = f", {self.reading:.0f} ns for A and B" if self.reading > self.multiplying else ""
        slower = f", {self.slower:.2f} times that" if self.slower != 1 else ""
        sums = f", {self.adding:.1f} us for the sum of parts" if self.parts > 1 else ""
        copies = f", {self.copying:.1f} us for copies of {' and '.join(self.copies)}" if self.copies else ""
        return (
            f"{self.tiles} tiles{parts}, {self.rounds} for an SM, of {self.k_tiles} K tiles in"
            f" {self.each:.0f} ns each{read}, {self.stored:.0f} ns for the end of a tile and"
            f" {self.once:.0f} ns once{slower}{sums}{copies}: {self.microseconds:.1f} us"
        )

    def after(self, launches: Iterable[Preparation]) -> "Estimate":
        """With launches around it."""
        launches = tuple(launches)
        copied = tuple(name[0] for each in launches for name in each.copies)
        return replace(self, copies=copied, copying=copying(launches))


def copying(launches: Iterable[Preparation]) -> float:
    """Microseconds of launches that copy matrices."""
    return sum(COPY + each.workload.bytes / MEMORY for each in launches)


def estimate(gemm: HalfGemm, rung: Rung, slower: float = 1, odd: float = 1) -> Estimate:
    """The estimate of a rung, with the launches around its own.

    slower: how many times as long as `tma_store` it takes, in the geometric mean of sizes from 1024 to 8192
    on an H200. odd: the same where rows of A or B are no multiples of 16 bytes, of sizes from 1023 to 4095.
    """
    before, after = rung.others(gemm)
    found = Estimate.of(gemm, rung.config, rung.declared(gemm).parts).after([*before, *after])
    return replace(found, slower=odd if gemm.misaligned else slower)


def nanoseconds_per_k_tile(gemm: HalfGemm, config: hopper.Tiling, share: float) -> float:
    """Of a tile, while a share of the SMs multiply: the longer one of products and copies."""
    full, few = form_cost(*form_of(config), config.beside > 1)
    return max(few + (full - few) * share, nanoseconds_of_rows(gemm, config, share))


def form_of(config: hopper.Tiling) -> tuple[int, int, int, int]:
    """Rows, warpgroups, whether they part columns, and columns."""
    return config.tall, config.consumers, config.part_columns, config.wide


@lru_cache(maxsize=4096)
def form_cost(tall: int, consumers: int, part_columns: int, wide: int, pairs: bool) -> tuple[float, float]:
    """Nanoseconds of a K tile, while all SMs multiply and while few do. Of a form that was not measured, as
    long for each element as the one takes that is nearest in size. pairs: that share rows."""
    full, few = cost_in(K_TILE, (tall, consumers, part_columns), wide)
    return SHARED_ROWS.get((tall, wide), full) if pairs else full, few


def cost_in(
    table: Mapping[Form, Mapping[int, tuple[float, float]]], form: Form, wide: int
) -> tuple[float, float]:
    """The same by a table such as K_TILE, of a block by itself."""
    tall, measured = form[0], table.get(form, {})
    below = max((each for each in measured if each <= wide), default=0)
    above = min((each for each in measured if each >= wide), default=0)
    if not below or not above:
        sizes = {rows * each: time for (rows, *_), times in table.items() for each, time in times.items()}
        nearest = min(sizes, key=lambda size: abs(size - tall * wide))
        full, few = sizes[nearest]
        return full * tall * wide / nearest, few * tall * wide / nearest
    part = (wide - below) / (above - below) if above > below else 0
    full, few = (low + (high - low) * part for low, high in zip(measured[below], measured[above]))
    return full, few


def nanoseconds_of_rows(gemm: HalfGemm, config: hopper.Tiling, share: float) -> float:
    """In which an SM gets the rows of a K tile that it copies, while a share of the SMs do. Of B there is a
    row for each column: stored K x N, it comes in boxes of 64 rows and columns."""
    found = 0.0
    b_row = gemm.k if gemm.transposed else gemm.n
    for rows, row in ((config.bm / config.cluster_n, gemm.k), (config.bn / config.cluster_m, b_row)):
        start, busy = ROWS[alignment(2 * row, getattr(config, "line", 16))]
        found += rows * (start + busy * share)
    return found


def alignment(row: int, line: int) -> int:
    """The largest of ROWS that rows of so many bytes are multiples of, or their copies. line: rows that
    are no multiple of it are copied to whole lines."""
    return next((bytes for bytes in ROWS if row % bytes == 0 and row % line == 0), max(ROWS))


def nanoseconds_per_element(gemm: HalfGemm, config: hopper.Tiling, parts: int) -> float:
    """Of a tile of C, at its end."""
    if getattr(config, "boxes", 1):
        row = specialization.box_of(gemm, config)[1] * hopper.SIZES[gemm.result]
        return ELEMENT + NARROW_ROWS[row]
    if parts > 1:
        return ELEMENT + FLOATS
    return ELEMENT + (SINGLE if gemm.n % 2 or config.swap else REGISTERS)


def nanoseconds_of_reading(gemm: HalfGemm, config: hopper.Tiling, busy: float) -> float:
    """In which so many SMs get A and B from memory, and write C."""
    rows = [extent / ceil_div(extent, tile) for extent, tile in ((gemm.m, config.bm), (gemm.n, config.bn))]
    under_way = busy * getattr(config, "stages", 2) * hopper.ROW_BYTES * sum(rows)
    filled = sum(rows) / (config.bm + config.bn)  # share of boxes
    time = 1000 * gemm.bytes / min(MOST, FILLED * filled, READ * under_way / (under_way + HALF))
    return time + min(BEGIN, time / 8)
