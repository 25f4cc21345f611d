"""A tree in shared memory; at level k every 2^kth thread adds a sum and its neighbour, 2^(k-1) words apart.

The threads that work are spread over all warps, so every warp runs through every level with fewer and fewer
lanes active: the baseline of article 002 ("Unrolling the Warp", tables of sections 2.1 and 2.2). Look for
`threadIdx.x) & 3`, `& 7`, `& 15` in the emitted CUDA, and for nearly twice as many warp instructions as
in `interleaved`.

By primitives alone. What these cannot say is one array and a loop, see `tree.py`; the configuration
`in_place` has both, as a script. There the remainder costs a division besides.
"""

from __future__ import annotations

from tir_schedules.ladders.reduce import in_place
from tir_schedules.ladders.reduce.steps import Config, InPlace, one_each, sum_of_blocks
from tir_schedules.ladders.reduce.tree import (
    bind_levels,
    neighbours,
    split_into_levels,
    spread,
    spread_threads,
)
from tir_schedules.model.rung import Rung, run_as_script
from tir_schedules.tir.schedule import PrimFunc, Schedule
from tir_schedules.workloads.reduction import Reduction

NEIGHBOURS = in_place.TreeLevel(
    works=lambda t, k: t % (2 << k) == 0, into=lambda t, k: t, source=lambda t, k: t + (1 << k)
)


def prim_func(reduction: Reduction, config: Config, name: str) -> PrimFunc:
    if isinstance(config, InPlace):
        return in_place.script(reduction, config.block, name, NEIGHBOURS)
    return sum_of_blocks(reduction, one_each(reduction, config), name)


def schedule(sch: Schedule, reduction: Reduction, config: Config) -> None:
    if isinstance(config, InPlace):
        return in_place.keep_loop(sch)
    levels = split_into_levels(sch, config.block, neighbours)
    spread(sch, levels)
    bind_levels(sch, levels, config.block, spread_threads)


RUNG = Rung(
    family="reduce",
    name="divergent",
    summary="a tree in shared memory; the threads that work are spread over all warps",
    article="002, baseline",
    config=Config(),
    configs={"in_place": InPlace()},
    schedule=schedule,
    launch=one_each,
    dtypes=("int32",),
    prim_func=prim_func,
)

if __name__ == "__main__":
    run_as_script(RUNG)
