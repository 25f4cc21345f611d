"""What tiles cost on Hopper, and how long a GEMM takes as a result.

A form is a tile as wgmma sees it: its rows and columns, the warpgroups that multiply and how they divide it,
and what a pair of blocks shares. Forms were measured, not GEMMs: the cycles of a K tile while all SMs
multiply, and while few do. The time of a GEMM is estimated from these cycles, the rounds in which SMs take
tiles, the time at the start and the end of the kernel, the launches around it, and the clock.

Cycles of K tiles were measured on an H200. Most other constants are fitted to 2,673 launches on H200s at 257
shapes, most of them drawn. The launches are in `experiments/results/changes`
(`forms_hgemm_h200_fifth.json` to `_eleventh`, `stripes`, `clusters_and_stripes`) and in
`tests/ladders/hgemm/measured_choices.json`. CROWDED and IN_COLUMNS are from `_twelfth`. A launch counts less
the longer it takes beside the fastest of its shape. Estimates of these are off by 8 % (root mean square).
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Iterable, Mapping

from tir_schedules.ladders.hgemm import hopper, specialization
from tir_schedules.ladders.waves import L2, MEMORY
from tir_schedules.model.kernel import reads_unevenly
from tir_schedules.model.launch import ceil_div
from tir_schedules.model.rung import Preparation, Rung
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.half_gemm import HalfGemm

Costs = dict[str, dict[int, float]]

TABLE = Path(__file__).with_suffix(".json")


def read_table(rounds: str) -> dict[tuple[int, int, int], Costs]:
    """What TABLE has of each kind of form: how it is used -> columns -> cycles. rounds: once or again."""
    found: dict[tuple[int, int, int], Costs] = {}
    for form in json.loads(TABLE.read_text(encoding="utf-8"))["forms"]:
        kind = found.setdefault((form["rows"], form["consumers"], form["part_columns"]), {})
        for way, cycles in form[rounds].items():
            kind.setdefault(way, {})[form["columns"]] = cycles
    return found


K_TILE, K_TILE_AGAIN = read_table("once"), read_table("again")
"""(rows, warpgroups that multiply, 1 where these part columns) -> how it is used -> columns -> cycles of a K
tile, where SMs have one tile each, and several. A form is used alone, with A and B swapped, in pairs that
share rows or columns, or by few SMs. Measured by `experiments/tile_costs.py`. Between measured columns the
cycles are interpolated linearly."""

OF_FOUR = ("rows and columns shared", "rows shared by four", "columns shared by four")
"""How clusters of four use a form. They alone take longer than their products where tiles are small."""

SHARED_BY_FOUR = {True: 351, False: 291}
"""Least cycles of a K tile that four blocks copy for each other: each side shared by two, and one by all. On
an H200 16x64 took 331 to 346 cycles in the former way at seven shapes, and 260 to 297 in the latter."""

PRODUCTS = 2048
"""Multiply-adds of the tensor cores of an SM in a cycle."""

IDLE, MULTIPLIED, COPIED, FETCHED, WRITTEN, CLOCK = 2.394, 0.7208, 0.00326, 0.01234, 0.0226, 1.805
LESS_POWER = {"float16 sums": 0.111, "bfloat16": 0.094}
"""The clock in cycles per nanosecond is min(CLOCK, IDLE - MULTIPLIED * multiplied - COPIED * copied - FETCHED
* fetched - WRITTEN * written), because a GPU lowers its clock to stay within its power. multiplied: share of
cycles in which tensor cores multiply. copied: bytes of K tiles that an SM gets per cycle. fetched: as copied,
but a row or column that several SMs read counts once. written: bytes of C per cycle. Products with float16
sums or bfloat16 factors need less power, by the shares LESS_POWER. Fitted to 1,690 launches on H200s at 182
shapes, as `bench` has them: with pauses, and clocks of 1290 to 1880 MHz. This is off by 38 MHz in the root
mean square, and among forms of one gemm by 22 MHz."""

ROWS = {64: (0.65, 0.85, 0.0), 32: (0.98, 1.09, 0.49), 16: (1.15, 2.64, 1.38)}
READERS, ROW_START, CROWD = 24, 98, 0.916
"""ROWS: bytes that rows of a matrix are multiples of -> (start, busy, same). An SM gets one row of a K tile,
128 bytes, in start + busy * share ** CROWD cycles, where `share` is that of the SMs that multiply. In a
cluster `busy` counts in full, because its blocks run on two SMs that share a port to L2. If B is stored K x
N, `same` is added in proportion to the clusters that read the same rows, and in full from READERS clusters
on. Only the rows that an SM copies itself count. ROW_START is added to their sum. A K tile takes as long as
its rows where that is more than its products take. Sectors have 32 bytes: of rows that start within one TMA
reads five for four. So 128x256 took 1566 cycles where rows are multiples of 16 bytes, 1018 where they are of
32, and 1013 of whole lines."""

CROWDED = {32: (13, 2.1), 16: (17, 0.7)}
FEW_READERS, ALL_READERS = 40, 70
"""Additional cycles for each row of A, or of a B stored N x K, that many SMs read at the same time. CROWDED:
bytes that rows are multiples of -> (cycles once, cycles of each K tile). They count in full if ALL_READERS or
more clusters read the same rows, and not at all if FEW_READERS or fewer do. Between these they rise linearly.
On an H200 144x5664x88 took 4.7 us by 144x64, where 89 SMs read the 144 rows of A. It took 3.3 us by pairs,
and 2.9 us by 160x64 in clusters of four."""

HIDDEN = 6
"""Exponent of the power mean of the cycles of a K tile's products and of its odd rows. If both take the same
number of cycles, they overlap only partly."""

LATENCY = 775
"""Cycles from a copy's start until its first bytes are there. A stage is copied, waits, is multiplied, and is
free when the next one has been multiplied. So a ring of three stages hides whole lines, but no odd rows:
256x176 took 1880 cycles where rows are multiples of 16 bytes, and 256x160, of four stages, 1420."""

CLOSE = 1.04
"""Cycles of a K tile over those of its products, below which they are taken to be the same: they differ by as
much from one measurement to the next."""

STORED, ELEMENT = 517, 0.0226
"""STORED: cycles for the end of a tile. ELEMENT: cycles for each of its elements while few SMs store. An
element takes twice as long while all SMs store, because L2 accepts only STORE bytes per cycle from each.
Meanwhile the SM does not multiply the next tile."""

NARROW_ROWS = {128: 0.0, 64: 0.005, 32: 0.17}
"""Bytes of a row of a box of C -> cycles more for each element. Rows of 32 bytes are a quarter of a line of
L2: 8192x8192x8192 by tiles of 256x144 took 1539 us, and 1446 with A and B swapped, whose boxes have rows of
128."""

BOX = 220
"""Cycles more for the end of a tile, for each box of a warpgroup more than it would have with boxes of 64
rows. In boxes of 16 rows and not of 48 a tile of 144x256 ended 2700 cycles later at 4680x4680x4680, and one
of 240x128 3900 cycles later at 5000x3000x2048."""

STORE = 28
"""Bytes of C in a cycle that L2 takes from each SM while all store."""

REGISTERS, SINGLE, FLOATS = (0.19, 0.35), (0.65, 1.1), 0.003
"""Additional cycles per element of a tile of C that is written from registers: while few SMs have a tile, and
while all have one. REGISTERS: two elements are written at a time. SINGLE: one at a time, for example because
N is odd. FLOATS: an element of a partial sum, which costs little because floats fill whole sectors. At
2334x15526x64 64x128 took 208 thousand cycles for 35 rounds of tiles, at 10142x9735x64 979 thousand for 93.
With few tiles 64x128 took 5.1 us at 512x512x512 and 64x64 3.8, and through boxes 64x64 took 3.5."""

IN_COLUMNS = 1.1
"""Factor of the time in which memory takes a C that is larger than L2, if A and B are swapped. Warpgroups
then write narrow columns of C and not wide rows. On an H200 12864x6208x64 took 54 us by 192x128 swapped, and
46 us by 128x192. 4224x14464x64 took 40 and 35 us."""

BY_THREADS, IN_PART, MANY = 0.1, 2.1, 1.2
"""BY_THREADS: additional cycles per element if threads copy the boxes, because rows of C start at any
address. If L2 does not hold C, writing it takes as long as reading 1 + IN_PART times its bytes, because
sectors are written in part: the two gemms above took 53 and 163 us. MANY: the factor if several warpgroups of
a block write. With tiles of 128x256 the two took 59 and 186 us. At 4501x1535x128, whose C L2 holds, 64x128
took 11.1 us."""

LAUNCH, APART, FIRST, SHALLOW = 1934, 1040, 0.077, 775
MEETING = {1: 0, 2: 141, 4: 175}
"""Cycles that come once. LAUNCH: of every launch that begins early. APART: more of one that begins when the
launch before has ended, see `reads_unevenly`. FIRST: for each element of a tile until its first K tiles
are there, and as many again while all SMs read. MEETING: those that come with clusters of so many blocks,
because these meet before their first copies. SHALLOW: those of a ring of fewer than
ENOUGH_STAGES stages, where nothing hides the wait for the first K tiles."""

CONSUMER = 132
"""Cycles that come once for each warpgroup that multiplies, besides the first."""

ENOUGH_STAGES = 4

READ, HALF, MOST = 5.45e6, 3.57e6, 4.34e6
"""Of an A and B that are too large for L2. READ: bytes per microsecond that SMs would get with unlimited
bytes in flight. HALF: bytes in flight, in the rings of all SMs, with which they get half of READ. MOST: the
highest rate that they reach, in bytes per microsecond."""

FROM_L2 = 0.148
"""Time of a byte that another tile has already brought to L2, over that of one from memory. One that another
block of the cluster copies takes half as long. 15232x128x10368 took 83.3 us by tiles of 128x128, and 80.8 in
clusters of four. 84x4096x16384 took 58.0 us by tiles of 48x64, which get 470 MB, and 51.5 by tiles of 96x64,
which get 335 MB; A and B have 137 MB. 40x4096x11008 took 34.7 by tiles of 32x64, and 33.9 by tiles of
48x64."""

FILLED = 6.94e6
"""Bytes per microsecond that SMs would get if boxes were full and memory did not limit them. Rows of a box
beyond a matrix are not read, but take as long as others. With 17 rows of A in a box of 64, and 128 columns of
B, the useful part is (17 + 128) / (64 + 128) = 0.76, and with 64 columns it is 0.63. The number of SMs does
not change that."""

PAIRS, ENOUGH, UNEVEN, SOON = 66, 59, 0.15, 4
"""Two SMs share a way to L2, so an SM reads faster while the one beside it has no tile. If 96 of 132 SMs
read, 36 of them have their port to L2 to themselves, and end early. The 30 pairs that remain cannot use all
of memory's bandwidth, and ENOUGH pairs could. UNEVEN: the time that is lost for each missing pair, as a part
of the time of one SM. SOON: with a few SMs more than pairs, a few pairs are left for a short time, so at most
SOON times as many pairs are lost. 55x24576x6144 took 77.7 us by 96 tiles of 64x256, and 71.9 by 128 of
64x192."""

BY_PAIR = 105e3
"""Bytes in a microsecond that two SMs get that share a way to L2. Blocks of a cluster are on two like these,
so few clusters have few ways. The rate is the power mean of this and of that of memory, with the exponent -6.
On an H200 clusters of four read 2.9e6 bytes in a microsecond by 64 SMs, 3.8e6 by 96 and 4.2e6 by 120."""

BOTH = 8
"""If reading and multiplying take equally long, they overlap only partly. The time is (reading ** BOTH +
multiplying ** BOTH) ** (1 / BOTH), which is 1.09 times as long as either. 124x13824x5120 took 53 us on an
H200 by 54 tiles of 128x256, and 39 by 108 of 128x128, which multiply for half of the time that reading
takes."""

BEGIN = 130
"""Nanoseconds more that reading takes, but an eighth of its time at most: the first bytes are long under
way."""

COPY, SPREAD, MANY_COPIED = 0.83, 1.13, 1.1e6
"""A launch that copies a matrix takes COPY + SPREAD * share microseconds, besides the time of its bytes.
`share` is that of the SMs that copy: min(1, bytes read and written / MANY_COPIED). The next launch begins
early. Copies for 73x73x73 took 0.9 us on an H200, and 2.3 for 3761x131x79."""

SUM, PART, PARTS = 0.82, 0.0045, 2.89e6
"""SUM: microseconds of the launch that adds up the parts of K, which begins early. PART: microseconds for
each part. PARTS: bytes of partial sums that are written, two elements at a time, and read per microsecond.
209x43x1928 with tiles of 64x32 took 5.5 us in two parts, 4.4 in four and 4.3 in eight. 64x64x16384 took 5.5
us in 18 parts and 4.8 in 32."""


@dataclass(frozen=True)
class Estimate:
    """What the time of a gemm is made of. tiles: of C. rounds: in which SMs take them. k_tiles: of a tile.
    each: cycles of a K tile. stored: those of the end of a tile. once: those of the launch. clock: cycles in
    a nanosecond. reading: nanoseconds in which the SMs that have tiles get A and B and write C. parts: of K;
    SMs take all tiles for each of them. adding: microseconds of the launch that adds these up. copies:
    matrices that launches before or after copy. copying: microseconds of that. slower: how many times as long
    as `tma_store` a rung takes besides."""

    tiles: int
    rounds: int
    k_tiles: int
    each: float
    stored: float
    once: float
    clock: float
    reading: float = 0
    parts: int = 1
    adding: float = 0
    copies: tuple[str, ...] = ()
    copying: float = 0
    slower: float = 1

    @classmethod
    def of(cls, gemm: HalfGemm, config: hopper.Tiling, parts: int = 1, early: bool = True) -> "Estimate":
        """early: whether the rung's launches may begin early."""
        clusters, blocks = specialization.tiles_of(gemm, config), config.blocks
        rounds = ceil_div(clusters, specialization.clusters_at_once(hopper.WAVE // parts, blocks))
        at_once = ceil_div(clusters, rounds) * blocks * parts
        share = at_once / hopper.WAVE
        elements = config.bm * config.bn
        waits, slower = crowding(gemm, config, rounds)
        once = cycles_once(elements, share) + MEETING[blocks] + CONSUMER * (config.consumers - 1) + waits
        if not early or blocks == 1 and reads_unevenly(at_once, hopper.WAVE, gemm.bytes):
            once += APART
        if rounds == 1 and getattr(config, "stages", ENOUGH_STAGES) < ENOUGH_STAGES:
            once += SHALLOW
        k_tiles = ceil_div(ceil_div(gemm.k, hopper.DEPTH), parts)
        each = cycles_per_k_tile(gemm, config, share, rounds) + slower
        stored = STORED + cycles_per_element(gemm, config, parts, share) * elements
        stored += cycles_of_low_boxes(gemm, config)
        if rounds > 1:
            stored += cycles_of_waits(gemm, config) * stored / (stored + k_tiles * each)
        reading = nanoseconds_of_reading(gemm, config, clusters * blocks * parts / rounds)
        reading *= unevenness(clusters * blocks * parts / rounds)
        rows = clusters * blocks * (config.bm + config.bn + copied_rows(config)) / 2
        copied = rows * hopper.ROW_BYTES * ceil_div(gemm.k, hopper.DEPTH)
        reading *= 1 + FROM_L2 * max(0, copied / bytes_of_operands(gemm) - 1)
        reading += nanoseconds_of_writing(gemm, config.consumers, config.swap > 0)
        cycles = once + max(rounds * (k_tiles * each + stored), CLOCK * reading)
        ran = clusters * blocks * parts * k_tiles / hopper.WAVE / cycles
        fetched = rounds * parts * k_tiles * fetched_at_once(gemm, config, parts) / hopper.WAVE / cycles
        return cls(
            clusters * blocks,
            rounds,
            k_tiles,
            each,
            stored,
            once,
            clock_of(
                ran * products_of(config) * power_of(gemm),
                ran * hopper.ROW_BYTES * (config.bm + config.bn),
                fetched * hopper.ROW_BYTES,
                (gemm.bytes - bytes_of_operands(gemm)) / hopper.WAVE / cycles,
            ),
            reading,
            parts,
            adding_up(gemm, parts),
        )

    @property
    def multiplying(self) -> float:
        """Nanoseconds of an SM, until its last tile ends."""
        return (self.rounds * self.k_tiles * self.each + (self.rounds - 1) * self.stored) / self.clock

    @property
    def besides(self) -> float:
        """Nanoseconds of what comes once, and of the end of the last tile."""
        return (self.once + self.stored) / self.clock

    @property
    def alone(self) -> float:
        """Nanoseconds of the launch that multiplies, where memory is fast enough."""
        return self.multiplying + self.besides

    @property
    def nanoseconds(self) -> float:
        """Nanoseconds of the rung's own launch."""
        longer, shorter = max(self.multiplying, self.reading), min(self.multiplying, self.reading)
        return longer * (1 + (shorter / longer) ** BOTH) ** (1 / BOTH) + self.besides

    @property
    def microseconds(self) -> float:
        """Microseconds of all launches."""
        return self.slower * self.nanoseconds / 1000 + self.adding + self.copying

    def __str__(self) -> str:
        parts = f" in {self.parts} parts of K" if self.parts > 1 else ""
        read = f", {self.reading:.0f} ns for A, B and C" if self.reading > self.multiplying else ""
        slower = f", {self.slower:.2f} times that" if self.slower != 1 else ""
        sums = f", {self.adding:.1f} us for the sum of parts" if self.parts > 1 else ""
        copies = f", {self.copying:.1f} us for copies of {' and '.join(self.copies)}" if self.copies else ""
        return (
            f"{self.tiles} tiles{parts}, {self.rounds} for an SM, of {self.k_tiles} K tiles in"
            f" {self.each:.0f} cycles each{read}, {self.stored:.0f} cycles for the end of a tile and"
            f" {self.once:.0f} once, at {1000 * self.clock:.0f} MHz{slower}{sums}{copies}:"
            f" {self.microseconds:.1f} us"
        )

    def after(self, launches: Iterable[Preparation]) -> "Estimate":
        """With launches around it."""
        launches = tuple(launches)
        copied = tuple(name[0] for each in launches for name in each.copies)
        return replace(self, copies=copied, copying=copying(launches))


def adding_up(gemm: Gemm, parts: int) -> float:
    """Microseconds of the launch that adds up parts of K; 0 where there is one part."""
    return SUM + PART * parts + 4 * (parts + 1) * gemm.m * gemm.n / PARTS if parts > 1 else 0


def copying(launches: Iterable[Preparation]) -> float:
    """Microseconds of launches that copy matrices."""
    return sum(
        COPY + SPREAD * min(1, each.workload.bytes / MANY_COPIED) + each.workload.bytes / MEMORY
        for each in launches
    )


def estimate(gemm: HalfGemm, rung: Rung, slower: float = 1, odd: float = 1, early: bool = True) -> Estimate:
    """The estimate of a rung, with the launches around its own.

    slower: how many times as long as `tma_store` it takes, in the geometric mean of sizes from 1024 to 8192
    on an H200. odd: the same where rows of A or B are not multiples of 16 bytes, of sizes from 1023 to 4095.
    early: whether its launches may begin early.
    """
    before, after = rung.others(gemm)
    found = Estimate.of(gemm, rung.config, rung.declared(gemm).parts, early).after([*before, *after])
    return replace(found, slower=odd if gemm.misaligned else slower)


def cycles_once(elements: int, share: float) -> float:
    """Cycles of a launch until the first K tiles of so many elements of C have arrived, if a share of the SMs
    have a tile."""
    return LAUNCH + FIRST * elements * (1 + share)


def products_of(config: hopper.Tiling) -> float:
    """Cycles of the tensor cores for a K tile."""
    return config.bm * config.bn * hopper.DEPTH / PRODUCTS


def clock_of(multiplied: float, copied: float, fetched: float, written: float) -> float:
    """Cycles in a nanosecond. multiplied: the share of them in which tensor cores multiply. copied: bytes of
    K tiles that an SM gets in one. fetched: of different rows and columns, as many for each SM. written: of
    C, likewise."""
    less = MULTIPLIED * multiplied + COPIED * copied + FETCHED * fetched + WRITTEN * written
    return min(CLOCK, IDLE - less)


def power_of(gemm: HalfGemm) -> float:
    """Power of products over that of float16 factors and float32 sums."""
    less = LESS_POWER["float16 sums"] * (gemm.accumulate == "float16")
    return 1 - less - LESS_POWER["bfloat16"] * (gemm.dtype == "bfloat16")


def clusters_of(gemm: HalfGemm, config: hopper.Tiling) -> tuple[int, int, int, int]:
    """Rows and columns of clusters' tiles, as wgmma has them, and the rows and columns of one."""
    rows, columns = (gemm.n, gemm.m) if config.swap else (gemm.m, gemm.n)
    tall, wide = config.tall * config.stacked, config.wide * config.beside
    return ceil_div(rows, tall), ceil_div(columns, wide), tall, wide


def fetched_at_once(gemm: HalfGemm, config: hopper.Tiling, parts: int) -> float:
    """Different rows and columns of C that SMs multiply at a time in one of so many parts of K."""
    down, across, tall, wide = clusters_of(gemm, config)
    at_once = specialization.clusters_at_once(hopper.WAVE // parts, config.blocks)
    height = min(down, getattr(config, "group", 1))
    extent = extent_at_once(height, down, across, min(at_once, down * across), tall, wide)
    return min(extent, gemm.m + gemm.n)


def extent_at_once(height: int, down: int, across: int, at_once: int, tall: int, wide: int) -> float:
    """Rows and columns of C that clusters multiply at a time, in the mean, in stripes of so many rows."""
    last = down % height

    def extent(rows: int) -> float:
        if rows * across < at_once:
            return at_once / across * tall + across * wide
        return rows * tall + at_once / rows * wide

    return extent(height) if not last else ((down - last) * extent(height) + last * extent(last)) / down


def cycles_per_k_tile(gemm: HalfGemm, config: hopper.Tiling, share: float, rounds: int = 1) -> float:
    """Cycles of a K tile while a share of the SMs multiply. It is the largest of three times: products and
    copies together, which overlap only partly; a turn of the ring, divided by the number of stages; and, in
    clusters of four, SHARED_BY_FOUR."""
    full, few = form_cycles(form_of(config), way_of(config), rounds > 1)
    copies = cycles_of_rows(gemm, config, share)
    turn = LATENCY + (copies or copied_rows(config)) + 2 * products_of(config)
    turn = turn / getattr(config, "stages", 1) if config.free else 0
    meeting = SHARED_BY_FOUR[config.stacked == config.beside] if config.blocks == 4 else 0
    multiplied = few + (full - few) * share
    return max((multiplied**HIDDEN + copies**HIDDEN) ** (1 / HIDDEN), turn, meeting)


@lru_cache(maxsize=4096)
def form_cycles(form: tuple[int, int, int, int], way: str, several: bool) -> tuple[float, float]:
    """Cycles of a K tile of a form, see `form_of`, while all SMs multiply and while few do. several: whether
    SMs have several tiles each."""
    few = form_cost(K_TILE, *form, "few")
    if several and way in ("alone", "swapped"):
        # in which order SMs take tiles says more than whether A and B are swapped
        full = min(form_cost(K_TILE_AGAIN, *form, each) for each in ("alone", "swapped"))
    else:
        full = form_cost(K_TILE_AGAIN if several else K_TILE, *form, way)
    products = form[0] * form[3] * hopper.DEPTH / PRODUCTS
    full, few = (products if each < CLOSE * products else each for each in (full, few))
    return full, few


def copied_rows(config: hopper.Tiling) -> float:
    """Rows of a K tile that an SM copies itself; the others come from the block beside it."""
    return config.bm / config.cluster_n + config.bn / config.cluster_m


def form_of(config: hopper.Tiling) -> tuple[int, int, int, int]:
    """Rows, warpgroups, whether they part columns, and columns."""
    return config.tall, config.consumers, config.part_columns, config.wide


def way_of(config: hopper.Tiling) -> str:
    """How a form is used, as K_TILE_AGAIN has it."""
    sides = [name for name, blocks in (("rows", config.beside), ("columns", config.stacked)) if blocks > 1]
    shared = f"{' and '.join(sides)} shared" if sides else ""
    shared += " by four" if config.blocks == 4 and len(sides) == 1 else ""
    return ", ".join(filter(None, ("swapped" * config.swap, shared))) or "alone"


def form_cost(
    table: dict[tuple[int, int, int], Costs],
    tall: int,
    consumers: int,
    part_columns: int,
    wide: int,
    way: str,
) -> float:
    """Cycles of a K tile. If a form was not timed in this way, its time without the swap is used, or else its
    time in one round. If its number of columns is outside the measured range, it gets the cycles per element
    of the form that is nearest in size."""
    kind = table.get((tall, consumers, part_columns)) or K_TILE.get((tall, consumers, part_columns), {})
    measured = kind.get(way) or kind.get(way.removeprefix("swapped, ")) or {}
    if (found := interpolated(measured, wide)) is not None:
        return found
    if table is not K_TILE:
        return form_cost(K_TILE, tall, consumers, part_columns, wide, way)
    way = way.removeprefix("swapped, ")
    way = way if way in OF_FOUR or way == "few" else "alone"
    return by_size({kind: ways[way] for kind, ways in K_TILE.items() if way in ways}, tall * wide)


def interpolated(measured: Mapping[int, float], wide: int) -> float | None:
    """The cycles of so many columns, between those that were measured; None for columns beyond them."""
    if not measured or not min(measured) <= wide <= max(measured):
        return None
    below = max(each for each in measured if each <= wide)
    above = min(each for each in measured if each >= wide)
    part = (wide - below) / (above - below) if above > below else 0
    return measured[below] + (measured[above] - measured[below]) * part


def by_size(table: Mapping[tuple[int, int, int], Mapping[int, float]], size: int) -> float:
    """The cycles of so many elements of C, by the form that is nearest in size."""
    sizes = {rows * each: cycles for (rows, *_), kind in table.items() for each, cycles in kind.items()}
    nearest = min(sizes, key=lambda found: abs(found - size))
    return sizes[nearest] * size / nearest


def cycles_of_rows(gemm: HalfGemm, config: hopper.Tiling, share: float) -> float:
    """In which an SM gets the rows of a K tile that it copies, while a share of the SMs do. Of B there is a
    row for each column: stored K x N, it comes in boxes of 64 rows and columns."""
    found, crowd = 0.0, share**CROWD if config.blocks == 1 else 1
    b_row = gemm.k if gemm.transposed else gemm.n
    readers = 0 if gemm.transposed else ceil_div(gemm.m, config.bm) / config.cluster_m
    for rows, row, read_by in (
        (config.bm / config.cluster_n, gemm.k, 0),
        (config.bn / config.cluster_m, b_row, readers),
    ):
        whole = alignment(2 * row, getattr(config, "line", 16))
        if whole in ROWS:
            start, busy, same = ROWS[whole]
            found += rows * (start + busy * crowd + same * min(1, read_by / READERS))
    return found + ROW_START if found else 0


def crowding(gemm: HalfGemm, config: hopper.Tiling, rounds: int) -> tuple[float, float]:
    """Additional cycles once, and of each K tile, if many clusters read the same rows, see CROWDED. With
    several rounds there are no more, because clusters then read different rows."""
    costs = CROWDED.get(alignment(2 * gemm.k, getattr(config, "line", 16)))
    if costs is None or rounds > 1:
        return 0, 0
    found = 0.0
    for rows, across, tile, blocks, along_k in (
        (config.bm / config.cluster_n, gemm.n, config.bn, config.cluster_n, True),
        (config.bn / config.cluster_m, gemm.m, config.bm, config.cluster_m, gemm.transposed),
    ):
        more = (ceil_div(across, tile) / blocks - FEW_READERS) / (ALL_READERS - FEW_READERS)
        found += rows * min(1, max(0, more)) if along_k else 0
    return costs[0] * found, costs[1] * found


def alignment(row: int, line: int) -> int:
    """What rows of so many bytes are multiples of, a line at most, or their copies. line: rows that are not
    a multiple of it are copied to whole lines."""
    return math.gcd(row, hopper.ROW_BYTES) if row % line == 0 else hopper.ROW_BYTES


def cycles_per_element(gemm: HalfGemm, config: hopper.Tiling, parts: int, share: float) -> float:
    """Cycles for each element of C at the end of a tile, while a share of the SMs have one."""
    each = ELEMENT * (1 + share)
    if getattr(config, "boxes", 1):
        row = specialization.box_of(gemm, config)[1] * hopper.SIZES[gemm.result]
        by_threads = 0 if gemm.c_aligned else BY_THREADS * share
        return each + NARROW_ROWS[row] + by_threads
    if parts > 1:
        return each + FLOATS
    few, all_sms = SINGLE if gemm.n % 2 or config.swap else REGISTERS
    return each + max(few, all_sms * share)


def cycles_of_low_boxes(gemm: HalfGemm, config: hopper.Tiling) -> float:
    """Additional cycles at the end of a tile whose boxes have fewer than 64 rows."""
    if not config.swap or not getattr(config, "boxes", 0):
        return 0
    height, _ = specialization.box_of(gemm, config)
    more = config.columns / height - config.columns / hopper.ROWS
    return BOX * config.rows // hopper.ROWS * max(0, more)


def cycles_of_waits(gemm: HalfGemm, config: hopper.Tiling) -> float:
    """Cycles that a warpgroup waits at the end of a tile if all SMs store: it fills a box again when L2 has
    taken that box. At 12871x1032x128 192x96 with two of nine boxes took 19.4 us, and 192x64 with all 14.4."""
    if not isinstance(config, specialization.Stored) or not config.boxes:
        return 0
    tall, wide = specialization.box_of(gemm, config)
    rows, columns, room = specialization.boxes_of(gemm, config)
    return (rows * columns - room) * tall * wide * hopper.SIZES[gemm.result] / STORE


def bytes_of_operands(gemm: HalfGemm) -> int:
    """Of A and B."""
    return hopper.SIZES[gemm.dtype] * gemm.k * (gemm.m + gemm.n)


def nanoseconds_of_reading(gemm: HalfGemm, config: hopper.Tiling, busy: float) -> float:
    """In which so many SMs get A and B from memory."""
    rows = [extent / ceil_div(extent, tile) for extent, tile in ((gemm.m, config.bm), (gemm.n, config.bn))]
    under_way = busy * getattr(config, "stages", 2) * hopper.ROW_BYTES * sum(rows)
    filled = sum(rows) / (config.bm + config.bn)  # share of boxes
    rate = min(MOST, FILLED * filled, READ * under_way / (under_way + HALF))
    if config.blocks > 1:
        rate *= (1 + (rate / (BY_PAIR * busy / 2)) ** 6) ** (-1 / 6)
    time = 1000 * bytes_of_operands(gemm) / rate
    return time + min(BEGIN, time / 8)


def unevenness(busy: float) -> float:
    """How many times as long so many SMs read as all would, because pairs of SMs share a way to L2."""
    beside = busy - PAIRS
    return 1 + UNEVEN * max(0, min(SOON * beside, ENOUGH - beside)) / busy


def nanoseconds_of_writing(gemm: HalfGemm, consumers: int, swapped: bool = False) -> float:
    """In which memory takes C from so many warpgroups of each block."""
    size = gemm.bytes - bytes_of_operands(gemm)
    times = 1.0
    if size > L2:
        times *= 1 if gemm.c_aligned else (1 + IN_PART) * (MANY if consumers > 1 else 1)
        times *= IN_COLUMNS if swapped else 1
    return 1000 * times * size / MOST
