"""Guards of a loop's body in front of the loop, where they do not ask for its variable.

What copies a ragged tile of C asks for row and column at once, for each element. Unrolled, nvcc has all
answers and all addresses ready before it stores the first element, and keeps them in registers beside a
thread's whole tile. With the question for the row outside it answers one row after the other.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

from tvm import IRModule, tirx, transform
from tvm.tirx.analysis import undefined_vars

from tir_schedules.tir.passes import GUARDS_OUTSIDE
from tir_schedules.tir.passes.rewriting import conjuncts, map_body, with_body


@tirx.transform.prim_func_pass(opt_level=0, name="tir_schedules.guards_outside")
def guards_outside(
    function: tirx.PrimFunc, module: IRModule, context: transform.PassContext
) -> tirx.PrimFunc:
    """Move comparisons out of every loop that is annotated with GUARDS_OUTSIDE and is nothing but an if."""

    def move(loop: Any) -> tirx.Stmt:
        guarded = loop.body
        if GUARDS_OUTSIDE not in loop.annotations or not isinstance(guarded, tirx.IfThenElse):
            return loop
        asked = conjuncts(getattr(guarded, "condition"))
        inside = [each for each in asked if uses(each, loop.loop_var)]
        outside = [each for each in asked if not uses(each, loop.loop_var)]
        if not outside or getattr(guarded, "else_case") is not None:
            return loop
        return guarding(outside, with_body(loop, guarding(inside, getattr(guarded, "then_case"))))

    return map_body(function, tirx.For, move)


def uses(value: Any, variable: tirx.Var) -> bool:
    return any(each.same_as(variable) for each in undefined_vars(value))


def guarding(asked: list[Any], body: tirx.Stmt) -> tirx.Stmt:
    """A statement that is executed where all that is asked is true."""
    return tirx.IfThenElse(reduce(tirx.And, asked), body, None) if asked else body
