"""Loop unswitching: loop-invariant guards of a loop's body move in front of the loop.

The copy of a ragged tile of C is guarded by row and column at once, for each element. Unrolled, nvcc computes
all predicates and addresses before it stores the first element, and keeps them in registers beside a thread's
whole tile. With the row's guard hoisted it computes them row by row.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

from tvm import IRModule, tirx, transform
from tvm.tirx.analysis import undefined_vars

from tir_schedules.model.annotations import LOOP_UNSWITCHING
from tir_schedules.tir.passes.rewriting import conjuncts, map_body, replace_body


@tirx.transform.prim_func_pass(opt_level=0, name="tir_schedules.loop_unswitching")
def loop_unswitching(
    function: tirx.PrimFunc, module: IRModule, context: transform.PassContext
) -> tirx.PrimFunc:
    """Hoist the loop-invariant comparisons out of every loop that is annotated with LOOP_UNSWITCHING and
    whose body is a single `if` without an `else`."""

    def unswitch(loop: Any) -> tirx.Stmt:
        branch = loop.body
        if LOOP_UNSWITCHING not in loop.annotations or not isinstance(branch, tirx.IfThenElse):
            return loop
        conditions = conjuncts(getattr(branch, "condition"))
        inside = [each for each in conditions if uses(each, loop.loop_var)]
        outside = [each for each in conditions if not uses(each, loop.loop_var)]
        if not outside or getattr(branch, "else_case") is not None:
            return loop
        return guard(outside, replace_body(loop, guard(inside, getattr(branch, "then_case"))))

    return map_body(function, tirx.For, unswitch)


def uses(value: Any, variable: tirx.Var) -> bool:
    return any(each.same_as(variable) for each in undefined_vars(value))


def guard(conditions: list[Any], body: tirx.Stmt) -> tirx.Stmt:
    """The statement, predicated on all conditions."""
    return tirx.IfThenElse(reduce(tirx.And, conditions), body, None) if conditions else body
