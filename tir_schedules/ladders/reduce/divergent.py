"""A tree in shared memory: at level k every 2^kth thread adds two sums that are 2^(k-1) words apart.

The threads that work are spread over all warps. So every warp runs through every level, and fewer and fewer
of its lanes are active. This is the baseline of article 002 ("Unrolling the Warp", tables of sections 2.1 and
2.2). Look for the `%` in the loop over the levels.

Configuration "rfactor" is a tree that only schedule primitives make, see `tree.py`. It has no loop over the
levels, so the remainder at each level is by a constant: look for `threadIdx.x) & 3`, `& 7`, `& 15`.

Measured on an H200 at 2^25 int32: 344 GB/s.
"""

from __future__ import annotations

from tir_schedules.ladders.reduce import tree
from tir_schedules.ladders.reduce.steps import (
    BlocksFrom,
    Config,
    TreeLevel,
    keep_loop,
    one_each,
    tree_in_place,
)
from tir_schedules.model.rung import Rung, run_as_script
from tir_schedules.tir.schedule import PrimFunc, Schedule
from tir_schedules.workloads.reduction import Reduction

NEIGHBOURS = TreeLevel(
    works=lambda t, k: t % (2 << k) == 0, into=lambda t, k: t, source=lambda t, k: t + (1 << k)
)


def prim_func(reduction: Reduction, config: Config, name: str) -> PrimFunc:
    if isinstance(config, tree.Rfactor):
        return tree.sum_of_blocks(reduction, config, name)
    return tree_in_place(reduction, config.block, name, NEIGHBOURS)


def schedule(sch: Schedule, reduction: Reduction, config: Config) -> None:
    if isinstance(config, tree.Rfactor):
        return tree.add_neighbours(sch, config, tree.spread_threads)
    keep_loop(sch)


RUNG = Rung(
    family="reduce",
    name="divergent",
    summary="a tree in shared memory; the threads that work are spread over all warps",
    article="002, baseline",
    config=Config(),
    configs={"rfactor": tree.Rfactor()},
    schedule=schedule,
    launch=one_each,
    dtypes=("int32",),
    prim_func=prim_func,
    refuses=BlocksFrom(2),
)

if __name__ == "__main__":
    run_as_script(RUNG)
