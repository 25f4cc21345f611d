"""A slab of A that comes as a box, laid out anew with rows along K.

A box lies as the matrix does, here with rows of 128 bytes under the swizzle of 128 bytes. Fragments of one k
want the elements of a column side by side.
"""

# TVMScript has buffer types that are calls, and only a stub for tvm.script.tirx.
# pyright: reportInvalidTypeForm=false, reportMissingModuleSource=false

from __future__ import annotations

from tvm.script import tirx as T

from tir_schedules.tir.intrinsics import Intrinsic, intrinsic, ring
from tir_schedules.tir.intrinsics.boxes import SHARED
from tir_schedules.tir.intrinsics.device import call

DEPTH = 32  # floats of a row of a box


@intrinsic
def turn(rows: int, threads: int) -> Intrinsic:
    """A slab of A turned by all threads, when it is there; behind it they have met. TVM is not to see that
    it writes to shared memory, or it places barriers besides."""

    @T.prim_func(s_tir=True)
    def description(source: T.handle, target: T.handle) -> None:
        s0, d0 = T.int32(), T.int32()
        S = T.match_buffer(
            source, (rows, DEPTH), "float32", align=64, offset_factor=1, scope=SHARED, strides=[s0, 1]
        )
        D = T.match_buffer(
            target, (DEPTH, rows), "float32", align=64, offset_factor=1, scope=SHARED, strides=[d0, 1]
        )
        with T.sblock("root"):
            T.reads(S[0:rows, 0:DEPTH])
            T.writes(D[0:DEPTH, 0:rows])
            for i, k in T.grid(rows, DEPTH):
                with T.sblock("turn"):
                    vi, vk = T.axis.remap("SS", [i, k])
                    D[vk, vi] = S[vi, vk]

    @T.prim_func(s_tir=True)
    def implementation(source: T.handle, target: T.handle) -> None:
        s0, d0 = T.int32(), T.int32()
        S = T.match_buffer(
            source, (rows, DEPTH), "float32", align=64, offset_factor=1, scope=SHARED, strides=[s0, 1]
        )
        D = T.match_buffer(
            target, (DEPTH, rows), "float32", align=64, offset_factor=1, scope=SHARED, strides=[d0, 1]
        )
        with T.sblock("root"):
            T.reads(S[0:rows, 0:DEPTH])
            T.writes(D[0:DEPTH, 0:rows])
            places = T.meta_var((T.address_of(D[0, 0]), S.access_ptr("r")))
            T.evaluate(call(f"turn_slab<{rows}, {threads}>", *places, ring.full(), ring.phase()))

    return description, implementation
