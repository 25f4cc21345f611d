"""The tile is folded in half: thread t adds sums t and t + s, where s halves from level to level.

Neighbouring threads access neighbouring words, so no bank is accessed twice at once. Article 002 calls this
bank conflicts removed ("Unrolling the Warp", tables of sections 2.1 and 2.2; section 1 has the loop).

Configuration "rfactor" is a tree that only schedule primitives make, see `tree.py`: here `rfactor` keeps the
inner loop of a `split`, and in `interleaved` it keeps the outer one.

Measured on an H200 at 2^25 int32: 849 GB/s, 1.26 times the 673 of `interleaved`.
"""

from __future__ import annotations

from tir_schedules.ladders.reduce import interleaved, tree
from tir_schedules.ladders.reduce.steps import Config, folding, keep_loop, tree_in_place
from tir_schedules.model.rung import run_as_script
from tir_schedules.tir.schedule import PrimFunc, Schedule
from tir_schedules.workloads.reduction import Reduction


def prim_func(reduction: Reduction, config: Config, name: str) -> PrimFunc:
    if isinstance(config, tree.Rfactor):
        return tree.sum_of_blocks(reduction, config, name)
    return tree_in_place(reduction, config.block, name, folding(config.block))


def schedule(sch: Schedule, reduction: Reduction, config: Config) -> None:
    if isinstance(config, tree.Rfactor):
        return tree.fold_in_halves(sch, config)
    keep_loop(sch)


RUNG = interleaved.RUNG.followed_by(
    "sequential",
    "the tile is folded in half: neighbouring threads, neighbouring words, no bank conflict",
    schedule,
    article="002, bank conflicts removed",
    configs={"rfactor": tree.Rfactor()},
    prim_func=prim_func,
)

if __name__ == "__main__":
    run_as_script(RUNG)
