"""Pieces of an array, copied to shared memory by bulk copies, which take no tensor map."""

# TVMScript has buffer types that are calls, and only a stub for tvm.script.tirx.
# pyright: reportInvalidTypeForm=false, reportMissingModuleSource=false

from __future__ import annotations

from tvm.script import tirx as T

from tir_schedules.tir.intrinsics import in_halves, ring
from tir_schedules.tir.intrinsics.boxes import SHARED
from tir_schedules.tir.intrinsics.device import call
from tir_schedules.tir.schedule import PrimFunc


@in_halves
def load(describes: bool, elements: int, length: int, dtype: str) -> PrimFunc:
    """A piece of an array to shared memory, zeros behind the end of the array. All threads come here: the
    first one starts the copy. length: of the array. TVM must not see that this writes to shared memory, or it
    adds barriers."""

    @T.prim_func(s_tir=True)
    def half(source: T.handle, target: T.handle) -> None:
        S = T.match_buffer(source, (elements,), dtype, align=64, offset_factor=elements, scope="global")
        D = T.match_buffer(target, (elements,), dtype, align=64, offset_factor=elements, scope=SHARED)
        with T.sblock("root"):
            T.reads(S[0:elements])
            T.writes(D[0:elements])
            if describes:
                for i in range(elements):
                    with T.sblock("copy"):
                        vi = T.axis.spatial(elements, i)
                        D[vi] = S[vi]
            else:
                T.evaluate(
                    call(
                        f"load_piece<{elements}>", T.address_of(D[0]), S.data, S.elem_offset // elements,
                        length, ring.full(),
                    )
                )  # fmt: skip

    return half
