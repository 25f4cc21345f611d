"""16x16x16 fragments of nvcuda::wmma: float16 operands, float16 or float32 accumulators.

A fragment buffer keeps its matrix's indices; where CUDA keeps the elements is the fragment's secret. TVM
numbers the fragments of a buffer tile by tile, row by row.

All but `fill` are TVM's own. TVM registers those that read shared memory; its generators make the ones that
read global memory, too. `fill` is ours: a kernel that copies nothing binds no lanes to threadIdx.x, and with
TVM's own it is launched with 8 threads in place of 256.
"""

# TVMScript has buffer types that are calls, and only a stub for tvm.script.tirx.
# pyright: reportInvalidTypeForm=false, reportMissingModuleSource=false

from __future__ import annotations

from tvm.s_tir.tensor_intrin import cuda
from tvm.script import tirx as T

from tir_schedules.tir.intrinsics import Intrinsic, intrinsic, tiles
from tir_schedules.tir.intrinsics.tiles import TILE, index

C_SCOPE = "wmma.accumulator"
SHAPE = (TILE, TILE, TILE)


@intrinsic
def load(operand: str, scope: str, transposed: bool) -> Intrinsic:
    """Read a tile of operand "a" or "b" from memory of `scope`; transposed: the tile of b is stored as n x
    k."""
    return cuda.get_wmma_load_intrin(*SHAPE, "float16", scope, operand == "b", transposed)


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
    return cuda.get_wmma_sync_intrin(*SHAPE, "float16", accumulate, transposed)


@intrinsic
def store(accumulate: str, scope: str) -> Intrinsic:
    """Write an accumulator to memory of `scope`, row-major."""
    return cuda.get_wmma_store_intrin(*SHAPE, accumulate, scope)


def scope(operand: str, transposed: bool) -> str:
    """Where TVM keeps the fragments of "a", "b" or "c"."""
    return C_SCOPE if operand == "c" else f"wmma.matrix_{operand}"
