"""A tree in shared memory; at level k every 2^(k+1)th thread adds its neighbour at distance 2^k.

The threads that work are spread over all warps, so every warp runs through every level with fewer and fewer
lanes active, and the remainder costs a division: article 002, the baseline. Look for `threadIdx.x % (2 << k)`
in the emitted CUDA, and for a thread instruction count that hardly falls although half of the threads rest
from the first level on.
"""

from __future__ import annotations

from tir_schedules.ladders.reduce.steps import Config, TreeLevel, level_loop, one_each, tree
from tir_schedules.model.rung import Rung, run_as_script
from tir_schedules.tir.schedule import PrimFunc, Schedule
from tir_schedules.workloads.reduction import Reduction

NEIGHBOURS = TreeLevel(
    works=lambda t, k: t % (2 << k) == 0, into=lambda t, k: t, source=lambda t, k: t + (1 << k)
)


def prim_func(reduction: Reduction, config: Config, name: str) -> PrimFunc:
    return tree(reduction, config.block, name, NEIGHBOURS)


def schedule(sch: Schedule, reduction: Reduction, config: Config) -> None:
    sch.annotate(level_loop(sch), "disable_unroll", 1)  # the article's loop stays a loop


RUNG = Rung(
    family="reduce",
    name="divergent",
    summary="a tree in shared memory; the threads that work are spread over all warps",
    article="002, baseline",
    config=Config(),
    schedule=schedule,
    launch=one_each,
    dtypes=("int32",),
    prim_func=prim_func,
    explicit=True,
)

if __name__ == "__main__":
    run_as_script(RUNG)
