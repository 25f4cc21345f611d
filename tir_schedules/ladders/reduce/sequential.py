"""The tile is folded in half: in step k thread t adds element t + s, where s halves from step to step.

Neighbouring threads touch neighbouring words, so no bank is asked twice: article 002, bank conflicts removed.
"""

from __future__ import annotations

from tir_schedules.ladders.reduce.steps import Config, Step, one_each, step_loop, tree
from tir_schedules.model.rung import Rung, run_as_script


def folding(block: int) -> Step:
    """s = block/2 >> k; threads below s add what lies s further."""
    half = block // 2
    return Step(works=lambda t, k: t < (half >> k), into=lambda t, k: t, source=lambda t, k: t + (half >> k))


def prim_func(reduction, config: Config, name: str):
    return tree(reduction, config.block, name, folding(config.block))


def schedule(sch, reduction, config: Config) -> None:
    sch.annotate(step_loop(sch), "disable_unroll", 1)


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
