"""Write out the turns of a loop that goes round a ring of buffers.

InjectSoftwarePipeline gives every version of a buffer a place in a ring and finds it by the number of the
turn modulo the number of places, anew for each access. With as many turns written out as the ring has places,
the place of each access is a constant, which the instruction itself can add: what remains in the loop is
loads, copies and products, and their order is better for it.
"""

from __future__ import annotations

import tvm_ffi
from tvm import tirx

from tir_schedules.tir.passes import RING
from tir_schedules.tir.passes.rewriting import with_value


@tirx.transform.prim_func_pass(opt_level=0, name="tir_schedules.unroll_ring")
def unroll_ring(function, module, context):
    """Split every annotated serial loop into rounds of turns to be unrolled, and the turns left over."""

    def split(loop):
        places = int(loop.annotations.get(RING, 0)) if loop.kind == tirx.ForKind.SERIAL else 0
        if not places or int(loop.extent) <= places:
            return loop
        rounds, left = divmod(int(loop.extent), places)
        round_ = tirx.Var(f"{loop.loop_var.name}_round", "int32")
        turns = unrolled(loop, places, loop.min + round_ * places)
        parts = [tirx.For(round_, 0, rounds, tirx.ForKind.SERIAL, turns)]
        if left:
            parts.append(unrolled(loop, left, loop.min + rounds * places))
        return tirx.SeqStmt(parts) if left else parts[0]

    return function.with_body(tvm_ffi.structural_map(function.body, (tirx.For, split), order="post"))


def unrolled(loop, turns: int, first):
    """An unrolled loop over some turns of a loop, from turn `first` on."""
    turn = tirx.Var(f"{loop.loop_var.name}_turn", "int32")
    return tirx.For(turn, 0, turns, tirx.ForKind.UNROLLED, with_value(loop.body, loop.loop_var, first + turn))
