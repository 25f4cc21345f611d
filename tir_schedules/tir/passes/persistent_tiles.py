"""A block computes tile after tile of C.

A schedule can divide a loop over tiles among blocks only evenly, and once it is fused and split again what
stands in it cannot be tensorized: the rows of a tile are then no affine map of loops. So it binds rows and
columns of tiles to blockIdx.y and blockIdx.x. This pass makes a loop of them within the block, in the order
of stripes: some rows of tiles together, column by column, so that tiles that are computed at a time share
rows of A and columns of B in L2.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import tvm_ffi
from tvm import IRModule, tirx, transform

from tir_schedules.tir.passes import PROGRAMS
from tir_schedules.tir.passes.added_tiles import Added
from tir_schedules.tir.passes.partial_group import on_grid
from tir_schedules.tir.passes.rewriting import map_body, with_body, with_value
from tir_schedules.tir.passes.serpentine import thread_tag
from tir_schedules.tir.passes.streamed_tiles import Streamed


@tirx.transform.prim_func_pass(opt_level=0, name="tir_schedules.persistent_tiles")
def persistent_tiles(
    function: tirx.PrimFunc, module: IRModule, context: transform.PassContext
) -> tirx.PrimFunc:
    """Make of an annotated loop on blockIdx.y, and the one on blockIdx.x in it, one on blockIdx.x over
    blocks, and within threadIdx.y a loop over the tiles of a block; within threadIdx.x where threads stand in
    one dimension. There tiles are shared by `Added`."""

    def shared_out(rows: Any) -> tirx.Stmt:
        if PROGRAMS not in rows.annotations:
            return rows
        programs, stripe, cluster, *shared = map(int, rows.annotations[PROGRAMS])
        columns = rows.body
        assert thread_tag(columns) == "blockIdx.x", "columns of tiles stand in the rows"
        row_count, column_count = int(rows.extent) // cluster, int(columns.extent)
        tiles = row_count * column_count  # of clusters
        program: Any = tirx.Var("program", "int32")
        taken: Any = tirx.Var("tile", "int32")
        first, step = quotient(program, cluster), programs // cluster
        within = in_threads(columns.body)
        flat = thread_tag(within) == "threadIdx.x"
        which = partial(Added, threads=int(within.extent)) if flat else Streamed
        streamed = which(program, programs, tiles, *shared) if shared else None
        number = streamed.tile if streamed else first + taken * step
        row, column = tile_in_stripes(number, row_count, column_count, stripe)
        row = row * cluster + remainder(program, cluster) if cluster > 1 else row

        def within_block(threads: Any) -> tirx.Stmt:
            if thread_tag(threads) != "threadIdx.y" and not flat:
                return threads
            at = streamed.place(row_count, column_count) if streamed else (row, column)
            body = with_value(with_value(threads.body, rows.loop_var, at[0]), columns.loop_var, at[1])
            count = quotient(tiles - 1 - first + step, step)
            if streamed:
                body, count = streamed.within(body, taken, (row, column)), streamed.count
            zero = tirx.IntImm("int32", 0)
            turns = tirx.For(taken, zero, count, tirx.ForKind.SERIAL, body)
            return with_body(threads, tirx.SeqStmt([*streamed.start(), turns]) if streamed else turns)

        if flat:  # copies have loops on threadIdx.x of their own
            return on_grid(program, programs, "blockIdx.x", within_block(within))
        body = tvm_ffi.structural_map(columns.body, (tirx.For, within_block), order="post")
        return on_grid(program, programs, "blockIdx.x", body)

    return map_body(function, tirx.For, shared_out)


def in_threads(body: Any) -> Any:
    """What a block does for a tile. Where threads copy a tile of C together, behind the loop on threadIdx.x
    that computes it, as a part of that loop: both are on the same threads."""
    computed, *copied = getattr(body, "seq", [body])
    if not copied or thread_tag(computed) != "threadIdx.x":
        return body
    return with_body(computed, tirx.SeqStmt([*computed.body.seq, *copied]))


def tile_in_stripes(number: Any, rows: int, columns: int, stripe: int) -> tuple[Any, Any]:
    """Row and column of a tile. The last stripe may have fewer rows than others. Of one row or column of
    tiles the number is said: TVM has put it in the place of the loop's variable in some of the blocks."""
    if rows == 1:
        return counted(0), number
    if columns == 1:
        return number, counted(0)
    stripe = min(stripe, rows)
    whole = stripe * columns
    above, within = quotient(number, whole) * stripe, remainder(number, whole)
    height = stripe
    if rows % stripe:  # TVM must see that it is positive, else that a tile's number might be less than 0
        height = tirx.max(tirx.min(stripe, rows - above), 1)
    return above + remainder(within, height), quotient(within, height)


def quotient(value: Any, by: Any) -> Any:
    """Of numbers that are not negative, which TVM could not know."""
    return tirx.truncdiv(value, counted(by))


def remainder(value: Any, by: Any) -> Any:
    return tirx.truncmod(value, counted(by))


def counted(value: Any) -> Any:
    """A number as TVM has it."""
    return tirx.IntImm("int32", value) if isinstance(value, int) else value
