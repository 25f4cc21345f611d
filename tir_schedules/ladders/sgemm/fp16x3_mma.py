"""Three products of float16 parts by `mma`, from sm_80 on; K over blocks.

`fp16x3` multiplies by wgmma. So it needs Hopper, its tiles have 64 rows or more, and a block computes all of
K. Here tiles are as small as those of `bf16x6_mma`, and K is split over blocks. Parts and their accuracy are
those of `fp16x3`. A launch before this one, `split_scaled`, divides rows of A and columns of B by powers of
two, and writes two parts of each element.

**Where parts are made.** `bf16x6_mma` makes parts in registers, so it needs no launch before. Here the power
of two of a row is known only when all of the row has been read, so a launch before is needed anyway. Two
parts have 4 bytes, as a float32 has, so this launch reads no more than `bf16x6_mma` reads, and warps have no
instructions for splitting.

**Fragments.** A row of a K tile has the first parts of its elements, and then the second ones. Rows in shared
memory have 16 bytes more than these, so that eight of them begin in different banks. `ldmatrix` brings four
matrices of 8x8 halves: of A a part of 16 rows and 16 of K, of B both parts of 8 columns and 16 of K. For 16
of K a warp with a tile of 32x32 reads 4 KiB in 32 wavefronts, and issues 24 mma. Counted at 128x128x128 by
tiles of 64x64, warps read 4,096 wavefronts, as those of `bf16x6_mma` do. wgmma of `fp16x3` reads 3,072. It
reads the parts again for each product, but each read serves a tile of 64x64, not of 32x32.

Rows of parts are along K in both layouts of B, and are filled up with zeros. So only the launch before
depends on the layout, every copy has 16 bytes, and K tiles are whole.

**Sums** are promoted after each K tile, and K tiles of a short K are 16 deep, as in `bf16x6_mma`. When a sum
is stored, it is multiplied by the powers of two of its row and its column. If K is split, each part is. The
launch before reads each row by one block, so it takes long where rows are few and long.

Measured on an H200, with the launch before: 104 TFLOPS at 4096 with tiles of 128x64, 83 with 64x64, and 214
by `fp16x3`. At 2048 it is 93, 72 and 185. `fp16x3_mma` was faster than `fp16x3` where C has odd rows and K is
short (1820x12417x64: 132 us, not 156), or where few tiles share a long K. With a long K `bf16x6_mma` is
faster than both: at 16x72x9672 it took 5.6 us, and `fp16x3_mma` 33.
"""

# TVMScript has buffer types that are calls, and only a stub for tvm.script.tirx.
# pyright: reportInvalidTypeForm=false, reportMissingModuleSource=false

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Mapping

from tir_schedules.ladders import split_k_sum
from tir_schedules.ladders.sgemm import bf16x6_mma, split_k, split_products, split_scaled
from tir_schedules.ladders.sgemm.shapes import Rate
from tir_schedules.model.launch import ceil_div
from tir_schedules.model.rung import Around, Preparation, configs_as, run_as_script
from tir_schedules.tir.schedule import PrimFunc, Schedule
from tir_schedules.workloads.split_gemm import PADDED, SplitGemm

HALVES = 8
"""Halves in 16 bytes. Rows of tiles in shared memory have so many more than their elements."""

MOST = 450
"""Multiply-adds of an SM in a nanosecond, see `shapes.MOST`."""
SINGLY = 170
"""Extent along K in which a block could multiply while it writes a C with odd rows."""


def rate(full: float, few: float, fill: int) -> Rate:
    """As Rate, with what stands for it where C has odd rows. Only writing of C depends on their length."""
    return Rate(full, few, fill, Rate(full, few, fill + SINGLY, parts=fill))


RATES = {
    "64x64": rate(381, 0.86, 44),
    "128x64": rate(447, 0.53, 40),
    "64x128": rate(428, 0.35, 39),
    "64x32": rate(225, 0.69, 44),
    "32x64": rate(258, 0.59, 36),
    "32x32": rate(244, 0.51, 0),
    "64x16": rate(244, 0.54, 36),
    "16x64": rate(240, 0.6, 40),
}
"""Fitted, together with the time of the launch before, to 88 measurements on an H200 of 34 shapes, with an
error of 9 to 24 % (root mean square). 16x64 and 64x32 have two and three of these."""


@dataclass(frozen=True)
class Config(bf16x6_mma.Config):
    """As of `bf16x6_mma`. Rows of tiles of A and B are along K in both layouts, because rows of parts are."""

    products: ClassVar[str] = "fp16x3"
    copies_parts: ClassVar[bool] = True
    most: ClassVar[float] = MOST

    @property
    def rates(self) -> Mapping[str, Rate]:
        return RATES

    @property
    def a_row(self) -> int:
        """32-bit words of a row of a tile in shared memory: two parts of an element take one."""
        return self.bk + HALVES // 2

    def near(self, transposed: bool) -> int:
        return super().near(True)

    def ring_bytes(self, transposed: bool) -> tuple[int, int]:
        return super().ring_bytes(True)


def refuses(gemm: SplitGemm, config: Config) -> str:
    if config.bk < 1 or PADDED % config.bk:
        return f"bk is {config.bk}: 16, 32 or 64, which divide rows of parts"
    return bf16x6_mma.refuses(gemm, config)


def in_rows(gemm: SplitGemm) -> SplitGemm:
    """One whose B is stored as parts of B are: N x K."""
    return replace(gemm, layout="nt")


def before(gemm: SplitGemm, config: Config) -> list[Preparation]:
    return [split_scaled.splitting_of(gemm, config.bk)]


def prim_func(gemm: SplitGemm, config: Config, name: str) -> PrimFunc:
    """The partial sums of C. Rows, columns and parts of K are padded to whole tiles. A row of a K tile has
    the first parts of its elements, and then the second ones."""
    from tvm.script import tirx as T
    from tvm.tirx import FloatImm

    from tir_schedules.tir.intrinsics.split_products import sum_of_products

    m, n, depth, form = gemm.m, gemm.n, config.bk, gemm.form
    parts, tiles = split_k.parts_of(gemm, config), split_k.part_of_k(gemm, config) // depth
    pitch, zero = split_k.pitch_of(gemm, parts), FloatImm(form.dtype, 0.0)
    rows, columns = ceil_div(m, config.bm) * config.bm, ceil_div(n, config.bn) * config.bn
    both, row, of_b = form.parts * depth, gemm.row, gemm.part_pitch
    width = bf16x6_mma.guarded(in_rows(gemm), config)
    whole, together = width > 0, max(1, width)
    written = (parts, rows, columns) if whole else (parts, m, pitch)

    def product(A: Any, B: Any, p: Any, i: Any, j: Any, t: Any, k: Any) -> Any:
        def column(part: int) -> Any:
            return t * both + part * depth + k

        pairs = form.products
        return sum_of_products(lambda x: A[p, i, column(x)], lambda x: B[p, j, column(x)], pairs)

    def within(i: Any, j: Any) -> Any:
        return T.And(i < m, j // together < pitch // together)

    @T.macro
    def copy(source, target, extent, p, i, k):
        at = T.meta_var(p * (tiles * both) + k)
        target[p, i, k] = T.if_then_else(i < extent and at < row, source[i, at], zero)

    @T.prim_func(s_tir=True)
    def partial_products(
        A_parts: T.Buffer((m, row), form.dtype),
        A_scales: T.Buffer((m,), "float32"),
        B_parts: T.Buffer((n, row), form.dtype),
        B_scales: T.Buffer((of_b,), "float32"),
        C: T.Buffer((parts, m, pitch), "float32"),
    ):
        T.func_attr({"global_symbol": name, "tirx.noalias": True})
        A_pad = T.sblock_alloc_buffer((parts, rows, tiles * both), form.dtype)
        B_pad = T.sblock_alloc_buffer((parts, columns, tiles * both), form.dtype)
        C_pad = T.sblock_alloc_buffer((parts, rows, columns))
        for p, i, k in T.grid(parts, rows, tiles * both):
            with T.sblock("A_pad"):
                vp, vi, vk = T.axis.remap("SSS", [p, i, k])
                copy(A_parts, A_pad, m, vp, vi, vk)
        for p, j, k in T.grid(parts, columns, tiles * both):
            with T.sblock("B_pad"):
                vp, vj, vk = T.axis.remap("SSS", [p, j, k])
                copy(B_parts, B_pad, n, vp, vj, vk)
        for p, i, j, t, k in T.grid(parts, rows, columns, tiles, depth):
            with T.sblock("C"):
                vp, vi, vj, vt, vk = T.axis.remap("SSSRR", [p, i, j, t, k])
                with T.init():
                    C_pad[vp, vi, vj] = T.float32(0)
                C_pad[vp, vi, vj] += product(A_pad, B_pad, vp, vi, vj, vt, vk)
        for p, i, j in T.grid(*written):
            with T.sblock("C_pad"):
                vp, vi, vj = T.axis.remap("SSS", [p, i, j])
                if whole:
                    if T.tvm_thread_invariant(within(vi, vj)):
                        C[vp, vi, vj] = split_products.scaled(C_pad[vp, vi, vj], A_scales[vi], B_scales[vj])
                else:
                    C[vp, vi, vj] = split_products.scaled(C_pad[vp, vi, vj], A_scales[vi], B_scales[vj])

    return partial_products


def schedule(sch: Schedule, gemm: SplitGemm, config: Config) -> None:
    from tir_schedules.tir.intrinsics import split_fragments

    product = split_fragments.multiply_parts(
        config.wm, config.wn, config.bk, 2 * config.a_row, gemm.form.products
    )
    padding = [(2 * HALVES, HALVES)] * 2
    bf16x6_mma.multiply_tiles(sch, in_rows(gemm), config, [HALVES] * 2, padding, product)


CONFIGS = configs_as(Config, bf16x6_mma.CONFIGS)

RUNG = bf16x6_mma.RUNG.followed_by(
    "fp16x3_mma",
    "three products of float16 parts by mma, from sm_80 on; K split over blocks",
    schedule,
    configs=CONFIGS,
    choose=bf16x6_mma.chooser(CONFIGS),
    launch=bf16x6_mma.launch,
    refuses=refuses,
    prim_func=prim_func,
    around=Around(before, then=split_k_sum.rung("sgemm")),
    shapes="any; all copies are of 16 bytes, because rows of parts are filled up",
)

if __name__ == "__main__":
    run_as_script(RUNG)
