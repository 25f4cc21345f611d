"""What the articles measured, and the rung that each of their steps is here.

Figures are as the articles print them. Their tables reached us as text whose columns had run together; where
the digits could be split in more than one way, or do not agree with each other, a note says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tir_schedules.workloads import workload_class


@dataclass(frozen=True)
class Step:
    """One row of an article's table.

    name: the step, in our words. rung: its id here. figures: as printed, one per size; "" where the article
    has none. also: what else is printed in the row, one per heading in Article.also.
    """

    name: str
    rung: str
    figures: tuple[str, ...]
    also: tuple[str, ...] = ()


@dataclass(frozen=True)
class Article:
    """An article's table.

    about: what it measured, on which GPU. unit: of the figures: "us" of a product or reduction, "GFLOPS" or
    "TFLOPS". sizes: extent of square matrices, or number of elements. also: headings of further columns.
    notes: what must be known to read the figures.
    """

    name: str
    about: str
    family: str
    unit: str
    sizes: tuple[int, ...]
    steps: tuple[Step, ...]
    also: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def workload(self, size: int) -> Any:
        """What the rungs compute at one of the sizes: products of square matrices, or a sum of int32."""
        extents = (size,) if self.family == "reduce" else (size, size, size)
        return workload_class(self.family)(*extents)


REDUCE = Article(
    "002",
    "sum of int32, GPU not named",
    "reduce",
    "us",
    (1 << 25,),
    (
        Step("baseline, divergent branches", "reduce/divergent", ("3118.4",), ("42.503", "~")),
        Step("interleaved addressing", "reduce/interleaved", ("1904.4",), ("73.522", "1.64")),
        Step("bank conflicts removed", "reduce/sequential", ("1475.2",), ("97.536", "2.29")),
        Step("idle threads removed", "reduce/first_add", ("758.38",), ("189.78", "4.11")),
        Step("last warp unrolled", "reduce/unrolled_warp", ("484.01",), ("287.25", "6.44")),
        Step("completely unrolled", "reduce/unrolled", ("477.23",), ("291.77", "6.53")),
    ),
    ("GB/s", "speed-up"),
    (
        (
            "The article does not say how many elements it sums. Time x bandwidth is 133 to 144 MB, and 2^25"
            " elements are 134 MB; no number of elements makes all rows agree."
        ),
        (
            "The article's speed-ups are ratios of times, but for 2.29, which is the ratio of bandwidths:"
            " that of times is 2.11."
        ),
    ),
)

SGEMM_T4 = Article(
    "003",
    "SGEMM, Tesla T4",
    "sgemm",
    "GFLOPS",
    (4096,),
    (
        Step("kernel 1, naive", "sgemm/naive", ("60.8",)),
        Step("kernel 2, coalesced", "sgemm/coalesced", ("499.3",)),
        Step("kernel 3, shared memory", "sgemm/shared_tile", ("750.0",)),
        Step("1D block tiling", "sgemm/thread_tile_1d", ("",)),
        Step("kernel 4, 2D block tiling", "sgemm/thread_tile_2d", ("",)),
        Step("kernel 5, vectorized", "sgemm/vectorized:32x32", ("",)),
    ),
    notes=(
        (
            "The article's matrix size is lost from its text, as are the figures after kernel 3; 4096 is our"
            " choice."
        ),
    ),
)

# thread_tile_1d's first two figures stand as "35.215174.731", which is 35.215 and 174.731, or 35.2151 and
# 74.731. The second reading would make 1D tiling faster than 2D tiling at 512, and faster than vectorized
# accesses.
SGEMM_1080TI = Article(
    "000",
    "SGEMM, GTX 1080 Ti",
    "sgemm",
    "us",
    (256, 512, 1024, 2048),
    (
        Step("naive", "sgemm/naive", ("95.5152", "724.396", "28424", "228681")),
        Step("shared memory", "sgemm/shared_tile", ("40.5293", "198.374", "8245.68", "59048.4")),
        Step("1D thread tile", "sgemm/thread_tile_1d", ("35.215", "174.731", "894.779", "5880.03")),
        Step("2D thread tile", "sgemm/thread_tile_2d:8x8", ("34.708", "92.946", "557.829", "3509.920")),
        Step("vectorized accesses", "sgemm/vectorized", ("36.567", "90.745", "427.701", "2901.475")),
        Step("warp tiling", "sgemm/warp_tiling", ("25.071", "65.810", "361.433", "2651.449")),
    ),
    notes=(
        (
            "The article calls its figures nanoseconds; read so, its GPU would do a thousand times what it"
            " can: they are microseconds."
        ),
        (
            "Naive and shared memory take 39 and 42 times as long at 1024 as at 512, for 8 times the work,"
            " and the others 5 to 6 times; the article does not say why."
        ),
        (
            "The 1D thread tile's first two figures may also be read as 35.2151 and 74.731: the article's"
            " columns have run together."
        ),
    ),
)

HGEMM = Article(
    "001",
    "HGEMM with fp16 sums, B stored as N x K, RTX 4060",
    "hgemm",
    "TFLOPS",
    (4096, 8192),
    (Step("the kernel in full", "hgemm/wmma_swizzled_grid", ("61", "61")),),
    notes=("The article has one figure and no size; 4096 and 8192 are our choice.",),
)

ARTICLES = {article.name: article for article in (REDUCE, SGEMM_T4, SGEMM_1080TI, HGEMM)}
"""Number of an article -> its table, in the order they are shown."""
