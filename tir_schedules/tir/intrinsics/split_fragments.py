"""Products of float32 tiles by mma.m16n8k16: fragments are split into parts of bfloat16 in registers.

What a warp multiplies is a tile of A and one of B in shared memory, in float32. The instructions are a device
function, see cuda_reference/sgemm/split_fragments.cuh, which also says which lane has which sums. These have
TVM's scope "warp".
"""

# TVMScript has buffer types that are calls, and only a stub for tvm.script.tirx.
# pyright: reportInvalidTypeForm=false, reportMissingModuleSource=false

from __future__ import annotations

from typing import Any, Callable

from tvm.script import tirx as T

from tir_schedules.tir.intrinsics import in_halves
from tir_schedules.tir.intrinsics.device import call
from tir_schedules.tir.schedule import PrimFunc

LANES = 32
SHARED, SUMS = "shared.dyn", "warp"


def at_once(width: int) -> int:
    """Neighbouring columns of B that a lane reads, of a tile so wide: those of as many mma."""
    return 4 if width % 32 == 0 else 2 if width % 16 == 0 else 1


def place_of_sum(i: Any, j: Any, width: int) -> tuple[Any, Any]:
    """Which lane has the sum of a row and a column of a warp's tile, and in which place of its."""
    near = 2 * at_once(width)
    lane = i % 8 * 4 + j % (4 * near) // near
    return lane, i // 8 * (width // 4) + j // (4 * near) * near + j % near


def sums_map(height: int, width: int) -> Callable[[Any, Any, Any], list[Any]]:
    """The index map, for `transform_layout`, of all sums: part of K; row and column of tiles; lane; place."""

    def index_map(part: Any, i: Any, j: Any) -> list[Any]:
        return [part, i // height, j // width, *place_of_sum(i % height, j % width, width)]

    return index_map


@in_halves
def multiply(describes: bool, height: int, width: int, depth: int, a_row: int, b_row: int) -> PrimFunc:
    """sums += A @ B: `height` rows of A, `width` columns of B, `depth` deep. a_row, b_row: floats of rows in
    shared memory."""
    places = height * width // LANES
    name = f"multiply_split_tiles<{height}, {width}, {depth}, {a_row}, {b_row}>"

    @T.prim_func(s_tir=True)
    def half(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(
            a, (height, depth), "float32", align=8, offset_factor=1, scope=SHARED, strides=[a_row, 1]
        )
        B = T.match_buffer(
            b, (depth, width), "float32", align=4, offset_factor=1, scope=SHARED, strides=[b_row, 1]
        )
        C = T.match_buffer(c, (LANES, places), "float32", align=4, offset_factor=1, scope=SUMS)
        with T.sblock("root"):
            T.reads(C[0:LANES, 0:places], A[0:height, 0:depth], B[0:depth, 0:width])
            T.writes(C[0:LANES, 0:places])
            if describes:
                for i, j, k in T.grid(height, width, depth):
                    with T.sblock("multiply"):
                        vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                        at = T.meta_var(place_of_sum(vi, vj, width))
                        T.reads(C[at], A[vi, vk], B[vk, vj])
                        T.writes(C[at])
                        C[at] = C[at] + A[vi, vk] * B[vk, vj]
            else:
                for lane in T.thread_binding(0, LANES, "threadIdx.x"):
                    T.evaluate(call(name, C[lane, 0], T.address_of(A[0, 0]), T.address_of(B[0, 0])))

    return half
