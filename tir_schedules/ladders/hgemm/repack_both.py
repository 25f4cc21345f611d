"""Both matrices of a GEMM are copied so that their rows start at a line of L2: the launch before `split_k` if
TMA takes neither the rows of A nor those of B.

A launch takes at least two microseconds, and small matrices are copied in less. So one launch copies both:
its first blocks copy A as `repack` does, and the other blocks copy B.
"""

# TVMScript has buffer types that are calls, and only a stub for tvm.script.tirx.
# pyright: reportInvalidTypeForm=false, reportMissingModuleSource=false

from __future__ import annotations

from typing import Any

from tir_schedules.ladders.hgemm import repack
from tir_schedules.model.gpus import WARP
from tir_schedules.model.launch import Launch, ceil_div
from tir_schedules.model.rung import NoConfig, Preparation, Rung
from tir_schedules.tir.schedule import PrimFunc
from tir_schedules.workloads.half_gemm import VECTOR, HalfGemm
from tir_schedules.workloads.repacking import Repacking, RepackingBoth


def launch(both: RepackingBoth, config: NoConfig) -> Launch:
    first, second = (repack.launch(each, config) for each in both.each)
    return Launch((first.grid[0] + second.grid[0], 1, 1), first.block)


def prim_func(both: RepackingBoth, config: NoConfig, name: str) -> PrimFunc:
    """For each matrix a block that loads a thread's elements, and one that stores them."""
    from tvm.script import tirx as T
    from tvm.tirx import IntImm

    from tir_schedules.model.annotations import DEPENDENT_LAUNCH

    (one, other), blocks = both.each, launch(both, config).grid[0]
    first = repack.launch(one, config).grid[0]
    zero = IntImm("uint16", 0)

    def place(repacking: Repacking, block: Any, warp: Any, lane: Any) -> tuple[Any, Any]:
        """The row of a thread, and the first of its columns."""
        across = ceil_div(repacking.pitch, VECTOR * WARP)
        return block // across * repack.ROWS + warp, (block % across * WARP + lane) * VECTOR

    @T.prim_func(s_tir=True)
    def repack_both(
        X: T.Buffer((one.rows, one.columns), "uint16"),
        Y: T.Buffer((one.rows, one.pitch), "uint16"),
        X_2: T.Buffer((other.rows, other.columns), "uint16"),
        Y_2: T.Buffer((other.rows, other.pitch), "uint16"),
    ):
        T.func_attr({"global_symbol": name, "tirx.noalias": True, DEPENDENT_LAUNCH: 1})
        for b in T.thread_binding(blocks, thread="blockIdx.x"):
            for w in T.thread_binding(repack.ROWS, thread="threadIdx.y"):
                for t in T.thread_binding(WARP, thread="threadIdx.x"):
                    elements = T.alloc_buffer((VECTOR,), "uint16", scope="local")
                    row, column = T.meta_var(place(one, b, w, t))
                    if b < first and row < one.rows and column < one.pitch:
                        for e in T.unroll(VECTOR):
                            elements[e] = T.if_then_else(column + e < one.columns, X[row, column + e], zero)
                        for e in T.vectorized(VECTOR):
                            Y[row, column + e] = elements[e]
                    row_2, column_2 = T.meta_var(place(other, b - first, w, t))
                    if b >= first and row_2 < other.rows and column_2 < other.pitch:
                        for e in T.unroll(VECTOR):
                            elements[e] = T.if_then_else(
                                column_2 + e < other.columns, X_2[row_2, column_2 + e], zero
                            )
                        for e in T.vectorized(VECTOR):
                            Y_2[row_2, column_2 + e] = elements[e]

    return repack_both


RUNG = Rung(
    family="hgemm",
    name="repack_both",
    summary="two matrices copied to rows of whole lines of L2",
    launch=launch,
    prim_func=prim_func,
)


def repackings_of(gemm: HalfGemm, line: int) -> list[Preparation]:
    """As those of `repack`, of A and B one."""
    alone = repack.repackings_of(gemm, line)
    if len(alone) < 2:
        return alone
    a, b = alone
    names = {**a.names, **{f"{name}_2": given for name, given in b.names.items()}}
    return [Preparation(RUNG, RepackingBoth(*a.workload.shape, *b.workload.shape), names)]
