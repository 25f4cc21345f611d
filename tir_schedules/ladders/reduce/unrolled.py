"""The remaining steps of the block are unrolled as well: no loop, no shifts of its counter.

The script of `unrolled_warp`; the one primitive that changes is `unroll` on the loop over the steps, where
`unrolled_warp` keeps the loop: article 002, completely unrolled.
"""

from __future__ import annotations

from tir_schedules.ladders.reduce import unrolled_warp
from tir_schedules.ladders.reduce.steps import Config, step_loop, two_each
from tir_schedules.model.rung import Rung, run_as_script


def prim_func(reduction, config: Config, name: str):
    return unrolled_warp.prim_func(reduction, unrolled_warp.Config(config.block), name)


def schedule(sch, reduction, config: Config) -> None:
    sch.unroll(step_loop(sch))


RUNG = Rung(
    family="reduce",
    name="unrolled",
    summary="all steps unrolled: no loop is left",
    article="002, completely unrolled",
    config=Config(),
    schedule=schedule,
    launch=two_each,
    dtypes=("int32",),
    prim_func=prim_func,
    explicit=True,
)

if __name__ == "__main__":
    run_as_script(RUNG)
