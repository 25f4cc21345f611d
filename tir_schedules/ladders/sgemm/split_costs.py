"""How long products of parts take on Hopper, and which tiles take a GEMM the least time.

As in HGEMM, what is measured is a tile, never the time of a gemm: the nanoseconds of a K tile while all SMs
multiply and while few do. The rest of the estimate is that of `hgemm/tile_costs`: rounds in which SMs take
tiles, what comes once, and the launch that splits A and B.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Callable, Mapping, TypeVar

from tir_schedules.ladders.hgemm import hopper, specialization
from tir_schedules.ladders.hgemm.tile_costs import (
    ELEMENT,
    LAUNCH,
    REGISTERS,
    SINGLE,
    STORED,
    Estimate,
    cost_in,
    form_cost,
)
from tir_schedules.ladders.sgemm.split_products import Config
from tir_schedules.model.launch import ceil_div
from tir_schedules.model.rung import Rung
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.split_gemm import SplitGemm

K_TILE = {
    "fp16x3": {
        (64, 1, 0): {64: (407, 172), 128: (677, 395)},
        (128, 2, 0): {128: (1082, 658), 160: (1334, 876), 176: (1527, 996), 192: (1600, 1086)},
        (192, 3, 0): {128: (1566, 1083)},
    },
    "bf16x6": {
        (64, 1, 0): {64: (830, 520), 128: (1089, 1007)},
        (128, 2, 0): {128: (1890, 1675), 192: (2750, 2520)},
        (192, 3, 0): {128: (2801, 2520)},
    },
}
"""Form -> (rows, warpgroups that multiply, 0) -> columns -> nanoseconds of 64 of K while all SMs multiply,
and while 12 to 64 do. Of forms whose K tiles have all parts; measured on an H100. Others are HGEMM's, as
often as there are products."""

STRIPE = 34 << 20
"""Bytes of the parts of A that a stripe of tiles reads again and again, at most: L2 has 50 MB. At 8192 cubed
fp16x3 took 5.22 ms in stripes of 67 MB and 5.03 in stripes of 34."""

FEWEST_ROWS = 4

C = TypeVar("C", bound=Config)


def estimate(gemm: SplitGemm, rung: Rung) -> Estimate:
    """The estimate of a rung, with the launch before."""
    before, _ = rung.others(gemm)
    return estimate_of(gemm, rung.config).after(before)


def estimate_of(gemm: SplitGemm, config: Config) -> Estimate:
    """The same of its own launch."""
    tiles = specialization.tiles_of(gemm, config)
    rounds = ceil_div(tiles, config.programs)
    full, few = cost_of(config)
    share = min(1.0, ceil_div(tiles, rounds) / hopper.WAVE)
    element = ELEMENT + (SINGLE if gemm.n % 2 else REGISTERS)
    return Estimate(
        tiles,
        rounds,
        ceil_div(gemm.k, hopper.DEPTH),
        few + (full - few) * share,
        STORED + element * config.bm * config.bn,
        LAUNCH,
    )


def cost_of(config: Config) -> tuple[float, float]:
    """Nanoseconds of 64 of K, while all SMs multiply and while few do."""
    form = config.bm, config.consumers, 0
    if config.together and config.products in K_TILE:
        return cost_in(K_TILE[config.products], form, config.bn)
    full, few = form_cost(*form, config.bn, False)
    products = len(config.form.products) * config.form.size / 2
    return full * products, few * products


def in_stripes(gemm: SplitGemm, config: C) -> C:
    """A configuration with stripes of so many rows of tiles that L2 keeps their parts of A."""
    rows = STRIPE // (config.bm * gemm.row * gemm.form.size)
    return replace(config, group=max(FEWEST_ROWS, min(config.group, rows)))


def chooser(configs: Mapping[str, C]) -> Callable[[Gemm], C]:
    """The `choose` of a rung: the configuration that is estimated to be the fastest. Of another workload,
    which the rung refuses, the first."""
    given = dict(configs)

    def choose(gemm: Gemm) -> C:
        if not isinstance(gemm, SplitGemm):
            return next(iter(given.values()))
        best = min(given.values(), key=lambda config: estimate_of(gemm, config).nanoseconds)
        return in_stripes(gemm, best)

    return choose
