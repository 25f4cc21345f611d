"""The working threads are the first ones: thread t adds the pair that begins at element 2^(k+1) t.

Whole warps fall idle instead of lanes. The price is the stride: at level k neighbouring threads are 2^(k+1)
words apart, and up to 32 of them ask one bank: article 002, interleaved addressing.
"""

from __future__ import annotations

from tir_schedules.ladders.reduce.steps import Config, TreeLevel, level_loop, one_each, tree
from tir_schedules.model.rung import Rung, run_as_script
from tir_schedules.tir.schedule import PrimFunc, Schedule
from tir_schedules.workloads.reduction import Reduction


def prim_func(reduction: Reduction, config: Config, name: str) -> PrimFunc:
    level = TreeLevel(
        works=lambda t, k: t * (2 << k) < config.block,
        into=lambda t, k: t * (2 << k),
        source=lambda t, k: t * (2 << k) + (1 << k),
    )
    return tree(reduction, config.block, name, level)


def schedule(sch: Schedule, reduction: Reduction, config: Config) -> None:
    sch.annotate(level_loop(sch), "disable_unroll", 1)


RUNG = Rung(
    family="reduce",
    name="interleaved",
    summary="the first threads work, at a stride: idle warps instead of idle lanes, and bank conflicts",
    article="002, interleaved addressing",
    config=Config(),
    schedule=schedule,
    launch=one_each,
    dtypes=("int32",),
    prim_func=prim_func,
    explicit=True,
)

if __name__ == "__main__":
    run_as_script(RUNG)
