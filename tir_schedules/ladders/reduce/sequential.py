"""The tile is folded in half: thread t adds sums t and t + s, where s halves from level to level.

Neighbouring threads touch neighbouring words, so no bank is asked twice: bank conflicts removed in article
002 ("Unrolling the Warp", tables of sections 2.1 and 2.2; section 1 has the loop).

By primitives alone: `rfactor` keeps the inner loop of a `split`, where `interleaved` keeps the outer one.
What primitives cannot say is one array and a loop, see `tree.py`; the configuration `in_place` has both, as a
script.
"""

from __future__ import annotations

from tir_schedules.ladders.reduce import in_place, interleaved
from tir_schedules.ladders.reduce.steps import Config, InPlace, one_each, sum_of_blocks
from tir_schedules.ladders.reduce.tree import bind_levels, first_threads, halves, split_into_levels
from tir_schedules.model.rung import run_as_script
from tir_schedules.tir.schedule import PrimFunc, Schedule
from tir_schedules.workloads.reduction import Reduction


def prim_func(reduction: Reduction, config: Config, name: str) -> PrimFunc:
    if isinstance(config, InPlace):
        return in_place.script(reduction, config.block, name, in_place.folding(config.block))
    return sum_of_blocks(reduction, one_each(reduction, config), name)


def schedule(sch: Schedule, reduction: Reduction, config: Config) -> None:
    if isinstance(config, InPlace):
        return in_place.keep_loop(sch)
    bind_levels(sch, split_into_levels(sch, config.block, halves), config.block, first_threads)


RUNG = interleaved.RUNG.followed_by(
    "sequential",
    "the tile is folded in half: neighbouring threads, neighbouring words, no bank conflict",
    schedule,
    article="002, bank conflicts removed",
    configs={"in_place": InPlace()},
    prim_func=prim_func,
)

if __name__ == "__main__":
    run_as_script(RUNG)
