"""Warpgroups with roles: one has slabs copied, the others multiply them.

In `tma` all threads meet in every turn: whoever is done first waits for the last, and copies are started
only then. Here a warpgroup of its own starts copies, and nobody waits for all. A slot has two barriers.
"Full" ends a phase when all bytes are there, which the copying thread has announced. "Empty" ends one when
every warp that multiplies is done with the slot. So copies run ahead as far as there are empty slots, and the
warpgroups that multiply need not be in the same turn.

No token is handed on: who waits for a phase knows its parity, for every thread counts the rounds of the
ring. An empty slot is waited for by the parity of the round before; in the first round that wait is over at
once.

A thread that only starts copies needs few registers, and all threads of a block are launched with as many as
each other, 168 of three warpgroups. `setmaxnreg` moves them: 24 for a thread that copies, 240 for one that
multiplies. (With `consumers=1` a thread has as many as it can use from the start, and none move.)

A schedule says what is computed, not by whom: one loop over slabs becomes two, in different warpgroups. The
pass `warp_roles` does that; the schedule annotates the loop, and has the number of the slab as the first
index of the operands in shared memory.

Configurations "256x256", where a warpgroup multiplies 128 rows, and "192x256", with three of them, are for
sums in float16: these take half the registers, and more rows share what is read of B.
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
class Config(hopper.Ring):
    """As Ring."""

    bm: int = 128
    bn: int = 256
    bk: int = 64
    consumers: int = 2
    stages: int = 4


def refuses(gemm: HalfGemm, config: Config) -> str:
    return roles.reason_against_roles(gemm, config)


def launch(gemm: HalfGemm, config: Config) -> Launch:
    hopper.checked(refuses(gemm, config))
    grid, maps = hopper.grid_of(gemm, config), hopper.maps_of(gemm, config)
    return Launch(grid, roles.block_of(config), config.ring_bytes, maps=maps)


def prim_func(gemm: HalfGemm, config: Config, name: str) -> PrimFunc:
    return hopper.over_tiles(gemm, config, name, boxes=True)


def schedule(sch: Schedule, gemm: HalfGemm, config: Config) -> None:
    tiles = roles.share_by_roles(sch, gemm, config)
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
    name="warp_specialized",
    summary="a warpgroup copies and others multiply, at their own pace; registers move between them",
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
    passes=("warp_roles", "tensor_maps"),
)

if __name__ == "__main__":
    run_as_script(RUNG)
