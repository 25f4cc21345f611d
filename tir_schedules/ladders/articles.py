"""The five articles: the subject of each, the rung for each of its steps, and its measured figures. The cost
of their listings is in `listings.py`.

Figures are as the articles print them. Their tables reached us as text whose columns had run together. If the
digits could be split in more than one way, or do not agree with each other, a note says so.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Mapping

from tir_schedules.ladders.known import ladder_of
from tir_schedules.ladders.listings import FACTS as FACTS
from tir_schedules.ladders.listings import LISTINGS, Fact
from tir_schedules.model.workload import Workload


@dataclass(frozen=True)
class Step:
    """A step of an article.

    name: in our words. rung: its id here. figures: as printed, one for each of the article's sizes; "" where
    it has none. also: what else is printed in the row, one for each heading in Article.also. facts: of its
    listing, which ARTICLES takes from `listings.py`. layout: of B, where it is another than that of the
    article's other steps.
    """

    name: str
    rung: str
    figures: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    facts: Mapping[str, Fact] = field(default_factory=dict)
    layout: str = ""

    @property
    def typed(self) -> str:
        """The rung with the option that its listing needs, as commands take both."""
        return f"{self.rung} --layout {self.layout}" if self.layout else self.rung


@dataclass(frozen=True)
class Article:
    """An article and its table.

    name: its number. title: its own, or what it is where it has none. about: what it measured, on which GPU.
    unit: of the figures: "us" of a product or sum, "GFLOPS" or "TFLOPS". sizes: extent of square matrices, or
    number of elements. also: headings of further columns. notes: what must be known to read the figures. gpu:
    as the table of datasheets calls it; "" where the article does not name it.
    """

    name: str
    title: str
    about: str
    family: str
    unit: str
    sizes: tuple[int, ...]
    steps: tuple[Step, ...]
    also: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    gpu: str = ""

    def workload(self, size: int) -> Workload:
        """What the rungs compute at one of the sizes: products of square matrices, or a sum of int32."""
        ladder = ladder_of(self.family)
        return ladder.workload_class(*(size,) * len(ladder.extents))


WARP_TILING = Article(
    "000",
    "Warp Tiling",
    "SGEMM, GTX 1080 Ti",
    "sgemm",
    "us",
    (256, 512, 1024, 2048),
    (
        Step("naive", "sgemm/naive", ("95.5152", "724.396", "28424", "228681")),
        Step(
            "shared memory", "sgemm/shared_tile:article_000", ("40.5293", "198.374", "8245.68", "59048.4"),
        ),
        Step(
            "1D thread tile", "sgemm/thread_tile_1d:article_000", ("35.215", "174.731", "894.779", "5880.03"),
        ),
        Step(
            "2D thread tile", "sgemm/thread_tile_2d:article_000", ("34.708", "92.946", "557.829", "3509.920"),
        ),
        Step(
            "vectorized accesses", "sgemm/transposed:article", ("36.567", "90.745", "427.701", "2901.475"),
        ),
        Step(
            "warp tiling", "sgemm/warp_tiling:article", ("25.071", "65.810", "361.433", "2651.449"),
        ),
    ),
    notes=(
        (
            "The article prints no tile sizes; these configurations have those of its series' programs: 64x64"
            " per block and 8 deep, with tiles only in shared memory 32x32 and 32 deep."
        ),
        (
            "The article calls its figures nanoseconds. Then warp tiling at 2048 would run at 6479 TFLOPS on"
            " a GPU of 11 TFLOPS, so they are microseconds."
        ),
        (
            "Naive and shared memory take 39 and 42 times as long at 1024 as at 512, for 8 times the work,"
            " and the others 4.7 to 6 times; the article does not say why."
        ),
        # They stand as "35.215174.731". The second reading would make 1D tiling faster than 2D tiling at
        # 512, and faster than vectorized accesses.
        (
            "The 1D thread tile's first two figures may also be read as 35.2151 and 74.731: the article's"
            " columns have run together."
        ),
    ),
    gpu="gtx1080ti",
)  # fmt: skip

HALF_PRECISION = Article(
    "001",
    "Optimizing Half-Precision GEMM with Tensor Cores",
    "HGEMM with fp16 sums, B stored as N x K, RTX 4060",
    "hgemm",
    "TFLOPS",
    (4096, 8192),
    (
        Step("block and warp tiles", "hgemm/wmma_shared"),
        Step("padding", "hgemm/wmma_padded"),
        Step("asynchronous copies", "hgemm/wmma_async"),
        Step(
            "three buffers in shared memory",
            "hgemm/wmma_pipelined",
        ),
        Step(
            "two buffers in registers",
            "hgemm/wmma_register_pipelined",
        ),
        Step("write-back through shared memory", "hgemm/wmma_staged_epilogue"),
        Step(
            "stripes of blocks: all techniques",
            "hgemm/wmma_swizzled_grid:article",
            ("61", "61"),
        ),
    ),
    notes=(
        "The article has one figure and no size; 4096 and 8192 are our choice.",
        (
            "At 61 TFLOPS the card ran faster than the 2460 MHz of its datasheet, at which tensor cores reach"
            " 60.5."
        ),
        (
            "The article says that odd groups of blocks (blockIdx.z) begin with the first row of blocks and"
            " even ones with the last. Its code has it the other way round, as here."
        ),
        (
            "The article says that CEIL_DIV rounds down. It rounds up, or the last rows and columns of C"
            " would have no block."
        ),
        (
            "The article asks for 92,160 bytes of shared memory where a multiprocessor has more than that"
            " (sharedMemPerMultiprocessor). A block may have only sharedMemPerBlockOptin, which is 1 KiB"
            " less on most GPUs: with a size in between the launch fails."
        ),
        (
            "The article says that cp.async.ca, unlike .cg, has L2 evict what it copies. PTX says otherwise:"
            " .ca keeps it in L1 and L2, .cg only in L2. Here copies of 16 bytes are .cg; those of 4 need"
            " .ca."
        ),
    ),
    gpu="rtx4060",
)

UNROLLING = Article(
    "002",
    "Unrolling the Warp",
    "sum of int32, GPU not named",
    "reduce",
    "us",
    (1 << 25,),
    (
        Step("baseline, divergent branches", "reduce/divergent", ("3118.4",), ("42.503", "~")),
        Step("interleaved addressing", "reduce/interleaved", ("1904.4",), ("73.522", "1.64")),
        Step(
            "bank conflicts removed",
            "reduce/sequential",
            ("1475.2",),
            ("97.536", "2.29"),
        ),
        Step(
            "idle threads removed",
            "reduce/first_add",
            ("758.38",),
            ("189.78", "4.11"),
        ),
        Step("last warp unrolled", "reduce/unrolled_warp:article", ("484.01",), ("287.25", "6.44")),
        Step("completely unrolled", "reduce/unrolled:article", ("477.23",), ("291.77", "6.53")),
    ),
    ("GB/s", "speed-up"),
    (
        (
            "The article does not say how many elements it sums. Time x bandwidth is 133 to 144 MB, and 2^25"
            " elements are 134 MB; no number of elements makes all rows agree."
        ),
        (
            "The article's speed-ups are ratios of times, except for 2.29, which is the ratio of bandwidths:"
            " the ratio of times is 2.11."
        ),
        # They stand as "3118.442.503", "1904.473.522", and so on.
        (
            "The article's times and bandwidths have run together. If a row is split in another way, its time"
            " x bandwidth is less than half of the value here, or more than four times as much."
        ),
        (
            "The article says that threads of a warp are synchronous, so that the last warp needs nothing"
            " between its levels. Since Volta they are not: it needs __syncwarp, which the default has."
        ),
        (
            "The article's complete unroll begins with the level of 512 threads. A block of 1024"
            " would lose half of its sums; here it has one level more."
        ),
        (
            "The article's complete unroll leaves out levels that a smaller block does not have. In a block"
            " of 32 the last 16 threads then read beyond the block's elements in shared memory. Here a block"
            " has 64 threads or more."
        ),
    ),
)

BLAMS = Article(
    "003",
    "choiBLAMS",
    "SGEMM, a draft after Simon Boehm, Tesla T4",
    "sgemm",
    "GFLOPS",
    (4096,),
    (
        Step(
            "kernel 1, naive", "sgemm/naive", ("60.8",),
        ),
        Step(
            "kernel 2, coalesced", "sgemm/coalesced", ("499.3",),
        ),
        Step(
            "kernel 3, shared memory", "sgemm/shared_tile", ("750.0",),
        ),
        Step(
            "1D block tiling", "sgemm/thread_tile_1d", ("",),
        ),
        Step(
            "kernel 4, 2D block tiling", "sgemm/thread_tile_2d:article_003", ("",),
        ),
        Step(
            "kernel 5, vectorized", "sgemm/vectorized", ("",),
        ),
    ),
    notes=(
        (
            "The article's text has lost the matrix size and the figures after kernel 3; 4096 is our choice."
        ),
        (
            "The article's kernels are right where whole tiles cover M, N and K. From kernel 3 on a loop over"
            " K / 32 tiles leaves out the last K % 32 products."
        ),
        (
            "From kernel 3 on threads outside C return before __syncthreads, which all threads of a block"
            " must reach. The elements that they should copy are then missing from the tiles. Here they stay,"
            " and tiles are filled with zeros."
        ),
    ),
    gpu="t4",
)  # fmt: skip

PADDING = Article(
    "004",
    "Why does padding resolve bank conflicts?",
    "HGEMM with a tile of 128 x 256 x 32, RTX 3090; profiles, no times",
    "hgemm",
    "TFLOPS",
    (),
    (
        Step(
            "no padding",
            "hgemm/wmma_shared:article_004",
        ),
        Step("8 elements of padding", "hgemm/wmma_padded:article_004"),
        Step("a permutation in place of padding", "hgemm/mma_xor_swizzle"),
        Step(
            "the linked program: mma, ldmatrix",
            "hgemm/mma_ldmatrix:article",
            layout="nn",
        ),
    ),
    notes=(
        (
            "The article expects half of the bandwidth to be lost without padding, because a row of a"
            " fragment lies in half of the 16 banks of a row of the tile. A load takes 8 such rows at once,"
            " which lie in 8 of the 32 banks: 4 times the wavefronts, as the CPU machine counts, and Nsight"
            " Compute on an H200."
        ),
        "The article says that a thread computes 64 x 64 of C. A warp does.",
        (
            "The article counts 8 loads from shared memory for a warp's 64 x 64 x 32. A takes 8 and B takes"
            " 8: 4 fragments of each for either half of the 32."
        ),
        (
            "The article names diagonal storage as an alternative to padding for fp32:"
            " sgemm/transposed:diagonal."
        ),
    ),
    gpu="rtx3090",
)


def with_facts(article: Article) -> Article:
    """The article, each of its steps with the facts of its listing."""
    listings = LISTINGS[article.name]
    return replace(
        article, steps=tuple(replace(step, facts=listings[step.name].facts) for step in article.steps)
    )


ARTICLES = {one.name: with_facts(one) for one in (WARP_TILING, HALF_PRECISION, UNROLLING, BLAMS, PADDING)}
"""By number."""
