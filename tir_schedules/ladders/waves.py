"""The time of a GEMM whose blocks all do the same work: a model with two or three figures for each rung.

The busiest SM decides. Its number of blocks is the grid divided by the SMs, rounded up. They multiply at a
rate that was measured, and that is lower if they are few. The model adds the time of a launch, and no kernel
is faster than memory allows. Figures are of an H200; on another GPU with about as many SMs the order of rungs
is much the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot, prod
from typing import TYPE_CHECKING, Any, Callable

from tir_schedules.model.launch import ceil_div
from tir_schedules.model.rung import Rung
from tir_schedules.workloads import MOST_ELEMENTS

if TYPE_CHECKING:
    from tir_schedules.workloads.gemm import Gemm

SMS = 132
LAUNCH = 1.92  # microseconds
EARLIER = 0.5
"""Microseconds less of a launch that begins before the one ahead of it has ended, because it has no more
blocks than SMs: on an H200 sgemm/split_k took 4.4 us at 256x256x256 in place of 4.9."""

MEMORY = 3.76e6  # bytes in a microsecond: A, B and C, and copies
CACHE = 5.7e6  # the same of partial sums, which L2 holds

L2 = 50 << 20
"""Bytes of L2."""

SCATTERED = 0.47e6
"""Bytes of C in a microsecond if its rows are not multiples of 16 bytes, and the elements that a warp stores
at once are apart. Each store fills only parts of several sectors. Measured on an H100 with K = 64, in MB:
0.43 and 0.52 by `serpentine` at 2334x15526 and 10142x9735, whose C is larger than L2, 0.38 at 1896x4559, and
0.45 by `bf16x6` at 1820x12417. A C of 26 MB, which L2 holds, took `bf16x6` no longer than others. cuBLAS has
1.03."""

MOST_PROGRAMS, MOST_WORTH = 1 << 16, 1 << 12
"""Of programs that share tiles: blocks, and units of K that sharing must save each. Twins multiply them as
int."""

FITTED = 1024
"""Extent along K at which `odd` of a Rate was fitted, with the start and the end of a block in it."""


def counts_of_parts(gemm: Gemm, k_tiles: int, most: int) -> list[int]:
    """In how many parts K can be divided, `most` at most or else 1, so that each part has other K tiles, and
    32 bits count the elements of all parts of C."""
    most = min(k_tiles, most, (MOST_ELEMENTS - 1) // (gemm.m * gemm.part_pitch))
    return sorted({ceil_div(k_tiles, ceil_div(k_tiles, parts)) for parts in range(1, max(1, most) + 1)})


@dataclass(frozen=True)
class Waves:
    """What the model says. blocks: of the grid. on_one: of these for the busiest SM. slow: why it is slower
    than other shapes let expect, where it is."""

    blocks: int
    on_one: int
    microseconds: float
    slow: str = ""

    def __str__(self) -> str:
        slow = f", {self.slow}" if self.slow else ""
        blocks = "1 block" if self.blocks == 1 else f"{self.blocks} blocks"
        return f"{blocks}, {self.on_one} for an SM{slow}: {self.microseconds:.1f} us"


@dataclass(frozen=True)
class Rate:
    """Of a rung. full: multiply-adds of an SM in a nanosecond, where it has many blocks. few: b blocks on an
    SM reach b / (b + few) of that. odd: share of it where rows are copied element by element, and odd_few:
    what few is then, where it is another; slow: what happens to these rows. elements: whether they are copied
    so, by default where rows of A or B are not multiples of 16 bytes. late: as few, of such rows, for each K
    tile after the first, whose copies begin no sooner than the one before is multiplied. fill: extent along K
    in which a block could multiply while it waits for its first tiles and writes its last. apart: whether the
    elements of C that a warp stores at once are, see SCATTERED."""

    full: float
    few: float
    odd: float = 1
    slow: str = ""
    odd_few: float | None = None
    elements: Callable[[Any], bool] = lambda gemm: bool(gemm.misaligned)
    late: float = 0
    fill: int = 0
    apart: bool = False

    def __call__(self, gemm: Gemm, rung: Rung) -> Waves:
        config = rung.config
        blocks = prod(rung.declared(gemm).grid)
        tile = getattr(config, "bm", 0) * getattr(config, "bn", 0) or config.ts**2
        on_one = ceil_div(blocks, SMS)
        odd = self.elements(gemm)
        rate = self.full * (self.odd * (1 + self.fill / FITTED) if odd else 1)
        few = self.odd_few if odd and self.odd_few is not None else self.few
        deep = getattr(config, "bk", 1)
        depth = ceil_div(gemm.k, deep) * deep
        late = self.late * (depth - deep) if odd else 0
        busy = max(((on_one + few) * (depth + self.fill) + late) * tile / rate / 1000, gemm.bytes / MEMORY)
        busy = hypot(busy, writing_apart(gemm, 0)) if self.apart else busy  # neither hides the other wholly
        return Waves(blocks, on_one, LAUNCH + busy, self.slow if odd else "")


def writing_apart(gemm: Gemm, least: int = L2) -> float:
    """Microseconds that writing C takes at least where elements are stored apart: see SCATTERED. least: bytes
    of C above which it does."""
    size = 4 * gemm.m * gemm.n
    return size / SCATTERED if size > least and gemm.n % gemm.vector else 0.0
