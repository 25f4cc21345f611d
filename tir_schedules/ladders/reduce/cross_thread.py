"""The whole kernel is made from the bare sum, by schedule primitives only.

The bare sum is one loop that adds all elements, and says nothing about threads. `rfactor` splits the sum of a
block into one sum per thread. If the loop over these sums is bound to threadIdx.x, TVM generates the
cross-thread reduction: warp shuffles, a word of shared memory per warp, and shuffles again. Every thread adds
eight elements, and the distance between two of them is the number of threads of the grid. Article 002
("Unrolling the Warp") does not have this step.

Measured on an H200 at 2^25 int32: 3942 GB/s, 1.76 times the 2246 of `shuffle`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.ladders.reduce import shuffle, steps
from tir_schedules.ladders.reduce.steps import ceil_div
from tir_schedules.model.launch import Launch
from tir_schedules.model.rung import run_as_script
from tir_schedules.tir.schedule import Block, Loop, PrimFunc, Schedule
from tir_schedules.workloads.reduction import Reduction


@dataclass(frozen=True)
class Config(steps.Config):
    """items: elements each thread adds by itself."""

    items: int = 8


def launch(reduction: Reduction, config: Config) -> Launch:
    return Launch((ceil_div(reduction.n, config.block * config.items), 1, 1), (config.block, 1, 1))


def prim_func(reduction: Reduction, config: Config, name: str) -> PrimFunc:
    return reduction.partial_sums(name, launch(reduction, config).grid[0], config.block)


def schedule(sch: Schedule, reduction: Reduction, config: Config) -> None:
    partial, iteration, _ = sum_per_thread(sch, config.block, 1)
    sch.unroll(iteration)
    sch.decompose_reduction(partial, iteration)


def sum_per_thread(
    sch: Schedule, block: int, width: int, name: str = "sum", axis: str = "blockIdx.x"
) -> tuple[Block, Loop, Loop]:
    """Sums of `width` per thread in registers, then the cross-thread reduction; blocks and threads bound.

    name: of the block with the sum. axis: what its blocks are bound to. Returns the block of the per-thread
    sums and its loops over iterations and over the `width`.
    """
    loop_b, iteration, i = sch.get_loops(sch.get_sblock(name))
    sch.reorder(loop_b, i, iteration)
    partial = sch.rfactor(i, 0)
    total = sch.get_sblock(name)
    loop_b, i = sch.get_loops(total)
    thread, _ = sch.split(i, [block, width])
    sch.bind(loop_b, axis)
    sch.bind(thread, "threadIdx.x")
    sch.compute_at(partial, thread, preserve_unit_loops=True)
    sch.set_scope(partial, 0, "local")
    loops = sch.get_loops(partial)
    elements, iteration = loops[-3], loops[-1]
    sch.reorder(iteration, elements)
    return partial, iteration, elements


RUNG = shuffle.RUNG.followed_by(
    "cross_thread",
    "the sum itself, scheduled: rfactor and a reduction axis bound to threads",
    schedule,
    config=Config(),
    launch=launch,
    prim_func=prim_func,
)

if __name__ == "__main__":
    run_as_script(RUNG)
