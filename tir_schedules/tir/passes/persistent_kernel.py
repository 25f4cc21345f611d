"""Persistent kernel: a block computes tile after tile of C.

A schedule can divide a loop over tiles among blocks only evenly, and once the loop is fused and split again
its body cannot be tensorized: the rows of a tile are then no affine map of loops. So the schedule binds rows
and columns of tiles to blockIdx.y and blockIdx.x. This pass turns them into a loop within the block. Tiles
are rasterized in stripes, some rows of tiles together and column by column, so that tiles computed at the
same time share rows of A and columns of B in L2.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import tvm_ffi
from tvm import IRModule, tirx, transform

from tir_schedules.model.annotations import PERSISTENT_KERNEL
from tir_schedules.tir.passes.rewriting import (
    map_body,
    replace_body,
    substitute,
    thread_tag,
)
from tir_schedules.tir.passes.stream_k import StreamK
from tir_schedules.tir.passes.stream_k_accumulate import StreamKAccumulate
from tir_schedules.tir.passes.threadblock_swizzle import thread_loop


@tirx.transform.prim_func_pass(opt_level=0, name="tir_schedules.persistent_kernel")
def persistent_kernel(
    function: tirx.PrimFunc, module: IRModule, context: transform.PassContext
) -> tirx.PrimFunc:
    """Replace an annotated loop on blockIdx.y, and the one on blockIdx.x in it, by a loop over blocks on
    blockIdx.x, and within threadIdx.y a loop over the tiles of a block. Where threads have one dimension it
    is within threadIdx.x, and `StreamKAccumulate` shares tiles."""

    def persist(rows: Any) -> tirx.Stmt:
        if PERSISTENT_KERNEL not in rows.annotations:
            return rows
        programs, stripe, stacked, beside, *shared = map(int, rows.annotations[PERSISTENT_KERNEL])
        columns = rows.body
        assert thread_tag(columns) == "blockIdx.x", "the loop over columns of tiles is in the loop over rows"
        cluster = stacked * beside
        row_count, column_count = int(rows.extent) // stacked, int(columns.extent) // beside
        tiles = row_count * column_count  # of clusters
        program: Any = tirx.Var("program", "int32")
        iteration: Any = tirx.Var("tile", "int32")
        first, step = quotient(program, cluster), programs // cluster
        within = merge_copies(columns.body)
        flat = thread_tag(within) == "threadIdx.x"
        which = partial(StreamKAccumulate, threads=int(within.extent)) if flat else StreamK
        streamed = which(program, programs, tiles, *shared) if shared else None
        number = streamed.tile if streamed else first + iteration * step
        row, column = tile_in_stripes(number, row_count, column_count, stripe)
        row = row * stacked + remainder(program, stacked) if stacked > 1 else row
        column = column * beside + remainder(quotient(program, stacked), beside) if beside > 1 else column

        def within_block(threads: Any) -> tirx.Stmt:
            if thread_tag(threads) != "threadIdx.y" and not flat:
                return threads
            at = streamed.place(row_count, column_count) if streamed else (row, column)
            body = substitute(substitute(threads.body, rows.loop_var, at[0]), columns.loop_var, at[1])
            count = quotient(tiles - 1 - first + step, step)
            if streamed:
                body, count = streamed.compute_tile(body, iteration, (row, column)), streamed.count
            zero = tirx.IntImm("int32", 0)
            loop = tirx.For(iteration, zero, count, tirx.ForKind.SERIAL, body)
            return replace_body(threads, tirx.SeqStmt([*streamed.start(), loop]) if streamed else loop)

        if flat:  # copies have loops on threadIdx.x of their own
            return thread_loop(program, programs, "blockIdx.x", within_block(within))
        body = tvm_ffi.structural_map(columns.body, (tirx.For, within_block), order="post")
        return thread_loop(program, programs, "blockIdx.x", body)

    return map_body(function, tirx.For, persist)


def merge_copies(body: Any) -> Any:
    """The compute of a block for a tile. Where threads copy a tile of C cooperatively behind the loop on
    threadIdx.x that computes it, the copy becomes a part of that loop: both are on the same threads."""
    computed, *copied = getattr(body, "seq", [body])
    if not copied or thread_tag(computed) != "threadIdx.x":
        return body
    return replace_body(computed, tirx.SeqStmt([*computed.body.seq, *copied]))


def tile_in_stripes(number: Any, rows: int, columns: int, stripe: int) -> tuple[Any, Any]:
    """Row and column of a tile. The last stripe may have fewer rows than others. The index of a single row or
    column is a constant 0, because TVM has put that in place of the loop's variable in some blocks."""
    if rows == 1:
        return int32(0), number
    if columns == 1:
        return number, int32(0)
    stripe = min(stripe, rows)
    whole = stripe * columns
    above, within = quotient(number, whole) * stripe, remainder(number, whole)
    height = stripe
    if rows % stripe:  # TVM must see that it is positive, else that a tile's number might be less than 0
        height = tirx.max(tirx.min(stripe, rows - above), 1)
    return above + remainder(within, height), quotient(within, height)


def quotient(value: Any, by: Any) -> Any:
    """A truncated quotient. Both numbers are not negative, which TVM cannot prove."""
    return tirx.truncdiv(value, int32(by))


def remainder(value: Any, by: Any) -> Any:
    return tirx.truncmod(value, int32(by))


def int32(value: Any) -> Any:
    """A Python int as TVM's constant; other values as they are."""
    return tirx.IntImm("int32", value) if isinstance(value, int) else value
