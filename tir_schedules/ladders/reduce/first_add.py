"""Every thread adds two elements while it loads, a block apart, so that no thread is idle at the first level.

Half as many blocks do the same work: article 002, idle threads removed.
"""

from __future__ import annotations

from tir_schedules.ladders.reduce.sequential import folding
from tir_schedules.ladders.reduce.steps import Config, level_loop, tree, two_each
from tir_schedules.model.rung import Rung, run_as_script
from tir_schedules.tir.schedule import PrimFunc, Schedule
from tir_schedules.workloads.reduction import Reduction


def prim_func(reduction: Reduction, config: Config, name: str) -> PrimFunc:
    return tree(reduction, config.block, name, folding(config.block), loads=2)


def schedule(sch: Schedule, reduction: Reduction, config: Config) -> None:
    sch.annotate(level_loop(sch), "disable_unroll", 1)


RUNG = Rung(
    family="reduce",
    name="first_add",
    summary="every thread adds two elements while it loads; half as many blocks",
    article="002, idle threads removed",
    config=Config(),
    schedule=schedule,
    launch=two_each,
    dtypes=("int32",),
    prim_func=prim_func,
    explicit=True,
)

if __name__ == "__main__":
    run_as_script(RUNG)
