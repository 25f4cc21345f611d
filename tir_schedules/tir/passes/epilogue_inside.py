"""The epilogue of a software pipeline as turns of its loop.

InjectSoftwarePipeline writes out the turns in which nothing is left to fetch. Where a turn is long, that is
much code: of `sgemm/tma` a slab's products stand in the kernel twice, 9,800 instructions in place of 5,100.
Each statement of the loop has been told by that pass in which turns it is needed. So the loop may have as
many turns more as the epilogue has, and a question in each of them takes the place of the code.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any, Sequence

import tvm_ffi
from tvm import IRModule, s_tir, tirx, transform

from tir_schedules.tir.passes import EPILOGUE_INSIDE
from tir_schedules.tir.passes.rewriting import map_body, with_block_body


@tirx.transform.prim_func_pass(opt_level=0, name="tir_schedules.epilogue_inside")
def epilogue_inside(
    function: tirx.PrimFunc, module: IRModule, context: transform.PassContext
) -> tirx.PrimFunc:
    """Give every pipelined loop that is annotated with EPILOGUE_INSIDE so many turns more, and leave out what
    stands behind it in its block: the epilogue."""

    def fold(sequence: Any) -> tirx.Stmt:
        statements = list(sequence.seq)
        for place, statement in enumerate(statements):
            loop = statement.block.body if isinstance(statement, s_tir.SBlockRealize) else None
            if isinstance(loop, tirx.For) and EPILOGUE_INSIDE in loop.annotations:
                assert place == len(statements) - 2, "a loop, its epilogue, and nothing behind"
                return tirx.SeqStmt([*statements[:place], with_block_body(statement, longer(loop))])
        return sequence

    return map_body(function, tirx.SeqStmt, fold)


def longer(loop: Any) -> tirx.For:
    """The loop with its epilogue's turns. What several statements in a row ask is asked once."""
    groups = groupby(loop.body.seq, key=lambda realize: Asked(realize.predicate))
    asking = [
        tirx.IfThenElse(asked.what, in_sequence([unconditional(realize) for realize in group]), None)
        for asked, group in groups
    ]
    extent = tirx.IntImm("int32", int(loop.extent) + int(loop.annotations[EPILOGUE_INSIDE]))
    annotations = {name: value for name, value in loop.annotations.items() if name != EPILOGUE_INSIDE}
    return tirx.For(
        loop.loop_var, loop.min, extent, loop.kind, in_sequence(asking), loop.thread_binding, annotations
    )


def in_sequence(statements: Sequence[tirx.Stmt]) -> tirx.Stmt:
    """Statements one after another; TVM has no sequence of one."""
    return tirx.SeqStmt([*statements]) if len(statements) > 1 else statements[0]


class Asked:
    """What a statement asks; equal where the same is asked."""

    def __init__(self, what: Any) -> None:
        self.what = what

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Asked) and tvm_ffi.structural_equal(self.what, other.what)


def unconditional(realize: Any) -> tirx.Stmt:
    """A statement that asks nothing."""
    return s_tir.SBlockRealize(realize.iter_values, tirx.const(True, "bool"), realize.block)
