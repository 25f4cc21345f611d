"""mma.m16n8k16 on registers that ldmatrix fills: float16 operands, float16 or float32 accumulators.

The same tiles of 16x16 as in `wmma`, but now it is known which lane holds what. One `ldmatrix.x4` fills the
operand of a tile: lane l hands over the address of one of 32 rows of 16 bytes, and gets two neighbouring
elements of row l / 4, at 2 * (l % 4), from each of the four 8x8 matrices. Two mma, one for each half of n,
multiply two tiles.

TVM keeps such registers in scopes of its own. Only their size matters here: a lane's share of a tile
of A or B is 8 halves, of C 8 accumulators, and a tile's number in its buffer, counted row by row, says where
they are.

TVM's own `mma_ldmatrix_f16_a`, `mma_f16f16f32` and the like keep registers in the scope "warp" instead.
LowerWarpMemory then handles only the first of the three buffers of a statement, and leaves divisions in
indices that do not fold: in a warp tile of 64x64, nvcc put the fragments into 368 bytes of local memory, with
70 loads and 72 stores for each K tile. The ones below take no local memory. TVM's `m16n8k8` intrinsics, which
have these scopes, multiply half as deep, and store C as every lane's copy of every element.
"""

# TVMScript has buffer types that are calls, and only a stub for tvm.script.tirx.
# pyright: reportInvalidTypeForm=false, reportMissingModuleSource=false

from __future__ import annotations

from contextlib import contextmanager
from threading import Lock
from typing import Any, Iterator, Sequence

import tvm_ffi
from tvm.script import tirx as T
from tvm.tirx import FloatImm

from tir_schedules.tir.intrinsics import Intrinsic, intrinsic, tiles
from tir_schedules.tir.intrinsics.tiles import TILE, index

SHARE = 8  # elements of a tile that one lane holds
A_SCOPE, B_SCOPE, C_SCOPE = "m16n8k8.matrixA", "m16n8k8.matrixB", "m16n8k8.matrixC"


MAP = "tirx.index_map_m16n8k8.matrixC"
"""The name of `share_of_accumulators` among TVM's functions."""


def share_of_accumulators(indices: Sequence[Any]) -> Any:
    """How TVM's TransformMmaBufferLayout finds an element of C among a lane's: m16 tile, n8 tile, upper or
    lower half, first or second."""
    row, column = indices
    return tvm_ffi.convert([row // TILE, column // 8, row // 8 % 2, column % 2])


class Registered:
    """Who needs the map now. ours: whether it is registered because of them."""

    lock = Lock()
    users = 0
    ours = False


@contextmanager
def shares_known() -> Iterator[None]:
    """Meanwhile TVM knows `share_of_accumulators`, in all threads. Its own intrinsics have a function that
    does the same, and can be imported before and afterwards."""
    with Registered.lock:
        Registered.users += 1
        if not tvm_ffi.get_global_func(MAP, allow_missing=True):
            tvm_ffi.register_global_func(MAP, share_of_accumulators)
            Registered.ours = True
    try:
        yield
    finally:
        with Registered.lock:
            Registered.users -= 1
            if Registered.ours and not Registered.users:
                Registered.ours = False
                tvm_ffi.registry.remove_global_func(MAP)


def scope(operand: str, transposed: bool) -> str:
    """Where TVM keeps the fragments of "a", "b" or "c". A transposed b has the form of an a."""
    if operand == "c":
        return C_SCOPE
    return A_SCOPE if operand == "a" or transposed else B_SCOPE


def row_of_lane(operand: str, transposed: bool, lane: Any, row_stride: Any) -> Any:
    """Offset in a tile of the 8 elements whose address a lane hands to ldmatrix.

    The four 8x8 matrices must come in the order in which mma takes its registers: for A (rows m, columns k)
    first the upper and the lower left, then the right; for B first those of the first 8 n, with k ascending.
    A tile stored as n x k (`transposed`) has them one beside the other; of a tile stored as k x n, read with
    .trans, they are one below the other.
    """
    if operand == "b" and transposed:
        return (lane // 16 * 8 + lane % 8) * row_stride + lane // 8 % 2 * 8
    return lane % 16 * row_stride + lane // 16 * 8


@intrinsic
def load(operand: str, memory: str, transposed: bool) -> Intrinsic:
    """Read a tile of operand "a" or "b" from shared memory with one ldmatrix.x4; transposed: the tile of b is
    stored as n x k."""
    fragment = scope(operand, transposed)
    trans = operand == "b" and not transposed

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
            for lane in T.thread_binding(0, 32, "threadIdx.x"):
                row = T.meta_var(row_of_lane(operand, transposed, lane, s0))
                share = T.meta_var(index(F, f0) * SHARE)
                T.evaluate(
                    T.ptx_legacy.ldmatrix(
                        trans, 4, ".b16", F.data, share, S.access_ptr("r"), row, dtype="float16"
                    )
                )

    return tiles.copy("float16", memory, fragment), implementation


@intrinsic
def fill(accumulate: str) -> Intrinsic:
    """Set a tile of accumulators to zero."""
    zero = FloatImm(accumulate, 0.0)

    @T.prim_func(s_tir=True)
    def implementation(target: T.handle) -> None:
        F = T.match_buffer(target, (TILE, TILE), accumulate, align=64, offset_factor=TILE, scope=C_SCOPE)
        with T.sblock("root"):
            T.reads()
            T.writes(F[0:TILE, 0:TILE])
            for lane in T.thread_binding(0, 32, "threadIdx.x"):
                for right, lower in T.grid(2, 2):
                    for pair in T.vectorized(2):
                        F[lower * 8 + lane // 4, right * 8 + lane % 4 * 2 + pair] = zero

    return tiles.zero(accumulate, C_SCOPE), implementation


@intrinsic
def mma(accumulate: str, transposed: bool) -> Intrinsic:
    """accumulators += a @ b, b of either layout: an mma for each half of n."""
    b_scope = scope("b", transposed)
    name = {"float16": "fp16", "float32": "fp32"}[accumulate]

    @T.prim_func(s_tir=True)
    def implementation(a: T.handle, b: T.handle, c: T.handle) -> None:
        a0, a1, b0, b1, c0, c1 = T.int32(), T.int32(), T.int32(), T.int32(), T.int32(), T.int32()
        A = T.match_buffer(
            a, (TILE, TILE), "float16", align=64, offset_factor=TILE, scope=A_SCOPE, strides=[a0, a1]
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
            at_a, at_b = T.meta_var((index(A, a0) * SHARE, index(B, b0) * SHARE))
            # Of an m16n8 half a lane has 4 accumulators; halves are counted row by row as well.
            at_c = T.meta_var(
                (C.elem_offset // c0 // TILE * (c0 // 8) + C.elem_offset % c0 // 8) * (SHARE // 2)
            )
            for right in T.unroll(2):
                T.evaluate(
                    T.ptx_legacy.mma(
                        "m16n8k16", "row", "col", "fp16", "fp16", name,
                        A.data, at_a, B.data, at_b + right * (SHARE // 2), C.data,
                        at_c + right * (SHARE // 2), False,
                        dtype=accumulate,
                    )
                )  # fmt: skip

    return tiles.multiply(accumulate, transposed, A_SCOPE, b_scope, C_SCOPE), implementation


@intrinsic
def store(accumulate: str, memory: str) -> Intrinsic:
    """Write a tile of accumulators to memory, row-major, two neighbouring elements at a time."""

    @T.prim_func(s_tir=True)
    def implementation(source: T.handle, target: T.handle) -> None:
        d0, d1 = T.int32(), T.int32()
        F = T.match_buffer(source, (TILE, TILE), accumulate, align=64, offset_factor=TILE, scope=C_SCOPE)
        D = T.match_buffer(
            target, (TILE, TILE), accumulate, align=64, offset_factor=TILE, scope=memory, strides=[d0, d1]
        )
        with T.sblock("root"):
            T.reads(F[0:TILE, 0:TILE])
            T.writes(D[0:TILE, 0:TILE])
            for lane in T.thread_binding(0, 32, "threadIdx.x"):
                for right, lower in T.grid(2, 2):
                    for pair in T.vectorized(2):
                        row, column = T.meta_var((lower * 8 + lane // 4, right * 8 + lane % 4 * 2 + pair))
                        D[row, column] = F[row, column]

    return tiles.copy(accumulate, C_SCOPE, memory), implementation
