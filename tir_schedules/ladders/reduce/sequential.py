"""The tile is folded in half: at level k thread t adds element t + s, where s halves from level to level.

Neighbouring threads touch neighbouring words, so no bank is asked twice: article 002, bank conflicts removed.
"""

from __future__ import annotations

from tir_schedules.ladders.reduce.steps import Config, TreeLevel, level_loop, one_each, tree
from tir_schedules.model.rung import Rung, run_as_script
from tir_schedules.tir.schedule import PrimFunc, Schedule
from tir_schedules.workloads.reduction import Reduction


def folding(block: int) -> TreeLevel:
    """s = block/2 >> k; threads below s add what lies s further."""
    half = block // 2
    return TreeLevel(
        works=lambda t, k: t < (half >> k), into=lambda t, k: t, source=lambda t, k: t + (half >> k)
    )


def prim_func(reduction: Reduction, config: Config, name: str) -> PrimFunc:
    return tree(reduction, config.block, name, folding(config.block))


def schedule(sch: Schedule, reduction: Reduction, config: Config) -> None:
    sch.annotate(level_loop(sch), "disable_unroll", 1)


RUNG = Rung(
    family="reduce",
    name="sequential",
    summary="the tile is folded in half: neighbouring threads, neighbouring words, no bank conflict",
    article="002, bank conflicts removed",
    config=Config(),
    schedule=schedule,
    launch=one_each,
    dtypes=("int32",),
    prim_func=prim_func,
    explicit=True,
)

if __name__ == "__main__":
    run_as_script(RUNG)
