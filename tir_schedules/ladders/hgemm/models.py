"""Models of the rungs of HGEMM, those for Hopper and those before it.

In some rungs sums and fragments leave few registers for elements under way: wmma_register_pipelined, the
rungs that build on it, and mma_multistage. Their models are off by up to a factor of two. If K is not longer
than one K tile, the fastest rung is one without a launch before it that copies odd rows. If K is several K
tiles, other rungs are faster than mma_multistage:64x64 and wmma_padded:32x64, because these have no copies
under way.

Models of rungs before Hopper are fitted to sizes from 256 to 8192 of recorded benchmarks. They are off by up
to 17 %. Of thirty shapes that are recorded in rungs_hgemm_h200.json and, later, rungs_hgemm_h200_odd.json,
eighteen have odd rows of A, B or C. For odd rows the models are fitted to these eighteen. They are off by up
to 21 %, that of mma_xor_swizzle by 29 %, and that of wmma_naive by 37 %.

At 265x1061x33 mma_multistage:64x64 takes 3.0 us, and split_k takes 4.7 with its copies. At 2001x333x57 they
take 3.9 and 7.3. The figures of mma_multistage:64x64 and of wmma_padded:32x64 are fitted to fourteen odd
shapes on an H100. They are off by up to 25 % if K is one K tile. If K is several K tiles, times are up to
three times as long.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tir_schedules.ladders.hgemm import stream_k, unaligned
from tir_schedules.ladders.hgemm.tile_costs import estimate, nanoseconds_of_writing
from tir_schedules.ladders.sgemm import gemv
from tir_schedules.ladders.sgemm.models import COLUMNS, GEMV, GEMV_BYTES, NARROW, matrix_times_vector
from tir_schedules.ladders.waves import LAUNCH, SMS, Rate, Waves
from tir_schedules.model.rung import Rung
from tir_schedules.workloads.half_gemm import HalfGemm

BY_ELEMENTS = "rows are not a multiple of 16 bytes and are copied element by element"

FILL = 200
"""Extent along K in which a block of 128x256 could multiply while it begins and ends: mma_multistage took
18.6 us at 1664x6272x128 on an H100, and 13.7 at 1024x4992x192, twice what its products take."""

SMALL_FILL = 80
"""The same of a block of 64x64: 1536x3904x64 took 9.7 us, 12 blocks for an SM, and 3008x5760x64 21.5, 33."""


SPREAD, EARLIER = 0.9, 0.2
"""Microseconds more of a launch, times the share of SMs that have a block, because all wait for memory at
once; and those less where hardly any has. mma_multistage:64x64 took 4.4 us at 8169x64x168 on an H200, on 128
SMs, and wmma_padded:32x64 1.9 at 376x32x32, on 12."""

ODD_ROWS = 0.9
"""Microseconds more of a C with odd rows, times the share of SMs that have a block. L2 gets parts of sectors,
and reads the rest from memory: wmma_padded:32x64 took 4.5 us at 41x2255x41 on an H200, and 3.0 with C in
L2."""


@dataclass(frozen=True)
class BeforeHopper(Rate):
    """As Rate. Memory takes an odd C no sooner than from the boxes of a Hopper rung."""

    def __call__(self, gemm: Any, rung: Rung) -> Waves:
        found = super().__call__(gemm, rung)
        share = min(1, found.blocks / SMS)
        begun = (SPREAD + (ODD_ROWS if gemm.n % 2 else 0)) * share - EARLIER
        written = LAUNCH + nanoseconds_of_writing(gemm, 2) / 1000
        return replace(found, microseconds=max(found.microseconds + begun, written))


of_ladder = partial(BeforeHopper, elements=lambda gemm: not gemm.aligned, fill=FILL)
"""Before Hopper a row of C that is not a multiple of 16 bytes has A and B copied by elements, too."""

by_elements = partial(of_ladder, slow=f"{BY_ELEMENTS}, with nothing under way")


BY_COLUMNS = 4.2e6
"""Bytes in a microsecond that `gemv` reads by columns, without parts of K: 1x14336x4096, stored K x N, took
31.5 us on an H200, and 28.7 by tiles of 16x128."""


LOADED = 0.85e6
"""Loads of threads in a microsecond, where `gemv` has several vectors and rows are not multiples of 16 bytes.
On an H200 it took 57.6 us at 4583x4x7585, 59 at 10644x7x4790 and 30.7 at 16152x6x2502; of nine shapes the
estimates are 0.8 to 1.9 times what was measured."""


SEVERAL = 2.3e6
"""Bytes in a microsecond that `gemv` reads by columns for several vectors, if all SMs have a block. On an
H200 it took 12.0 us at 3x1024x2386, where 32 SMs have one, 8.1 at 4x1424x4160, and 141.8 at 8x24576x6144."""


def of_gemv(gemm: HalfGemm, rung: Rung) -> Waves:
    """As that of SGEMM, but slower by columns where these are many, and slower for several vectors by
    columns, or where rows are read in small pieces."""
    found = matrix_times_vector(gemm, rung)
    several, busy = min(gemm.m, gemm.n) > 1, min(1, found.blocks / SMS)
    if several and not gemv.by_rows(gemm):
        return replace(found, microseconds=GEMV + COLUMNS + gemm.bytes / (SEVERAL * busy))
    if several and gemv.width_of(gemm) < gemm.vector:
        loads = loads_of(gemm, rung.config.tm)
        return replace(found, microseconds=GEMV + NARROW + loads / (LOADED * busy))
    whole = rung.declared(gemm).grid[1] == 1
    more = 0 if gemv.by_rows(gemm) or not whole else gemm.bytes * (1 / BY_COLUMNS - 1 / GEMV_BYTES)
    return replace(found, microseconds=found.microseconds + more)


def loads_of(gemm: HalfGemm, rows: int) -> float:
    """Of the matrix, by rows, and of the vectors, once for so many rows."""
    count, width = min(gemm.m, gemm.n), gemv.width_of(gemm)
    interleaved = gemv.of_columns(gemm) and not gemm.transposed
    piece = gemv.piece_of(width * count, gemm.vector) if interleaved else width
    return max(gemm.m, gemm.n) * gemm.k * (1 / width + count / piece / rows)


def of_shares(gemm: HalfGemm, rung: Rung) -> Any:
    """The estimate of `stream_k`, whose programs may share tiles."""
    shared = stream_k.Shares.of(gemm, rung.config).streamed
    return stream_k.estimate(gemm, rung) if shared else estimate(gemm, rung)


apart = partial(estimate, early=False)
"""Of a rung whose launches begin when the one before has ended."""

MODELS = {
    "tile_shapes": estimate,
    "repacked": estimate,
    "split_k": estimate,
    "stream_k": of_shares,
    "gemv": of_gemv,
    "unaligned": unaligned.estimate,
    "tma_store": apart,
    "cluster": apart,
    "persistent": partial(apart, slower=1.14),
    "warp_specialized": partial(apart, slower=1.19),
    "tma": partial(apart, slower=1.17),
    "wgmma_async": partial(apart, slower=1.18, odd=5.6),
    "wgmma": partial(apart, slower=2.24, odd=6.2),
    "mma_multistage:64x64": by_elements(1000, 0.3, odd=0.276, odd_few=0.1, late=1.1, fill=SMALL_FILL),
    "mma_multistage": by_elements(2150, 0.1, odd=0.24, odd_few=0),
    "mma_multistage:128x128": by_elements(1450, 0, odd=0.54, odd_few=3.1, fill=FILL // 2),
    "mma_xor_swizzle": by_elements(1956, 0.15, odd=0.43),
    "mma_ldmatrix": by_elements(1622, 0.05, odd=0.4, odd_few=0.1),
    "wmma_swizzled_grid": by_elements(1600, 0.05, odd=0.3, odd_few=0),
    "wmma_staged_epilogue": by_elements(1517, 0.05, odd=0.31, odd_few=0),
    "wmma_register_pipelined": by_elements(1477, 0.1, odd=0.31, odd_few=0),
    "wmma_pipelined": by_elements(1622, 0.5, odd=0.41, odd_few=0.1),
    "wmma_async": by_elements(1688, 0.8, odd=0.6, odd_few=1),
    "wmma_padded:32x64": of_ladder(270, 0, late=2.5, fill=0),
    "wmma_padded": of_ladder(1400, 1.1, odd=0.78),
    "wmma_shared": of_ladder(727, 0.5, odd=0.58, odd_few=0.1),
    "wmma_naive": of_ladder(115, 0.14, odd=2, odd_few=3, fill=0),
}
