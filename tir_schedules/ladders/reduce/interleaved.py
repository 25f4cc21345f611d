"""The working threads are the first ones: at level k thread t adds words 2^k t and 2^k t + 2^(k-1).

Whole warps fall idle instead of single lanes. The price is the stride: neighbouring threads access words that
are 2^k apart. Up to 32 of these words are in one bank, and then the threads take turns. Article 002 calls
this interleaved addressing ("Unrolling the Warp", tables of sections 2.1 and 2.2).

Configuration "rfactor" is a tree that only schedule primitives make, see `tree.py`. In the article's tree the
words between two sums hold old sums. Here `spread` leaves these words empty, so the sums are in the same
banks.

Measured on an H200 at 2^25 int32: 673 GB/s, 1.96 times the 344 of `divergent`.
"""

from __future__ import annotations

from tir_schedules.ladders.reduce import divergent, tree
from tir_schedules.ladders.reduce.steps import Config, TreeLevel, keep_loop, tree_in_place
from tir_schedules.model.rung import run_as_script
from tir_schedules.tir.schedule import PrimFunc, Schedule
from tir_schedules.workloads.reduction import Reduction


def prim_func(reduction: Reduction, config: Config, name: str) -> PrimFunc:
    if isinstance(config, tree.Rfactor):
        return tree.sum_of_blocks(reduction, config, name)
    level = TreeLevel(
        works=lambda t, k: t * (2 << k) < config.block,
        into=lambda t, k: t * (2 << k),
        source=lambda t, k: t * (2 << k) + (1 << k),
    )
    return tree_in_place(reduction, config.block, name, level)


def schedule(sch: Schedule, reduction: Reduction, config: Config) -> None:
    if isinstance(config, tree.Rfactor):
        return tree.add_neighbours(sch, config, tree.first_threads)
    keep_loop(sch)


RUNG = divergent.RUNG.followed_by(
    "interleaved",
    "the first threads work, at a stride: idle warps instead of idle lanes, and bank conflicts",
    schedule,
    article="002, interleaved addressing",
    configs={"rfactor": tree.Rfactor()},
    prim_func=prim_func,
)

if __name__ == "__main__":
    run_as_script(RUNG)
