"""Float32 matrices as sums of parts in 16 bits: the launch before the products of `bf16x6`.

The first part of an element is the element, rounded to bfloat16. Each further part is the rest that the parts
before have left, rounded. Three parts of 8 bits have all 24 bits of a float32, and the subtractions are
exact.

Rows of parts have the layout that TMA (the Tensor Memory Accelerator) needs for a K tile. All parts of the
tile are side by side, rows are a multiple of 16 bytes for any K, and B is transposed so that its rows are
along K. So the products need no second form for odd extents. A thread takes eight neighbours along K and
stores eight elements of each part at once, 16 bytes. In A these are neighbours in memory. In B they are in
eight rows: eight lanes have neighbouring columns, and the other lanes have the next rows, so that a warp
loads and stores whole sectors. A B that is stored N x K (layout nt) is split like A, because its rows are
along K already.

The launch takes a small share of the time, because it reads 4 bytes and writes 6 for each element only once.
The products use an element again for each row or column of C.
"""

# TVMScript has buffer types that are calls, and only a stub for tvm.script.tirx.
# pyright: reportInvalidTypeForm=false, reportMissingModuleSource=false

from __future__ import annotations

from typing import Any

from tir_schedules.model.gpus import WARP
from tir_schedules.model.launch import Launch, ceil_div
from tir_schedules.model.rung import NoConfig, Preparation, Rung
from tir_schedules.tir.schedule import PrimFunc
from tir_schedules.workloads.split_gemm import SplitGemm
from tir_schedules.workloads.splitting import MOST, Splitting

VECTOR = 8  # parts of a thread, in 16 bytes where a part has two
QUAD = 4  # floats in 16 bytes
WARPS = 8  # of a block
COLUMNS = 8  # of B that a warp has, and four times VECTOR of K


def blocks_of(splitting: Splitting) -> tuple[int, int, int]:
    """Blocks along a row of A, those for all of A, and for all of B."""
    pieces = splitting.padded // VECTOR
    across = ceil_div(pieces, WARP)
    of_a = ceil_div(splitting.m, WARPS) * across
    of_b = ceil_div(pieces, WARP // COLUMNS) * ceil_div(splitting.n, WARPS * COLUMNS)
    return across, of_a, ceil_div(splitting.n, WARPS) * across if splitting.transposed else of_b


def launch(splitting: Splitting, config: NoConfig) -> Launch:
    _, of_a, of_b = blocks_of(splitting)
    return Launch((of_a + of_b, 1, 1), (WARP, WARPS, 1))


def prim_func(splitting: Splitting, config: NoConfig, name: str) -> PrimFunc:
    """For each matrix the loads of a thread and its parts."""
    from tvm.script import tirx as T
    from tvm.tirx import FloatImm

    from tir_schedules.model.annotations import DEPENDENT_LAUNCH
    from tir_schedules.tir.intrinsics.device import call

    m, n, k = splitting.shape
    padded, row, form, place = splitting.padded, splitting.row, splitting.form, splitting.place
    across, of_a, of_b = blocks_of(splitting)
    columns, quads, vector = ceil_div(n, WARPS * COLUMNS), k % QUAD == 0, 16 // form.size
    blocks, most, zero = of_a + of_b, FloatImm("float32", MOST), FloatImm("float32", 0.0)
    transposed, shape_2 = splitting.transposed, splitting.shape_2

    def of_row(block: Any, warp: Any, lane: Any) -> tuple[Any, Any]:
        """A row of A, or of a B that is N x K, and the first k of a thread."""
        return block // across * WARPS + warp, (block % across * WARP + lane) * VECTOR

    def of_column(block: Any, warp: Any, lane: Any) -> tuple[Any, Any]:
        """A column of B, and the first k of a thread."""
        column = (block % columns * WARPS + warp) * COLUMNS + lane % COLUMNS
        return column, (block // columns * (WARP // COLUMNS) + lane // COLUMNS) * VECTOR

    def kept(value: Any, part: Any) -> Any:
        """The first of several parts is kept finite."""
        if form.parts == 1:
            return value
        return T.if_then_else(part == 0, T.max(T.min(value, most), -most), value)

    def rounded(value: Any) -> Any:
        if form.dtype == "float32":
            return call("rounded_to_tf32", value, returns="float32")
        return T.Cast(form.dtype, value)

    @T.macro
    def load_row(left, X, row, rows, first):
        if quads:
            for q in T.unroll(VECTOR // QUAD):
                at = T.meta_var(first + q * QUAD)
                for e in T.vectorized(QUAD):
                    left[q * QUAD + e] = T.if_then_else(row < rows and at < k, X[row, at + e], zero)
        else:
            for e in T.unroll(VECTOR):
                left[e] = T.if_then_else(row < rows and first + e < k, X[row, first + e], zero)

    @T.prim_func(s_tir=True)
    def split_parts(
        X: T.Buffer((m, k), "float32"),
        Y: T.Buffer((m, row), form.dtype),
        X_2: T.Buffer(shape_2, "float32"),
        Y_2: T.Buffer((n, row), form.dtype),
    ):
        T.func_attr({"global_symbol": name, "tirx.noalias": True, DEPENDENT_LAUNCH: 1})
        for b in T.thread_binding(blocks, thread="blockIdx.x"):
            for w in T.thread_binding(WARPS, thread="threadIdx.y"):
                for t in T.thread_binding(WARP, thread="threadIdx.x"):
                    left = T.alloc_buffer((VECTOR,), "float32", scope="local")
                    part = T.alloc_buffer((VECTOR,), form.dtype, scope="local")
                    i, first = T.meta_var(of_row(b, w, t))
                    j, first_2 = T.meta_var((of_row if transposed else of_column)(b - of_a, w, t))
                    if b < of_a:
                        load_row(left, X, i, m, first)
                    else:
                        if transposed:
                            load_row(left, X_2, j, n, first_2)
                        else:
                            for e in T.unroll(VECTOR):
                                left[e] = T.if_then_else(j < n and first_2 + e < k, X_2[first_2 + e, j], zero)
                    for p in T.unroll(form.parts):
                        for e in T.unroll(VECTOR):
                            part[e] = rounded(kept(left[e], p))
                            left[e] = left[e] - T.Cast("float32", part[e])
                        if b < of_a:
                            if i < m and first < padded:
                                for v in T.unroll(VECTOR // vector):
                                    for e in T.vectorized(vector):
                                        Y[i, place(p, first) + v * vector + e] = part[v * vector + e]
                        else:
                            if j < n and first_2 < padded:
                                for v in T.unroll(VECTOR // vector):
                                    for e in T.vectorized(vector):
                                        Y_2[j, place(p, first_2) + v * vector + e] = part[v * vector + e]

    return split_parts


RUNG = Rung(
    family="sgemm",
    name="split_parts",
    summary="two float32 matrices as sums of parts in 16 bits",
    launch=launch,
    prim_func=prim_func,
)


def splitting_of(gemm: SplitGemm, depth: int) -> Preparation:
    """The launch that splits A and B of a GEMM. depth: of its K tiles."""
    names = {"X": "A", "Y": "A_parts", "X_2": "B", "Y_2": "B_parts"} | dict(zip("MNK", "MNK"))
    return Preparation(RUNG, Splitting(*gemm.shape, gemm.products, depth, gemm.layout), names)
