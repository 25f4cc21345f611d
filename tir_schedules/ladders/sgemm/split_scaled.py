"""Float32 matrices as sums of parts in float16, rows of A and columns of B scaled: the launch before
`fp16x3`.

Two parts of float16 have 22 bits of a float32, but the range of float16 is only 2^-24 to 65504. So a row of A
is divided by a power of two that brings its largest element just below 2^15, and so is a column of B.
Division by a power of two is exact, and the kernel of the products undoes it when it stores sums. Elements of
a row that are 2^17 times smaller than its largest begin to lose bits.

The largest element of a row is known only when the whole row has been read. So a row is read twice, the
second time from L1 or L2. The rows that all SMs read at the same time must fit there. Threads that are beyond
a column read its last element again, because with a condition for each load nvcc waits for each of them. If K
is long, the many warps of a block share a row of A, or eight columns of B. If K is short, a block has several
rows of A. A B that is stored N x K (layout nt) is split like A.
Everything else is as in `split_parts`.
"""

# TVMScript has buffer types that are calls, and only a stub for tvm.script.tirx.
# pyright: reportInvalidTypeForm=false, reportMissingModuleSource=false

from __future__ import annotations

from typing import Any

from tir_schedules.ladders.sgemm.split_parts import COLUMNS, QUAD, VECTOR
from tir_schedules.model.gpus import WARP
from tir_schedules.model.launch import Launch, ceil_div
from tir_schedules.model.rung import NoConfig, Preparation, Rung
from tir_schedules.tir.schedule import PrimFunc
from tir_schedules.workloads.split_gemm import SplitGemm
from tir_schedules.workloads.splitting import Splitting


def splitting_of(gemm: SplitGemm, depth: int) -> Preparation:
    """The launch that scales and splits A and B of a GEMM. depth: of its K tiles."""
    names = {
        "X": "A",
        "Y": "A_parts",
        "SCALES": "A_scales",
        "X_2": "B",
        "Y_2": "B_parts",
        "SCALES_2": "B_scales",
    }
    splitting = Splitting(*gemm.shape, gemm.products, depth, gemm.layout)
    return Preparation(RUNG, splitting, names | dict(zip("MNK", "MNK")))


def warps_of(splitting: Splitting) -> int:
    """Warps of a block. Those of 8 columns of B take 32 of K each in a turn, and four turns for K or more."""
    return min(32, max(8, next_power_of_two(ceil_div(splitting.padded, 128))))


def warps_of_row(splitting: Splitting) -> int:
    """Warps that share a row of A: a power of two, so many that each has 8 elements for a lane at least."""
    return min(warps_of(splitting), next_power_of_two(ceil_div(splitting.padded, WARP * VECTOR)))


def next_power_of_two(number: int) -> int:
    return 1 << (number - 1).bit_length()


def turns_of(splitting: Splitting) -> int:
    """Turns in which a block has all of K of its columns of B."""
    return ceil_div(splitting.k, warps_of(splitting) * WARP // COLUMNS * VECTOR)


def blocks_of(splitting: Splitting) -> tuple[int, int]:
    """Blocks for all of A, and for all of B."""
    rows = warps_of(splitting) // warps_of_row(splitting)  # of a block
    return ceil_div(splitting.m, rows), ceil_div(splitting.n, rows if splitting.transposed else COLUMNS)


def launch(splitting: Splitting, config: NoConfig) -> Launch:
    return Launch((sum(blocks_of(splitting)), 1, 1), (WARP, warps_of(splitting), 1))


def prim_func(splitting: Splitting, config: NoConfig, name: str) -> PrimFunc:
    """For each matrix the search for the largest element of each row, and the parts."""
    from tvm.script import tirx as T
    from tvm.tirx import FloatImm

    from tir_schedules.model.annotations import DEPENDENT_LAUNCH
    from tir_schedules.tir.intrinsics.device import call

    m, n, k = splitting.shape
    padded, row, form, place = splitting.padded, splitting.row, splitting.form, splitting.place
    of_a, of_b = blocks_of(splitting)
    blocks, every, warps = of_a + of_b, warps_of(splitting), warps_of_row(splitting)
    of_row, of_column = warps * WARP * VECTOR, every * WARP // COLUMNS * VECTOR  # of K, in a turn
    quads, transposed, shape_2 = k % QUAD == 0, splitting.transposed, splitting.shape_2
    zero = FloatImm("float32", 0.0)

    def first_of_column(turn: Any, warp: Any, lane: Any) -> Any:
        """The first k that a thread has of its column of B in a turn."""
        return turn * of_column + (warp * (WARP // COLUMNS) + lane // COLUMNS) * VECTOR

    def call_of(function: str, *values: Any) -> Any:
        return call(function, *values, returns="float32")

    @T.macro
    def store_parts(left, part, Y, row, first):
        for p in T.unroll(form.parts):
            for e in T.unroll(VECTOR):
                part[e] = T.Cast(form.dtype, left[e])
                left[e] = left[e] - T.Cast("float32", part[e])
            for e in T.vectorized(VECTOR):
                Y[row, place(p, first) + e] = part[e]

    @T.macro
    def load_row(left, X, i, first, scale):
        if quads:
            for q in T.unroll(VECTOR // QUAD):
                for e in T.vectorized(QUAD):
                    left[q * QUAD + e] = T.if_then_else(
                        first + q * QUAD < k, X[i, first + q * QUAD + e] * scale, zero
                    )
        else:
            for e in T.unroll(VECTOR):
                left[e] = T.if_then_else(first + e < k, X[i, first + e] * scale, zero)

    @T.macro
    def split_row(left, part, most, X, Y, SCALES, i, rows, w, t):
        thread = T.meta_var(w % warps * WARP + t)  # of the row
        for turn in T.serial(ceil_div(k, of_row)):
            for e in T.unroll(VECTOR):
                at = T.meta_var(turn * of_row + e * (warps * WARP) + thread)
                if i < rows and at < k:
                    most[0] = T.max(most[0], T.fabs(X[i, at]))
        most[0] = call_of("scale_for", call_of("largest_of_warps", most[0], warps))
        if i < rows and thread == 0:
            SCALES[i] = most[0]
        most[0] = T.float32(1) / most[0]
        for turn in T.serial(ceil_div(padded, of_row)):
            first = T.meta_var(turn * of_row + thread * VECTOR)
            if i < rows and first < padded:
                load_row(left, X, i, first, most[0])
                store_parts(left, part, Y, i, first)

    @T.macro
    def split_column(left, part, most, X, Y, SCALES, j, w, t):
        for turn in T.serial(ceil_div(padded, of_column)):
            first = T.meta_var(first_of_column(turn, w, t))
            for e in T.unroll(VECTOR):
                most[0] = T.max(most[0], T.fabs(X[T.min(first + e, k - 1), T.min(j, n - 1)]))
        most[0] = call_of("scale_for", call_of("largest_of_columns", most[0], every))
        if j < n and t < COLUMNS and w == 0:
            SCALES[j] = most[0]
        most[0] = T.float32(1) / most[0]
        for turn in T.serial(ceil_div(padded, of_column)):
            first = T.meta_var(first_of_column(turn, w, t))
            if j < n and first < padded:
                for e in T.unroll(VECTOR):
                    left[e] = T.if_then_else(first + e < k, X[first + e, j] * most[0], zero)
                store_parts(left, part, Y, j, first)

    @T.prim_func(s_tir=True)
    def split_scaled(
        X: T.Buffer((m, k), "float32"),
        Y: T.Buffer((m, row), form.dtype),
        SCALES: T.Buffer((m,), "float32"),
        X_2: T.Buffer(shape_2, "float32"),
        Y_2: T.Buffer((n, row), form.dtype),
        SCALES_2: T.Buffer((n,), "float32"),
    ):
        T.func_attr({"global_symbol": name, "tirx.noalias": True, DEPENDENT_LAUNCH: 1})
        for b in T.thread_binding(blocks, thread="blockIdx.x"):
            for w in T.thread_binding(every, thread="threadIdx.y"):
                for t in T.thread_binding(WARP, thread="threadIdx.x"):
                    left = T.alloc_buffer((VECTOR,), "float32", scope="local")
                    part = T.alloc_buffer((VECTOR,), form.dtype, scope="local")
                    most = T.alloc_buffer((1,), "float32", scope="local")
                    most[0] = zero
                    row = T.meta_var(w // warps)
                    if b < of_a:
                        i = T.meta_var(b * (every // warps) + row)
                        split_row(left, part, most, X, Y, SCALES, i, m, w, t)
                    else:
                        if transposed:
                            j = T.meta_var((b - of_a) * (every // warps) + row)
                            split_row(left, part, most, X_2, Y_2, SCALES_2, j, n, w, t)
                        else:
                            j = T.meta_var((b - of_a) * COLUMNS + t % COLUMNS)
                            split_column(left, part, most, X_2, Y_2, SCALES_2, j, w, t)

    return split_scaled


RUNG = Rung(
    family="sgemm",
    name="split_scaled",
    summary="two float32 matrices as sums of parts in float16, rows and columns scaled",
    launch=launch,
    prim_func=prim_func,
)
