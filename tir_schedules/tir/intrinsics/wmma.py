"""16x16x16 fragments of nvcuda::wmma: float16 operands, float16 or float32 accumulators.

A fragment buffer keeps its matrix's indices; where CUDA keeps the elements is the fragment's secret. TVM
numbers the fragments of a buffer tile by tile, row by row.

TVM's own are not used, because to import them takes seconds: it makes those of all targets. The ones below do
the same, except for `fill`: a kernel that copies nothing binds no lanes to threadIdx.x, and with TVM's own it
is launched with 8 threads in place of 256.
"""

# TVMScript has buffer types that are calls, and only a stub for tvm.script.tirx.
# pyright: reportInvalidTypeForm=false, reportMissingModuleSource=false

from __future__ import annotations

from tvm.script import tirx as T

from tir_schedules.tir.intrinsics import Intrinsic, intrinsic, tiles
from tir_schedules.tir.intrinsics.tiles import TILE, index

C_SCOPE = "wmma.accumulator"


@intrinsic
def load(operand: str, memory: str, transposed: bool) -> Intrinsic:
    """Read a tile of operand "a" or "b" from memory; transposed: the tile of b is stored as n x k."""
    fragment = scope(operand, transposed)
    layout = "col_major" if transposed else "row_major"

    @T.prim_func(s_tir=True)
    def implementation(source: T.handle, target: T.handle) -> None:
        s0, s1, f0, f1 = T.int32(), T.int32(), T.int32(), T.int32()
        S = T.match_buffer(
            source, (TILE, TILE), "float16", align=64, offset_factor=TILE, scope=memory, strides=[s0, s1]
        )
        F = T.match_buffer(
            target, (TILE, TILE), "float16", align=64, offset_factor=TILE, scope=fragment, strides=[f0, f1]
        )
        with T.sblock("root"):
            T.reads(S[0:TILE, 0:TILE])
            T.writes(F[0:TILE, 0:TILE])
            start = T.meta_var(S.access_ptr("r", ptr_type="float16"))
            T.evaluate(
                T.tvm_load_matrix_sync(
                    F.data, TILE, TILE, TILE, index(F, f0), start, s0, layout, dtype="void"
                )
            )

    return tiles.copy("float16", memory, fragment), implementation


@intrinsic
def fill(accumulate: str) -> Intrinsic:
    """Set an accumulator to zero, by 32 lanes on threadIdx.x."""

    @T.prim_func(s_tir=True)
    def implementation(target: T.handle) -> None:
        f0, f1 = T.int32(), T.int32()
        F = T.match_buffer(
            target, (TILE, TILE), accumulate, align=64, offset_factor=TILE, scope=C_SCOPE, strides=[f0, f1]
        )
        with T.sblock("root"):
            T.reads()
            T.writes(F[0:TILE, 0:TILE])
            for _lane in T.thread_binding(0, 32, "threadIdx.x"):
                T.evaluate(
                    T.tvm_fill_fragment(F.data, TILE, TILE, TILE, index(F, f0), T.float32(0), dtype="void")
                )

    return tiles.zero(accumulate, C_SCOPE), implementation


@intrinsic
def mma(accumulate: str, transposed: bool) -> Intrinsic:
    """accumulator += a @ b, b of either layout."""
    a_scope, b_scope = scope("a", transposed), scope("b", transposed)

    @T.prim_func(s_tir=True)
    def implementation(a: T.handle, b: T.handle, c: T.handle) -> None:
        a0, a1, b0, b1, c0, c1 = T.int32(), T.int32(), T.int32(), T.int32(), T.int32(), T.int32()
        A = T.match_buffer(
            a, (TILE, TILE), "float16", align=64, offset_factor=TILE, scope=a_scope, strides=[a0, a1]
        )
        B = T.match_buffer(
            b, (TILE, TILE), "float16", align=64, offset_factor=TILE, scope=b_scope, strides=[b0, b1]
        )
        C = T.match_buffer(
            c, (TILE, TILE), accumulate, align=64, offset_factor=TILE, scope=C_SCOPE, strides=[c0, c1]
        )
        with T.sblock("root"):
            T.reads(C[0:TILE, 0:TILE], A[0:TILE, 0:TILE], B[0:TILE, 0:TILE])
            T.writes(C[0:TILE, 0:TILE])
            at_a, at_b, at_c = T.meta_var((index(A, a0), index(B, b0), index(C, c0)))
            T.evaluate(T.tvm_mma_sync(C.data, at_c, A.data, at_a, B.data, at_b, C.data, at_c, dtype="void"))

    return tiles.multiply(accumulate, transposed, a_scope, b_scope, C_SCOPE), implementation


@intrinsic
def store(accumulate: str, memory: str) -> Intrinsic:
    """Write an accumulator to memory, row-major."""

    @T.prim_func(s_tir=True)
    def implementation(source: T.handle, target: T.handle) -> None:
        f0, f1, d0, d1 = T.int32(), T.int32(), T.int32(), T.int32()
        F = T.match_buffer(
            source, (TILE, TILE), accumulate, align=64, offset_factor=TILE, scope=C_SCOPE, strides=[f0, f1]
        )
        D = T.match_buffer(
            target, (TILE, TILE), accumulate, align=64, offset_factor=TILE, scope=memory, strides=[d0, d1]
        )
        with T.sblock("root"):
            T.reads(F[0:TILE, 0:TILE])
            T.writes(D[0:TILE, 0:TILE])
            start = T.meta_var(D.access_ptr("w", ptr_type=accumulate))
            T.evaluate(
                T.tvm_store_matrix_sync(
                    F.data, TILE, TILE, TILE, index(F, f0), start, d0, "row_major", dtype="void"
                )
            )

    return tiles.copy(accumulate, C_SCOPE, memory), implementation


def scope(operand: str, transposed: bool) -> str:
    """Where TVM keeps the fragments of "a", "b" or "c"."""
    return C_SCOPE if operand == "c" else f"wmma.matrix_{operand}"
