"""Serpentine order of a thread's products: loops turn round in every second round of a loop around them.

From the last round of an inner loop to its first, both factors of a sum's products change. Where the loop
turns round in place of starting again, one of them stays, and its register is still at hand. No schedule
primitive says this: the value of a loop that depends on another's is not an affine map of loops.

A value is turned by an exclusive or, where TIR would rather have a choice: nvcc counts the instructions of a
loop before it knows which are constants, and of a loop over four stages with a choice for each index it
unrolls two.
"""

from __future__ import annotations

from typing import Any

from tvm import IRModule, tirx, transform

from tir_schedules.tir.passes import TURNS
from tir_schedules.tir.passes.rewriting import map_body, with_body, with_value


@tirx.transform.prim_func_pass(opt_level=0, name="tir_schedules.turning_products")
def turning_products(
    function: tirx.PrimFunc, module: IRModule, context: transform.PassContext
) -> tirx.PrimFunc:
    """Turn every loop that is annotated with TURNS. Its extent is a power of two, and between it and the loop
    by which it turns are only such loops."""

    def turn(outermost: Any) -> Any:
        nest = [outermost]
        while isinstance(nest[-1].body, tirx.For) and TURNS in nest[-1].body.annotations:
            nest.append(nest[-1].body)
        if TURNS in outermost.annotations:
            return outermost
        body = nest[-1].body
        for place, loop in enumerate(nest[1:], 1):  # outer ones first: rounds are counted, not rows
            rounds = nest[place - int(loop.annotations[TURNS])].loop_var
            last = int(loop.extent) - 1
            assert not (last & int(loop.extent)), f"a loop over {loop.extent} does not turn by exclusive or"
            body = with_value(body, loop.loop_var, loop.loop_var ^ (rounds % 2 * last))
        for loop in reversed(nest):
            body = with_body(loop, body)
        return body

    return map_body(function, tirx.For, turn)
