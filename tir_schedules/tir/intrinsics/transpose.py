"""Transposes a K tile of A in shared memory: TMA copies a box as the matrix lies, in rows along K.

The rows are 128 bytes under the swizzle of 128 bytes. Fragments of one k need the elements of a column side
by side.
"""

# TVMScript has buffer types that are calls, and only a stub for tvm.script.tirx.
# pyright: reportInvalidTypeForm=false, reportMissingModuleSource=false

from __future__ import annotations

from tvm.script import tirx as T

from tir_schedules.tir.intrinsics import in_halves, ring
from tir_schedules.tir.intrinsics.boxes import SHARED
from tir_schedules.tir.intrinsics.device import call
from tir_schedules.tir.schedule import PrimFunc

DEPTH = 32  # floats of a row of a box


@in_halves
def transpose(describes: bool, rows: int, threads: int) -> PrimFunc:
    """All threads wait for a K tile of A, transpose it, and meet. TVM must not see that this writes to shared
    memory, or it adds barriers."""

    @T.prim_func(s_tir=True)
    def half(source: T.handle, target: T.handle) -> None:
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
            if describes:
                for i, k in T.grid(rows, DEPTH):
                    with T.sblock("transpose"):
                        vi, vk = T.axis.remap("SS", [i, k])
                        D[vk, vi] = S[vi, vk]
            else:
                places = T.meta_var((T.address_of(D[0, 0]), S.access_ptr("r")))
                T.evaluate(call(f"transpose_k_tile<{rows}, {threads}>", *places, ring.full(), ring.phase()))

    return half
