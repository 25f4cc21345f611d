"""The working threads are the first ones: at level k thread t adds words 2^k t and 2^k t + 2^(k-1).

Whole warps fall idle instead of lanes. The price is the stride: neighbouring threads are 2^k words apart, and
up to 32 of them ask one bank: interleaved addressing in article 002 ("Unrolling the Warp", tables of sections
2.1 and 2.2).

By primitives alone: `spread` leaves out the words where the article's tree has old sums, so the banks are
the same. What primitives cannot say is one array and a loop, see `tree.py`; the configuration `in_place` has
both, as a script.
"""

from __future__ import annotations

from tir_schedules.ladders.reduce import divergent, in_place
from tir_schedules.ladders.reduce.steps import Config, InPlace, one_each, sum_of_blocks
from tir_schedules.ladders.reduce.tree import (
    bind_levels,
    first_threads,
    neighbours,
    split_into_levels,
    spread,
)
from tir_schedules.model.rung import run_as_script
from tir_schedules.tir.schedule import PrimFunc, Schedule
from tir_schedules.workloads.reduction import Reduction


def prim_func(reduction: Reduction, config: Config, name: str) -> PrimFunc:
    if not isinstance(config, InPlace):
        return sum_of_blocks(reduction, one_each(reduction, config), name)
    level = in_place.TreeLevel(
        works=lambda t, k: t * (2 << k) < config.block,
        into=lambda t, k: t * (2 << k),
        source=lambda t, k: t * (2 << k) + (1 << k),
    )
    return in_place.script(reduction, config.block, name, level)


def schedule(sch: Schedule, reduction: Reduction, config: Config) -> None:
    if isinstance(config, InPlace):
        return in_place.keep_loop(sch)
    levels = split_into_levels(sch, config.block, neighbours)
    spread(sch, levels)
    bind_levels(sch, levels, config.block, first_threads)


RUNG = divergent.RUNG.followed_by(
    "interleaved",
    "the first threads work, at a stride: idle warps instead of idle lanes, and bank conflicts",
    schedule,
    article="002, interleaved addressing",
    configs={"in_place": InPlace()},
    prim_func=prim_func,
)

if __name__ == "__main__":
    run_as_script(RUNG)
