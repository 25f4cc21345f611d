"""Boxes of a matrix, copied by the copy engine (TMA) from and to shared memory.

A box has 64 columns: in shared memory rows of 128 bytes, under the swizzle of 128 bytes. In place of its
tensor map an intrinsic names the matrix, see the pass `tensor_maps`.
"""

# TVMScript has buffer types that are calls, and only a stub for tvm.script.tirx.
# pyright: reportInvalidTypeForm=false, reportMissingModuleSource=false

from __future__ import annotations

from typing import Any

from tvm.script import tirx as T

from tir_schedules.tir.intrinsics import Intrinsic, intrinsic, ring
from tir_schedules.tir.intrinsics.device import call
from tir_schedules.tir.schedule import PrimFunc

MAP = "tir_schedules.map"
COLUMNS = 64
SHARED = "shared.dyn"


def tensor_map(matrix: Any, rows: int) -> Any:
    """What stands for the tensor map of a matrix, with boxes of so many rows."""
    return T.call_extern("handle", MAP, matrix.data, rows, COLUMNS)


def copy(rows: int, dtype: str, source_scope: str, target_scope: str) -> PrimFunc:
    """A box copied from memory of one scope to another."""

    @T.prim_func(s_tir=True)
    def description(source: T.handle, target: T.handle) -> None:
        s0, d0 = T.int32(), T.int32()
        S = T.match_buffer(
            source, (rows, COLUMNS), dtype, align=64, offset_factor=1, scope=source_scope, strides=[s0, 1]
        )
        D = T.match_buffer(
            target, (rows, COLUMNS), dtype, align=64, offset_factor=1, scope=target_scope, strides=[d0, 1]
        )
        with T.sblock("root"):
            T.reads(S[0:rows, 0:COLUMNS])
            T.writes(D[0:rows, 0:COLUMNS])
            for i, j in T.grid(rows, COLUMNS):
                with T.sblock("copy"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    D[vi, vj] = S[vi, vj]

    return description


@intrinsic
def load(rows: int, dtype: str, announced: int, blocks: int, along_rows: bool) -> Intrinsic:
    """A box of a matrix to shared memory, by a thread that is the only one to do so.

    announced: bytes that it announces before, 0 where that is done elsewhere. The first thread of the block
    is then the one that copies; else whoever comes here. blocks: of a cluster, which all need the box; they
    take turns, box by box along rows or columns of the matrix, and each copies for all.
    """

    def turn(row: Any, column: Any) -> Any:
        return (row // rows if along_rows else column // COLUMNS) % blocks

    @T.prim_func(s_tir=True)
    def implementation(source: T.handle, target: T.handle) -> None:
        s0, d0 = T.int32(), T.int32()
        S = T.match_buffer(
            source, (rows, COLUMNS), dtype, align=64, offset_factor=1, scope="global", strides=[s0, 1]
        )
        D = T.match_buffer(
            target, (rows, COLUMNS), dtype, align=64, offset_factor=1, scope=SHARED, strides=[d0, 1]
        )
        with T.sblock("root"):
            T.reads(S[0:rows, 0:COLUMNS])
            T.writes(D[0:rows, 0:COLUMNS])
            row, column = T.meta_var((S.elem_offset // s0, S.elem_offset % s0))
            # MergeSharedMemoryAllocations does not see a buffer that is known by address_of alone.
            place = T.meta_var(call("shared_address", D.access_ptr("w"), returns="uint32"))
            if announced:
                if call("first_thread", returns="bool"):
                    T.evaluate(call("arrive_announcing", ring.full(), announced))
                    T.evaluate(call("load_box", place, tensor_map(S, rows), row, column, ring.full()))
            elif blocks > 1:
                if call("block_in_cluster", returns="uint32") == T.Cast("uint32", turn(row, column)):
                    T.evaluate(
                        call(
                            "load_box_for", T.uint16(2**blocks - 1), place, tensor_map(S, rows), row, column,
                            ring.full(),
                        )
                    )  # fmt: skip
            else:
                T.evaluate(call("load_box", place, tensor_map(S, rows), row, column, ring.full()))

    return copy(rows, dtype, "global", SHARED), implementation


@intrinsic
def store(rows: int, dtype: str) -> Intrinsic:
    """A box from shared memory to a matrix, by the first thread of a warpgroup, as a group of its own."""

    @T.prim_func(s_tir=True)
    def implementation(source: T.handle, target: T.handle) -> None:
        s0, d0 = T.int32(), T.int32()
        S = T.match_buffer(
            source, (rows, COLUMNS), dtype, align=64, offset_factor=1, scope=SHARED, strides=[s0, 1]
        )
        D = T.match_buffer(
            target, (rows, COLUMNS), dtype, align=64, offset_factor=1, scope="global", strides=[d0, 1]
        )
        with T.sblock("root"):
            T.reads(S[0:rows, 0:COLUMNS])
            T.writes(D[0:rows, 0:COLUMNS])
            row, column = T.meta_var((D.elem_offset // d0, D.elem_offset % d0))
            place = T.meta_var(call("shared_address", S.access_ptr("r"), returns="uint32"))
            for thread in T.thread_binding(0, 128, "threadIdx.x"):
                if thread == 0:
                    T.evaluate(call("store_box", tensor_map(D, rows), row, column, place))
                    T.evaluate(call("commit_stores"))

    return copy(rows, dtype, SHARED, "global"), implementation
