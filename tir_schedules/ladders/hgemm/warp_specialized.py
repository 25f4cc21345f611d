"""Warp specialization: a producer warpgroup starts copies of K tiles, consumer warpgroups multiply them.

In `tma` all threads meet in every iteration. The fastest wait for the slowest, and copies start only then.
Here a producer warpgroup starts copies, and no thread waits for all others. A stage has two mbarriers. "Full"
ends a phase when all bytes that the producer has announced have arrived. "Empty" ends a phase when every
consumer warp has finished with the stage. So the producer runs ahead as far as there are empty stages, and
consumers need not be in the same iteration.

No token is passed on. A thread that waits for a phase knows its parity, because every thread counts the
rounds (a round uses each stage once). The producer waits for an empty stage by the parity of the round
before; in the first round that wait returns at once.

The producer needs few registers, but all threads of a block are launched with the same number, 168 of three
warpgroups. `setmaxnreg` moves registers from one to the other: a producer thread then has 24, and a consumer
thread 240. (With `consumers=1` a thread has as many as it can use from the start, and registers do not move.)

Schedule primitives cannot give parts of a loop to different warps. The pass `warp_specialization` makes two
loops of the loop over K tiles: one for the producer, one for the consumers. The schedule annotates the loop
for this, and the number of the K tile is the first index of the operands in shared memory.

Two configurations are for sums in float16, because these take half the registers. In "256x256" a warpgroup
multiplies 128 rows, and "192x256" has three warpgroups. With both, more rows share the elements of B that are
read.

Measured on an H200 at 4096 nt float16: 701 TFLOPS, 1.00 times the 703 of `tma`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.ladders.hgemm import hopper, specialization, tile_choice, tma
from tir_schedules.model.launch import Launch
from tir_schedules.model.rung import run_as_script
from tir_schedules.tir.schedule import Schedule
from tir_schedules.workloads.half_gemm import HalfGemm


@dataclass(frozen=True)
class Config(hopper.Ring):
    """Fields: those of hopper.Ring."""


def refuses(gemm: HalfGemm, config: Config) -> str:
    return specialization.reason_against_specialization(gemm, config)


def launch(gemm: HalfGemm, config: Config) -> Launch:
    hopper.check(refuses(gemm, config))
    grid, maps = hopper.grid_of(gemm, config), hopper.maps_of(gemm, config)
    return Launch(grid, specialization.block_of(config), config.ring_bytes, maps=maps)


def schedule(sch: Schedule, gemm: HalfGemm, config: Config) -> None:
    tiles = specialization.specialize_warps(sch, gemm, config)
    hopper.store_from_registers(sch, gemm, config, tiles)
    hopper.multiply(sch, gemm, config, tiles, "given")


CONFIGS = {
    "128x256": Config(),
    "192x256": Config(bm=192, consumers=3),
    "256x256": Config(bm=256, stages=3),
    "128x128": Config(bn=128, stages=6),
}

RUNG = tma.RUNG.followed_by(
    "warp_specialized",
    "a producer warpgroup copies, consumers multiply, at their own pace; registers move between them",
    schedule,
    configs=CONFIGS,
    choose=tile_choice.chooser(CONFIGS, launch, among=tile_choice.FOR_ALL_SUMS),
    launch=launch,
    refuses=refuses,
)

if __name__ == "__main__":
    run_as_script(RUNG)
