"""Every thread adds two elements while it loads, a block apart, so that no thread is idle at the first level.

Half as many blocks do the same work: idle threads removed in article 002 ("Unrolling the Warp", tables of
sections 2.1 and 2.2).

By primitives alone, those of `sequential`; the chunk of a block has twice as many elements. What primitives
cannot say is one array and a loop, see `tree.py`; the configuration `in_place` has both, as a script.
"""

from __future__ import annotations

from tir_schedules.ladders.reduce import in_place, sequential
from tir_schedules.ladders.reduce.steps import Config, InPlace, sum_of_blocks, two_each
from tir_schedules.model.rung import run_as_script
from tir_schedules.tir.schedule import PrimFunc
from tir_schedules.workloads.reduction import Reduction


def prim_func(reduction: Reduction, config: Config, name: str) -> PrimFunc:
    if isinstance(config, InPlace):
        level = in_place.folding(config.block)
        return in_place.script(reduction, config.block, name, level, loads=2)
    return sum_of_blocks(reduction, two_each(reduction, config), name, loads=2)


RUNG = sequential.RUNG.followed_by(
    "first_add",
    "every thread adds two elements while it loads; half as many blocks",
    article="002, idle threads removed",
    configs={"in_place": InPlace()},
    launch=two_each,
    prim_func=prim_func,
)

if __name__ == "__main__":
    run_as_script(RUNG)
