"""Models of the rungs of SGEMM.

Rungs before `vectorized` read single floats at any shape. Other rungs keep only a share of their rate if rows
are not multiples of 16 bytes. This share was measured only for `serpentine`.

Models of rungs before `multistage` are fitted to sizes from 256 to 8192 of bench_sgemm_h200.json. They are
off by up to 9 %, and those of transposed, lane_quads and warp_tiling by up to 19 %.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import hypot, prod
from typing import Any, Callable

from tir_schedules.ladders.sgemm import pipelined, shapes, split_costs, split_k, stream_k
from tir_schedules.ladders.sgemm.gemv import by_rows, plan_of, width_of
from tir_schedules.ladders.waves import LAUNCH, MEMORY, SMS, Rate, Waves, writing_apart
from tir_schedules.model.gpus import WARP
from tir_schedules.model.launch import ceil_div
from tir_schedules.model.rung import Rung
from tir_schedules.workloads.gemm import Gemm
from tir_schedules.workloads.half_gemm import HalfGemm
from tir_schedules.workloads.split_gemm import SplitGemm

quads = partial(Rate, odd=0.73, slow="guards and too few registers for them", apart=True, fill=28)
"""`fill` is from K of 64 and 128 on an H200, where `serpentine` took 57 us at 11648x1216x64, and 52 at
960x7808x128."""


GEMV, GEMV_BYTES = 2.35, 4.6e6
"""Microseconds of a launch of `gemv`, and bytes that it reads in one. Measured on an H200: 3072x1x3072 6.4
us of halves and 10.4 of floats."""
COLUMNS = 1.0
"""Microseconds more where threads have columns of B: 1x4096x4096 took 18.0 us, 1x3072x12288 36.3,
2x6144x24576 136 and 1x777x777 3.1."""
BY_BLOCK, MANY_VECTORS, MANY_BYTES = 15e3, 4, 2.9e6
"""By columns for several vectors. BY_BLOCK: bytes that a block reads in a microsecond. On an H200 3x1296x9848
took 42.1 us by 81 blocks, 3x2560x10240 47.1 by 160, and 3x4096x1024 8.2 by 256. MANY_BYTES: those that all
read at most for MANY_VECTORS or more. 5x14336x4096 took 90 us, and 8x4096x16384 85."""
NARROW = 0.7
"""The same by rows that are not multiples of 16 bytes: 3333x1x1001 took 4.7 us."""
FEW_BYTES, FEW_TURN, FOLDED = 3.9e6, 2.2, 1830
"""Bytes that it reads in a microsecond by rows for several vectors, microseconds of each iteration over K
after the first, and shuffles of an SM's warps in a microsecond. Measured on an H200: 7128x2x8600 64.5 us,
576x6x4976 12.1, 640x2x2152 7.3, 753x2x1053 3.1, and of halves 8x3072x768 5.7."""


def matrix_times_vector(gemm: Gemm | HalfGemm, rung: Rung) -> Waves:
    """The estimate of `gemv`, also that of HGEMM: the time to read the matrix."""
    narrow, blocks = width_of(gemm) < gemm.vector, prod(rung.declared(gemm).grid)
    if not by_rows(gemm):
        more, busy = COLUMNS, gemm.bytes / bytes_by_columns(gemm.m, blocks)
    elif min(gemm.m, gemm.n) == 1:
        more, busy = NARROW * narrow, gemm.bytes / GEMV_BYTES
    else:
        plan = plan_of(gemm, rung.config)
        shuffles = plan.block // WARP * plan.values * plan.vectors * (min(plan.lanes, WARP).bit_length() - 1)
        more = NARROW * narrow + ceil_div(blocks, SMS) * shuffles / FOLDED
        busy = max(gemm.bytes / (FEW_BYTES * min(1, blocks / SMS)), FEW_TURN * (plan.iterations - 1))
    slow = "rows are not a multiple of 16 bytes and are read in smaller pieces" if narrow else ""
    return Waves(blocks, ceil_div(blocks, SMS), GEMV + busy + more, slow)


def bytes_by_columns(vectors: int, blocks: int) -> float:
    """Bytes that `gemv` reads in a microsecond by columns."""
    if vectors == 1:
        return GEMV_BYTES
    return min(MANY_BYTES if vectors >= MANY_VECTORS else GEMV_BYTES, BY_BLOCK * blocks)


def shared_along_k(gemm: Gemm, rung: Rung) -> shapes.Estimate:
    """Of `split_k`. A C that is not that of parts is stored apart, unless it goes through shared memory."""
    found = shapes.estimate(gemm, rung)
    if found.parts > 1 or split_k.writes_in_rows(gemm, rung.config):
        return found
    return replace(found, microseconds=max(found.microseconds, LAUNCH + writing_apart(gemm)))


def after_a_split(gemm: SplitGemm, rung: Rung) -> shapes.Estimate:
    """Of `fp16x3_mma`: with the launch that splits A and B."""
    found, (before, _) = shapes.estimate(gemm, rung), rung.others(gemm)
    return replace(found, microseconds=found.microseconds + split_costs.scaling(before))


def unsplit(gemm: Gemm, rung: Rung) -> shapes.Estimate:
    """The estimate of `multistage`, whose kernel is that of `split_k` with one part."""
    return one_part_estimate(gemm, rung, **vars(rung.config))


def one_part_estimate(gemm: Gemm, rung: Rung, **fields: int) -> shapes.Estimate:
    """The estimate of `split_k` with these fields."""
    return shared_along_k(gemm, replace(rung, config=split_k.Config(**fields, splits=1)))


@dataclass(frozen=True)
class Sharing:
    """Times of `stream_k` if programs share tiles. rate: multiply-adds of an SM in a nanosecond. tile, once:
    microseconds for each tile of an SM, and once. adding: microseconds for each part of a tile that is added
    to others, one after the other, if there are fewer tiles than programs."""

    rate: float
    tile: float
    once: float
    adding: float


SHARED, SHARED_ODD = Sharing(200, 0.15, 16.4, 1.0), Sharing(198, 8.2, 10.8, 3.7)
"""Fitted to 60 measurements on an H200 with inputs in DRAM, of 35 shapes: off by 1 to 4 % where there are 40
tiles or more, and by up to 18 % where there are fewer, because their parts are many."""


@dataclass(frozen=True)
class Streamed:
    """What the model says of programs that share tiles."""

    shares: stream_k.Shares
    microseconds: float

    def __str__(self) -> str:
        programs = f"{self.shares.programs} programs share {self.shares.streamed}"
        return f"{self.shares.tiles} tiles, {programs} of them: {self.microseconds:.1f} us"


def stream_k_estimate(gemm: Gemm, rung: Rung) -> shapes.Estimate | Streamed:
    """The estimate of `stream_k`. If nothing is shared, it is that of `serpentine`, or of `split_k` in one
    part."""
    shares, tile = stream_k.Shares.of(gemm, rung.config), rung.config.bm * rung.config.bn
    tiles = {name: value for name, value in vars(rung.config).items() if name not in ("programs", "worth")}
    if not shares.streamed and stream_k.writes_in_rows(gemm, rung.config):
        return one_part_estimate(gemm, rung, **tiles, asynchronous=0)
    if not shares.streamed:
        return in_one_part(gemm, replace(rung, config=pipelined.Config(**tiles)))
    for_an_sm = shares.tiles / min(shares.programs, SMS)
    others = max(0.0, shares.programs / shares.tiles - 1)
    figures = SHARED_ODD if gemm.misaligned else SHARED
    busy = max(for_an_sm * (tile * gemm.k / figures.rate / 1000 + figures.tile), gemm.bytes / MEMORY)
    return Streamed(shares, figures.once + busy + figures.adding * others)


def in_one_part(gemm: Gemm, rung: Rung) -> shapes.Estimate:
    """Of `pipelined` and `serpentine`: that of `split_k` with such tiles and one part, but lanes write their
    elements of C apart."""
    found = one_part_estimate(gemm, rung, **vars(rung.config), asynchronous=0)
    return replace(found, microseconds=hypot(found.microseconds, writing_apart(gemm, 0)))


def at(share: float, model: Callable[[Gemm, Rung], shapes.Estimate]) -> Callable[[Gemm, Rung], Any]:
    """The estimate of a rung that has this share of the rate of another."""

    def estimate(gemm: Gemm, rung: Rung) -> shapes.Estimate:
        found = model(gemm, rung)
        return replace(found, microseconds=found.microseconds / share)

    return estimate


MODELS = {
    "split_k": shared_along_k,
    "bf16x6_fused": shapes.estimate,
    "bf16x6_mma": shapes.estimate,
    "fp16x3_mma": after_a_split,
    "gemv": matrix_times_vector,
    "multistage": unsplit,
    "serpentine": in_one_part,
    "stream_k": stream_k_estimate,
    "pipelined": at(0.98, in_one_part),
    "lane_quads": quads(186, 0.6),
    "warp_tiling": quads(143, 2),
    "transposed": quads(171, 0.6),
    "vectorized": quads(131, 0),
    "thread_tile_2d": Rate(128, 0.05, apart=True),
    "thread_tile_1d": Rate(48.2, 0.1),
    "shared_tile": Rate(36.4, 0.4),
    "coalesced": Rate(24.7, 0.4),
    "naive": Rate(1.9, 0),
    **dict.fromkeys(("fp16x3", "bf16x6", "promoted", "split_bf16", "tf32"), split_costs.estimate),
}
