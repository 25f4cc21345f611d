"""What wmma and mma have in common: 16x16 tiles, and the computations on them that intrinsics replace."""

# TVMScript has buffer types that are calls, and only a stub for tvm.script.tirx.
# pyright: reportInvalidTypeForm=false, reportMissingModuleSource=false

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T
from tvm.tirx import FloatImm

from tir_schedules.tir.schedule import PrimFunc
from tir_schedules.workloads import place_in_b

TILE = 16


def index(buffer: Any, row_stride: Any) -> Any:
    """Which tile of its buffer a tile is, counted row by row."""
    offset = buffer.elem_offset
    return offset // row_stride // TILE * (row_stride // TILE) + offset % row_stride // TILE


def copy(dtype: str, source_scope: str, target_scope: str) -> PrimFunc:
    """A tile copied from memory of one scope to another."""

    @T.prim_func(s_tir=True)
    def description(source: T.handle, target: T.handle) -> None:
        S = T.match_buffer(source, (TILE, TILE), dtype, align=64, offset_factor=TILE, scope=source_scope)
        D = T.match_buffer(target, (TILE, TILE), dtype, align=64, offset_factor=TILE, scope=target_scope)
        with T.sblock("root"):
            T.reads(S[0:TILE, 0:TILE])
            T.writes(D[0:TILE, 0:TILE])
            for i, j in T.grid(TILE, TILE):
                with T.sblock("copy"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    D[vi, vj] = S[vi, vj]

    return description


def zero(dtype: str, scope: str) -> PrimFunc:
    """A tile set to zero."""
    value = FloatImm(dtype, 0.0)

    @T.prim_func(s_tir=True)
    def description(target: T.handle) -> None:
        D = T.match_buffer(target, (TILE, TILE), dtype, align=64, offset_factor=TILE, scope=scope)
        with T.sblock("root"):
            T.reads()
            T.writes(D[0:TILE, 0:TILE])
            for i, j in T.grid(TILE, TILE):
                with T.sblock("zero"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    D[vi, vj] = value

    return description


def multiply(accumulate: str, transposed: bool, a_scope: str, b_scope: str, c_scope: str) -> PrimFunc:
    """c += a @ b; transposed: b is stored as n x k."""

    def cast(value: Any) -> Any:
        return T.Cast(accumulate, value) if accumulate != "float16" else value

    @T.prim_func(s_tir=True)
    def description(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (TILE, TILE), "float16", align=64, offset_factor=TILE, scope=a_scope)
        B = T.match_buffer(b, (TILE, TILE), "float16", align=64, offset_factor=TILE, scope=b_scope)
        C = T.match_buffer(c, (TILE, TILE), accumulate, align=64, offset_factor=TILE, scope=c_scope)
        with T.sblock("root"):
            T.reads(C[0:TILE, 0:TILE], A[0:TILE, 0:TILE], B[0:TILE, 0:TILE])
            T.writes(C[0:TILE, 0:TILE])
            for i, j, k in T.grid(TILE, TILE, TILE):
                with T.sblock("mma"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    row, column = T.meta_var(place_in_b(vk, vj, transposed))
                    C[vi, vj] = C[vi, vj] + cast(A[vi, vk]) * cast(B[row, column])

    return description
