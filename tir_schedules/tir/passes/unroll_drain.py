"""Make the depth of every wait a constant, and unroll the loop that drains a pipeline.

The depth is part of the instruction `cp.async.wait_group`, but InjectSoftwarePipeline leaves expressions.
After its main loop comes a loop over the tiles still under way, in which each turn waits until one group of
copies less is in flight. TVM's option `explicit_unroll` has its turns written out, but with them those of
every unrolled loop: at 4096 the kernel of wmma_swizzled_grid has 331 lines in place of 146, that of
mma_ldmatrix 1977 in place of 301. Here it is the draining loop alone, and the others stay loops under
`#pragma unroll`. Where there are fewer tiles than stages, the depth is a choice between constants that TVM's
simplifier does not make, for its condition is a bitwise `and`.
"""

from __future__ import annotations

from typing import Any

import tvm_ffi
from tvm import IRModule, tirx, transform
from tvm.ir import Expr
from tvm.ir.prim.expr import BitwiseAnd
from tvm.sym import Analyzer

from tir_schedules.tir.passes.rewriting import map_body, with_value

DEPTH = "async_wait_inflight_count"


@tirx.transform.prim_func_pass(opt_level=0, name="tir_schedules.unroll_drain")
def unroll_drain(function: tirx.PrimFunc, module: IRModule, context: transform.PassContext) -> tirx.PrimFunc:
    """Replace every loop in which the depth of a wait varies by its turns, one after another."""

    def fold(node: tirx.AttrStmt) -> tirx.AttrStmt:
        if node.attr_key != DEPTH:
            return node
        return tirx.AttrStmt(node.node, node.attr_key, folded(node.value), node.body)

    def write_out(loop: Any) -> tirx.Stmt:
        if loop.kind == tirx.ForKind.THREAD_BINDING or not varying_depth(loop.body):
            return loop
        turns = (with_value(loop.body, loop.loop_var, loop.min + turn) for turn in range(int(loop.extent)))
        return tirx.SeqStmt(
            [tvm_ffi.structural_map(turn, (tirx.AttrStmt, fold), order="post") for turn in turns]
        )

    return map_body(map_body(function, tirx.AttrStmt, fold), tirx.For, write_out)


def folded(value: Expr) -> Expr:
    """An expression simplified, its bitwise `and` of conditions taken for a logical one."""
    logical = tvm_ffi.structural_map(value, (BitwiseAnd, lambda node: tirx.And(node.a, node.b)), order="post")
    return Analyzer().simplify(logical)


def varying_depth(statement: tirx.Stmt) -> bool:
    """Whether it waits to a depth that is no constant."""
    found: list[tirx.AttrStmt] = []

    def look(node: tirx.AttrStmt) -> None:
        if node.attr_key == DEPTH and not isinstance(node.value, tirx.IntImm):
            found.append(node)

    tvm_ffi.structural_walk(statement, (tirx.AttrStmt, look))
    return bool(found)
