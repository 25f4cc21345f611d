"""Unrolls the epilogue that drains a software pipeline, and makes the depth of every wait a constant.

The depth is part of the instruction `cp.async.wait_group`, but InjectSoftwarePipeline leaves expressions.
After its main loop comes the epilogue, a loop over the K tiles still in flight, in which each iteration waits
until one group of copies fewer is in flight. TVM's option `explicit_unroll` writes out its iterations, but
also those of every unrolled loop: at 4096 the kernel of wmma_swizzled_grid has 331 lines in place of 146,
that of mma_ldmatrix 1977 in place of 301. This pass unrolls the epilogue alone, and the others stay loops
under `#pragma unroll`. Where there are fewer K tiles than stages, the depth is a select between constants
that TVM's simplifier does not fold, because its condition is a bitwise `and`.
"""

from __future__ import annotations

from typing import Any

import tvm_ffi
from tvm import IRModule, tirx, transform
from tvm.ir import Expr
from tvm.ir.prim.expr import BitwiseAnd
from tvm.sym import Analyzer

from tir_schedules.tir.passes.rewriting import map_body, substitute

DEPTH = "async_wait_inflight_count"


@tirx.transform.prim_func_pass(opt_level=0, name="tir_schedules.unroll_drain")
def unroll_drain(function: tirx.PrimFunc, module: IRModule, context: transform.PassContext) -> tirx.PrimFunc:
    """Replace every loop in which the depth of a wait varies by its iterations, one after another."""

    def fold(node: tirx.AttrStmt) -> tirx.AttrStmt:
        if node.attr_key != DEPTH:
            return node
        return tirx.AttrStmt(node.node, node.attr_key, fold_depth(node.value), node.body)

    def unroll(loop: Any) -> tirx.Stmt:
        if loop.kind == tirx.ForKind.THREAD_BINDING or not varying_depth(loop.body):
            return loop
        iterations = (
            substitute(loop.body, loop.loop_var, loop.min + iteration)
            for iteration in range(int(loop.extent))
        )
        return tirx.SeqStmt(
            [
                tvm_ffi.structural_map(iteration, (tirx.AttrStmt, fold), order="post")
                for iteration in iterations
            ]
        )

    return map_body(map_body(function, tirx.AttrStmt, fold), tirx.For, unroll)


def fold_depth(value: Expr) -> Expr:
    """An expression simplified, its bitwise `and` of conditions taken for a logical one."""
    logical = tvm_ffi.structural_map(value, (BitwiseAnd, lambda node: tirx.And(node.a, node.b)), order="post")
    return Analyzer().simplify(logical)


def varying_depth(statement: tirx.Stmt) -> bool:
    """Whether it waits to a depth that is not a constant."""
    found: list[tirx.AttrStmt] = []

    def look(node: tirx.AttrStmt) -> None:
        if node.attr_key == DEPTH and not isinstance(node.value, tirx.IntImm):
            found.append(node)

    tvm_ffi.structural_walk(statement, (tirx.AttrStmt, look))
    return bool(found)
