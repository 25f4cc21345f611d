"""Serpentine order of loops: a loop runs backwards in every second iteration of a loop around it.

Where an inner loop starts again at its first iteration, both factors of a thread's next product change. Where
it runs backwards instead, one factor stays, and its register can be reused. No schedule primitive expresses
this: the value of a loop that depends on another's is not an affine map of loops.

An index is reversed by an exclusive or, or where the extent is not a power of two by a sum, not by TIR's
select: nvcc counts the instructions of a loop before it knows which are constants, and with a select for each
index it unrolls a loop over four stages by two.
"""

from __future__ import annotations

from typing import Any

from tvm import IRModule, tirx, transform

from tir_schedules.model.annotations import SERPENTINE_LOOPS
from tir_schedules.tir.passes.rewriting import map_body, replace_body, substitute


def reversed_in(odd: Any, index: Any, extent: int) -> Any:
    """An index that runs backwards where `odd` is 1, not 0."""
    last = extent - 1
    return index ^ (odd * last) if extent & last == 0 else index + odd * (last - 2 * index)


@tirx.transform.prim_func_pass(opt_level=0, name="tir_schedules.serpentine_loops")
def serpentine_loops(
    function: tirx.PrimFunc, module: IRModule, context: transform.PassContext
) -> tirx.PrimFunc:
    """Reverse every loop annotated with SERPENTINE_LOOPS in the odd iterations of the loop that the
    annotation names. Only annotated loops stand between the two."""

    def reverse(outermost: Any) -> Any:
        nest = [outermost]
        while isinstance(nest[-1].body, tirx.For) and SERPENTINE_LOOPS in nest[-1].body.annotations:
            nest.append(nest[-1].body)
        if SERPENTINE_LOOPS in outermost.annotations:
            return outermost
        body = nest[-1].body
        for place, loop in enumerate(nest[1:], 1):  # outer ones first: rounds are counted, not rows
            rounds = nest[place - int(loop.annotations[SERPENTINE_LOOPS])].loop_var
            body = substitute(body, loop.loop_var, reversed_in(rounds % 2, loop.loop_var, int(loop.extent)))
        for loop in reversed(nest):
            body = replace_body(loop, body)
        return body

    return map_body(function, tirx.For, reverse)
