"""The copy engine (TMA) brings the slabs, a box for each operand, and barriers in shared memory count them.

With cp.async all threads compute addresses and start a copy for every 16 bytes. Here one thread starts one
copy of 128x64 elements: the copy engine computes addresses, swizzles, and leaves zeros for what is beyond
the matrix. It knows the matrix from a tensor map, a parameter of the kernel which the host makes before the
launch. No schedule primitive adds a parameter; the pass `tensor_maps` does.

The copy engine does not belong to a thread, so no thread can wait for "its copies". A barrier in shared
memory (mbarrier) counts bytes and arrivals: one thread announces the bytes of a slab, every thread arrives
when it is done with the turn before, and a turn begins when all have arrived and all bytes are there. So it
takes the place of both wait and __syncthreads. Each slot of the ring has one; the pass `ring_barriers` sets
them up. What waits for a slab also orders the copies into the slot that it sets free: no fence is needed, for
copies and products are both of the hardware beside the threads.

A slab's products are awaited behind the start of the next ones, so that tensor cores always have some. (The
schedule of `wgmma_async` waits before it starts them.) Their slot is refilled two turns later, behind a
barrier that each thread reaches when it has waited for them.

A sees whole tiles: its buffer is as large as they are, and the tensor map has the true extents. So nothing in
the kernel has a guard but the stores of C.
"""

from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.ladders.hgemm import hopper, tile_choice
from tir_schedules.model.launch import Launch
from tir_schedules.model.rung import Rung, run_as_script
from tir_schedules.tir.passes import RING
from tir_schedules.tir.schedule import PrimFunc, Schedule
from tir_schedules.workloads import OPERANDS, RESULTS
from tir_schedules.workloads.half_gemm import HalfGemm


@dataclass(frozen=True)
class Config(hopper.Ring):
    """As Ring, with at least 3 slots."""

    bm: int = 128
    bn: int = 256
    bk: int = 64
    consumers: int = 2
    stages: int = 4


def refuses(gemm: HalfGemm, config: Config) -> str:
    return hopper.reason_against_boxes(gemm) or hopper.reason_against_ring(gemm, config, 3)


def launch(gemm: HalfGemm, config: Config) -> Launch:
    hopper.checked(refuses(gemm, config))
    block = hopper.WARPGROUP, config.consumers, 1
    maps = hopper.maps_of(gemm, config)
    return Launch(hopper.grid_of(gemm, config), block, config.ring_bytes, maps=maps)


def prim_func(gemm: HalfGemm, config: Config, name: str) -> PrimFunc:
    return hopper.over_tiles(gemm, config, name, boxes=True)


def schedule(sch: Schedule, gemm: HalfGemm, config: Config) -> None:
    tiles = hopper.split_into_tiles(sch, config)
    hopper.lay_out_operands(sch, gemm, tiles)
    hopper.copy_boxes(sch, gemm, config, tiles, leader=True)
    hopper.store_from_registers(sch, gemm, config, tiles)
    hopper.multiply(sch, gemm, config, tiles, "awaited")
    hopper.pipeline_products(sch, tiles, config.stages, started=True)
    sch.annotate(tiles.k_tile, RING, config.stages)


CONFIGS = {
    "128x256": Config(),
    "256x256": Config(bm=256, stages=3),
    "128x128": Config(bn=128, stages=6),
}
CHOSEN = {name: CONFIGS[name] for name in ("128x256", "128x128")}
"""Those that a shape may choose."""

RUNG = Rung(
    family="hgemm",
    name="tma",
    summary="the copy engine (TMA) brings slabs as boxes; barriers in shared memory count their bytes",
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
    passes=("ring_barriers", "tensor_maps"),
)

if __name__ == "__main__":
    run_as_script(RUNG)
