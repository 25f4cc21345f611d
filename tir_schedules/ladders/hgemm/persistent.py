"""A block computes tile after tile: the slabs of the next tile come while this one is stored.

In `warp_specialized` a block ends with its tile. While it stores C its tensor cores rest, and its slots are
empty; so they are while the next block sets barriers up and waits for its first slab. Here there are no more
blocks than SMs, and each computes every 132nd tile. The warpgroup that copies goes on with the slabs of the
next tile as soon as there are empty slots, long before this one is stored.

The barriers of the slots go on too: slots and phases are counted over all tiles of the block, see
`slot_counters` among the passes.

Tiles that are computed at a time should share rows of A and columns of B, so that L2 serves them: they are
taken in stripes of 16 rows of tiles, column by column.

A schedule divides a loop among blocks evenly, and 132 divides few numbers of tiles. The pass
`persistent_tiles` makes a loop over tiles of the grid that the schedule binds; `warp_roles` runs behind it.
"""

from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.ladders.hgemm import hopper, roles, tile_choice
from tir_schedules.model.launch import Launch
from tir_schedules.model.rung import Rung, run_as_script
from tir_schedules.tir.schedule import PrimFunc, Schedule
from tir_schedules.workloads import OPERANDS, RESULTS
from tir_schedules.workloads.half_gemm import HalfGemm


@dataclass(frozen=True)
class Config(roles.Persistent):
    """As Persistent."""

    bm: int = 128
    bn: int = 256
    bk: int = 64
    consumers: int = 2
    stages: int = 4
    programs: int = hopper.WAVE
    group: int = 16


def refuses(gemm: HalfGemm, config: Config) -> str:
    return roles.reason_against_roles(gemm, config)


def launch(gemm: HalfGemm, config: Config) -> Launch:
    hopper.checked(refuses(gemm, config))
    return roles.launch_programs(gemm, config)


def prim_func(gemm: HalfGemm, config: Config, name: str) -> PrimFunc:
    return hopper.over_tiles(gemm, config, name, boxes=True)


def schedule(sch: Schedule, gemm: HalfGemm, config: Config) -> None:
    tiles = roles.share_by_roles(sch, gemm, config)
    roles.walk_tiles(sch, gemm, config, tiles)
    hopper.store_from_registers(sch, gemm, config, tiles)
    hopper.multiply(sch, gemm, config, tiles, "given")


CONFIGS = {
    "128x256": Config(),
    "192x256": Config(bm=192, consumers=3),
    "256x256": Config(bm=256, stages=3),
    "128x128": Config(bn=128, stages=6),
}
CHOSEN = {name: CONFIGS[name] for name in ("128x256", "128x128")}
"""Those that a shape may choose."""

RUNG = Rung(
    family="hgemm",
    name="persistent",
    summary="as many blocks as SMs, tile after tile: the next one's slabs come while C is stored",
    article="beyond 001 and 004",
    config=CONFIGS["128x256"],
    configs=CONFIGS,
    choose=tile_choice.chooser(CHOSEN, launch),
    shapes=hopper.SHAPES_OF_BOXES,
    schedule=schedule,
    launch=launch,
    refuses=refuses,
    prim_func=prim_func,
    arch=hopper.ARCH,
    warp_size=hopper.WARPGROUP,
    dtypes=OPERANDS,
    outputs=RESULTS,
    passes=("persistent_tiles", "warp_roles", "tensor_maps"),
)

if __name__ == "__main__":
    run_as_script(RUNG)
