"""Boxes of a matrix, copied by TMA (the Tensor Memory Accelerator) from and to shared memory.

In shared memory a box has rows of 128 bytes, under the swizzle of 128 bytes, or longer ones as they are. In
place of its tensor map an intrinsic names the matrix, see the pass `tensor_maps`.
"""

# TVMScript has buffer types that are calls, and only a stub for tvm.script.tirx.
# pyright: reportInvalidTypeForm=false, reportMissingModuleSource=false

from __future__ import annotations

import math
from typing import Any

from tvm import DataType
from tvm.script import tirx as T

from tir_schedules.tir.intrinsics import Intrinsic, intrinsic, ring
from tir_schedules.tir.intrinsics.device import call
from tir_schedules.tir.schedule import PrimFunc

MAP, PREFETCH = "tir_schedules.map", "tir_schedules.prefetch"
COLUMNS = 64  # of A and B, 128 bytes
SHARED = "shared.dyn"
PIECES = {8: "uint2", 4: "unsigned", 2: "unsigned short"}  # by bytes
BOXES = "local"
"""The scope of boxes of C in a schedule. They belong to one warpgroup. TVM has no scope for that: of a
buffer in shared memory it asks that what all warpgroups write is one region. `warp_specialization` puts them
there."""


def tensor_map(matrix: Any, rows: int, columns: int, along_k: bool = True) -> Any:
    """What stands for the tensor map of a matrix, with boxes of so many rows and columns. along_k: as
    `promotion_of` has it."""
    return T.call_extern("handle", MAP, matrix.data, rows, columns, int(along_k))


def prefetch() -> Any:
    """What stands for a prefetch of all tensor maps of the kernel."""
    return T.call_extern("int32", PREFETCH)


def copy(rows: int, columns: int, dtype: str, source_scope: str, target_scope: str) -> PrimFunc:
    """A box copied from memory of one scope to another."""

    @T.prim_func(s_tir=True)
    def description(source: T.handle, target: T.handle) -> None:
        s0, d0 = T.int32(), T.int32()
        S = T.match_buffer(
            source, (rows, columns), dtype, align=64, offset_factor=1, scope=source_scope, strides=[s0, 1]
        )
        D = T.match_buffer(
            target, (rows, columns), dtype, align=64, offset_factor=1, scope=target_scope, strides=[d0, 1]
        )
        with T.sblock("root"):
            T.reads(S[0:rows, 0:columns])
            T.writes(D[0:rows, 0:columns])
            for i, j in T.grid(rows, columns):
                with T.sblock("copy"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    D[vi, vj] = S[vi, vj]

    return description


@intrinsic
def load(
    rows: int,
    dtype: str,
    along_k: bool,
    leader: bool,
    announced: int,
    blocks: int,
    columns: int = COLUMNS,
    seen: bool = True,
    apart: int = 1,
    cluster: int = 0,
) -> Intrinsic:
    """A box of a matrix to shared memory, in the stage of its K tile.

    leader: the first thread of a block is to ask for it; else the one that comes here. announced: bytes that
    it announces before, 0 where that is done elsewhere. blocks: of a cluster which all need the box; they
    take turns, box by box along rows (if `along_k`, or if boxes have fewer rows than a K tile) or columns of
    the matrix, and each copies for all. apart: the difference of their numbers in the cluster, from one to
    the next. cluster: its blocks, where these are more. seen: whether TVM is to see that it writes to shared
    memory; where it does, and the threads read that by plain loads, it places barriers between.
    """
    sharing = sum(1 << apart * block for block in range(blocks))  # a bit for each, if block 0 is one of them

    def copying_block(row: Any, column: Any) -> Any:
        by_rows = along_k or rows < COLUMNS
        return T.Cast("uint32", (row // rows if by_rows else column // columns) % blocks)

    def own_number() -> Any:
        return call("block_in_cluster", returns="uint32")

    def turn() -> Any:
        """Which of the blocks that share the box this one is."""
        return own_number() if cluster <= blocks else own_number() // T.uint32(apart) % T.uint32(blocks)

    def sharing_blocks() -> Any:
        if cluster <= blocks:
            return sharing
        return T.shift_left(T.uint32(sharing), own_number() - turn() * T.uint32(apart))

    def is_mine(row: Any, column: Any) -> Any:
        if leader:
            return ring.first_thread()
        return turn() == copying_block(row, column) if blocks > 1 else True

    def announce() -> Any:
        return call("arrive_announcing", ring.full(), announced) if announced else T.int32(0)

    def loaded(place: Any, matrix: Any, row: Any, column: Any) -> Any:
        arguments = place, tensor_map(matrix, rows, columns, along_k), row, column, ring.full()
        if blocks > 1:
            return call("load_box_for", sharing_blocks(), *arguments)
        return call("load_box", *arguments)

    def pointer(box: Any) -> Any:
        # MergeSharedMemoryAllocations does not see a buffer that is known by address_of alone.
        return box.access_ptr("w") if seen else T.address_of(box[0, 0])

    @T.prim_func(s_tir=True)
    def implementation(source: T.handle, target: T.handle) -> None:
        s0, d0 = T.int32(), T.int32()
        S = T.match_buffer(
            source, (rows, columns), dtype, align=64, offset_factor=1, scope="global", strides=[s0, 1]
        )
        D = T.match_buffer(
            target, (rows, columns), dtype, align=64, offset_factor=1, scope=SHARED, strides=[d0, 1]
        )
        with T.sblock("root"):
            T.reads(S[0:rows, 0:columns])
            T.writes(D[0:rows, 0:columns])
            row, column = T.meta_var((S.elem_offset // s0, S.elem_offset % s0))
            place = T.meta_var(call("shared_address", pointer(D), returns="uint32"))
            if is_mine(row, column):
                T.evaluate(announce())
                T.evaluate(loaded(place, S, row, column))

    return copy(rows, columns, dtype, "global", SHARED), implementation


@intrinsic
def store(rows: int, columns: int, dtype: str) -> Intrinsic:
    """A box from shared memory to a matrix, by the first thread of a warpgroup, as a group of its own."""

    @T.prim_func(s_tir=True)
    def implementation(source: T.handle, target: T.handle) -> None:
        s0, d0 = T.int32(), T.int32()
        S = T.match_buffer(
            source, (rows, columns), dtype, align=64, offset_factor=1, scope=BOXES, strides=[s0, 1]
        )
        D = T.match_buffer(
            target, (rows, columns), dtype, align=64, offset_factor=1, scope="global", strides=[d0, 1]
        )
        with T.sblock("root"):
            T.reads(S[0:rows, 0:columns])
            T.writes(D[0:rows, 0:columns])
            row, column = T.meta_var((D.elem_offset // d0, D.elem_offset % d0))
            place = T.meta_var(call("shared_address", S.access_ptr("r"), returns="uint32"))
            for thread in T.thread_binding(0, 128, "threadIdx.x"):
                if thread == 0:
                    T.evaluate(call("store_box", tensor_map(D, rows, columns), row, column, place))
                    T.evaluate(call("commit_stores"))

    return copy(rows, columns, dtype, BOXES, "global"), implementation


@intrinsic
def store_by_threads(rows: int, columns: int, dtype: str, extents: tuple[int, int]) -> Intrinsic:
    """A box from shared memory to a matrix with these extents, by the threads of a warpgroup, because TMA
    does not take its rows. A thread copies as many elements at once as divide a row, 8 bytes at
    most."""
    size = DataType(dtype).bits // 8
    piece = PIECES[math.gcd(extents[1] * size, 8)]
    function = f"copy_box<{rows}, {columns * size}, {piece}>"

    @T.prim_func(s_tir=True)
    def implementation(source: T.handle, target: T.handle) -> None:
        s0, d0 = T.int32(), T.int32()
        S = T.match_buffer(
            source, (rows, columns), dtype, align=64, offset_factor=1, scope=BOXES, strides=[s0, 1]
        )
        D = T.match_buffer(
            target, (rows, columns), dtype, align=64, offset_factor=1, scope="global", strides=[d0, 1]
        )
        with T.sblock("root"):
            T.reads(S[0:rows, 0:columns])
            T.writes(D[0:rows, 0:columns])
            row, column = T.meta_var((D.elem_offset // d0, D.elem_offset % d0))
            place = T.meta_var(call("shared_address", S.access_ptr("r"), returns="uint32"))
            for _ in T.thread_binding(0, 128, "threadIdx.x"):
                T.evaluate(call(function, D.data, row, column, *extents, place))

    return copy(rows, columns, dtype, BOXES, "global"), implementation
