"""How long products of parts take on Hopper, and with which tiles a GEMM takes the least time.

As in HGEMM, tiles were measured, not GEMMs: the nanoseconds of a K tile while all SMs multiply, and while few
do. The rest of the estimate is that of `hgemm/tile_costs`: rounds in which SMs take tiles, the time at the
start and the end, and the launch that splits A and B.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Callable, Iterable, Iterator, Mapping, TypeVar

from tir_schedules.ladders.hgemm import hopper, specialization, tile_costs
from tir_schedules.ladders.hgemm.tile_costs import (
    ELEMENT,
    REGISTERS,
    STORED,
    Estimate,
    adding_up,
    by_size,
    cycles_once,
    form_cost,
    interpolated,
)
from tir_schedules.ladders.sgemm import split_scaled
from tir_schedules.ladders.sgemm.split_products import AlongK, Config, divide_programs, splits_of
from tir_schedules.ladders.waves import counts_of_parts, writing_apart
from tir_schedules.model.launch import ceil_div
from tir_schedules.model.rung import Preparation, Rung
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.split_gemm import SplitGemm

K_TILE = {
    "fp16x3": {
        (64, 1, 0): {64: (407, 172), 128: (677, 395)},
        (128, 2, 0): {128: (1082, 658), 160: (1334, 876), 176: (1527, 996), 192: (1600, 1086)},
        (192, 3, 0): {128: (1566, 1083)},
    },
    "bf16x6": {
        (64, 1, 0): {64: (654, 591), 128: (1089, 1007)},
        (128, 2, 0): {128: (1890, 1675), 192: (2750, 2520)},
        (192, 3, 0): {128: (2801, 2520)},
    },
}
"""Form -> (rows, warpgroups that multiply, 0) -> columns -> nanoseconds of 64 of K while all SMs multiply,
and while 12 to 64 do. Of forms whose K tiles have all parts; measured on an H100."""

APART = 1.5
"""Times as long as the same products take HGEMM, where each product loads its own parts and all SMs multiply.
Measured on an H100 at 2048 and 4096 cubed, with promoted sums of bf16x6. While few SMs multiply L2 is fast
enough: at 1024 cubed 64 tiles of 128x128 took 32 us on an H200, without the launch before."""

CLOCK = 1.65
"""Cycles in a nanosecond while these were measured, about."""

STRIPE = 34 << 20
"""Bytes of the parts of A that a stripe of tiles reads again and again, at most: L2 has 50 MB. At 8192 cubed
fp16x3 took 5.22 ms in stripes of 67 MB and 5.03 in stripes of 34."""

FEWEST_ROWS = 8
"""Fewest rows of a stripe. At 8192 cubed 192x128 of fp16x3, 128x128 and 128x192 of bf16x6 took up to 2 %
longer in stripes of 5, though these fit and those of 8 do not."""

SCALED, TURN = 1.79e6, 2.6
"""Bytes that `split_scaled` reads and writes in a microsecond, and microseconds in which each warp of a block
has searched 32 of K of a column and split them. Fitted to 88 measurements of `fp16x3_mma` on an H200."""

C = TypeVar("C", bound=Config)


def estimate(gemm: SplitGemm, rung: Rung) -> Estimate:
    """The estimate of a rung, with the launch before."""
    before, _ = rung.others(gemm)
    found = estimate_of(gemm, rung.config).after(before)
    return replace(found, copying=scaling(before)) if gemm.form.scaled else found


def scaling(launches: Iterable[Preparation]) -> float:
    """Microseconds of the launch that divides rows of A and columns of B by powers of two and splits them."""
    return sum(
        max(each.workload.bytes / SCALED, TURN * split_scaled.turns_of(each.workload)) for each in launches
    )


def estimate_of(gemm: SplitGemm, config: Config) -> Estimate:
    """The same of its own launch."""
    tiles, splits = specialization.tiles_of(gemm, config), splits_of(gemm, config)
    rounds = ceil_div(tiles, divide_programs(gemm, config).programs)
    full, few = cost_of(config)
    share = min(1.0, ceil_div(tiles, rounds) * splits / hopper.WAVE)
    elements = config.bm * config.bn
    columns = gemm.part_pitch if splits > 1 else gemm.n
    return Estimate(
        tiles,
        rounds,
        ceil_div(ceil_div(gemm.k, hopper.DEPTH), splits),
        few + (full - few) * share,
        STORED + sectors_of(columns) * (ELEMENT * (1 + share) + REGISTERS[0]) * elements,
        cycles_once(elements, share),
        CLOCK,
        0 if splits > 1 else 1000 * writing_apart(gemm),
        splits,
        adding_up(gemm, splits),
    )


def sectors_of(columns: int) -> float:
    """How many times as many sectors of C a warp's stores touch as where rows are multiples of 32 bytes. Four
    lanes have eight neighbours of a row. They store them as pairs, and where the row's length is odd in two
    steps, each four elements that are every other one. Rows start anywhere in a sector."""
    if columns % 2:
        return 3.5
    return {0: 1, 4: 1.5}.get(columns % 8, 1.75)


def cost_of(config: Config) -> tuple[float, float]:
    """Cycles of 64 of K, while all SMs multiply and while few do."""
    kind, ways = (config.bm, config.consumers, 0), ("alone", "few")
    if not (config.together and config.products in K_TILE):
        table, products = tile_costs.K_TILE, len(config.form.products) * config.form.size / 2
        full, few = (products * form_cost(table, *kind, config.bn, way) for way in ways)
        return APART * full, few
    measured = K_TILE[config.products]

    def cycles(number: int) -> float:
        table = {
            form: {wide: times[number] for wide, times in each.items()} for form, each in measured.items()
        }
        found = interpolated(table.get(kind, {}), config.bn)
        return CLOCK * (by_size(table, config.bm * config.bn) if found is None else found)

    return cycles(0), cycles(1)


def in_stripes(gemm: SplitGemm, config: C) -> C:
    """A configuration with stripes of so many rows of tiles that L2 keeps their parts of A."""
    rows = STRIPE // (config.bm * gemm.row * gemm.form.size)
    return replace(config, group=max(FEWEST_ROWS, min(config.group, rows)))


def in_short_sums(gemm: SplitGemm, config: C) -> C:
    """A configuration that promotes sums of one K tile in two halves. A longer K has its error reduced by the
    later promotions, but sums of 64 terms of very different sizes would be less accurate than by FMA."""
    short = gemm.k <= hopper.DEPTH and config.promote == hopper.DEPTH
    return replace(config, bk=hopper.DEPTH // 2, promote=hopper.DEPTH // 2) if short else config


def shared_along_k(gemm: SplitGemm, config: C) -> Iterator[C]:
    """A configuration, and where it may share tiles along K, it with each number of parts that SMs have room
    for at a time."""
    if not isinstance(config, AlongK):
        yield config
        return
    k_tiles, tiles = ceil_div(gemm.k, config.bk), specialization.tiles_of(gemm, config)
    for splits in counts_of_parts(gemm, k_tiles, config.programs // tiles):
        yield replace(config, splits=splits)


def chooser(configs: Mapping[str, C]) -> Callable[[Gemm], C]:
    """The `choose` of a rung: the configuration that is estimated to be the fastest. Of another workload,
    which the rung refuses, the first."""
    given = dict(configs)

    def choose(gemm: Gemm) -> C:
        if not isinstance(gemm, SplitGemm):
            return next(iter(given.values()))
        every = (each for config in given.values() for each in shared_along_k(gemm, config))
        best = min(every, key=lambda config: estimate_of(gemm, config).microseconds)
        return in_short_sums(gemm, in_stripes(gemm, best))

    return choose
