"""TMA copies the K tiles, a box for each operand, and mbarriers in shared memory count their bytes.

With cp.async all threads compute addresses and start a copy for every 16 bytes. Here one thread starts one
copy of 128x64 elements. TMA (the Tensor Memory Accelerator) computes addresses, swizzles, and fills elements
beyond the matrix with zeros. It knows the matrix from a tensor map, a parameter of the kernel that the host
encodes before the launch. No schedule primitive adds a parameter, so the pass `tensor_maps` does.

A TMA copy belongs to no thread, so no thread can wait for "its copies". An mbarrier in shared memory counts
bytes and arrivals. One thread announces the bytes of a K tile, and every thread arrives when it has finished
the iteration before. An iteration begins when all threads and all bytes have arrived. So the mbarrier
replaces both the wait and __syncthreads. Each stage of the pipeline has one; the pass `mbarrier_pipeline`
adds them. After the wait for a K tile every thread has finished the iteration before, so the wait also orders
the copies into the stage that becomes free. No fence is needed, because TMA and wgmma both access shared
memory by the async proxy.

The kernel waits for the products of a K tile after the next ones have started, so that tensor cores always
have work. (The schedule of `wgmma_async` waits before it starts them.) The stage of a K tile is refilled two
iterations later, after a barrier that each thread reaches only when it has waited for the products of that K
tile.

For the schedule A and B consist of whole tiles, and the tensor maps have the true extents. So only the stores
of C have guards.

Measured on an H200 at 4096 nt float16: 703 TFLOPS, 1.01 times the 694 of `wgmma_async`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.ladders.hgemm import hopper, tile_choice, wgmma_async
from tir_schedules.model.launch import Launch
from tir_schedules.model.rung import configs_as, run_as_script
from tir_schedules.tir.schedule import PrimFunc, Schedule
from tir_schedules.workloads.half_gemm import HalfGemm


@dataclass(frozen=True)
class Config(hopper.Ring):
    """As Ring, with at least 3 stages."""


def refuses(gemm: HalfGemm, config: Config) -> str:
    return hopper.reason_against_boxes(gemm) or hopper.reason_against_ring(gemm, config, 3)


def launch(gemm: HalfGemm, config: Config) -> Launch:
    hopper.check(refuses(gemm, config))
    return hopper.grid_and_stages(gemm, config, hopper.maps_of(gemm, config))


def prim_func(gemm: HalfGemm, config: Config, name: str) -> PrimFunc:
    return hopper.tiled_gemm(gemm, config, name, boxes=True)


def schedule(sch: Schedule, gemm: HalfGemm, config: Config) -> None:
    tiles = hopper.split_into_tiles(sch, config)
    hopper.lay_out_operands(sch, gemm, config, tiles)
    hopper.copy_boxes(sch, gemm, config, tiles, leader=True)
    hopper.store_from_registers(sch, gemm, config, tiles)
    hopper.multiply(sch, gemm, config, tiles, "awaited")
    hopper.pipeline_products(sch, tiles, config.stages, started=True)
    sch.pipeline_by_mbarriers(tiles.k_tile, config.stages)


CONFIGS = configs_as(Config, wgmma_async.CONFIGS)

RUNG = wgmma_async.RUNG.followed_by(
    "tma",
    "TMA copies K tiles as boxes; mbarriers in shared memory count their bytes",
    schedule,
    configs=CONFIGS,
    choose=tile_choice.chooser(CONFIGS, launch, among=tile_choice.FOR_ALL_SUMS),
    shapes=hopper.SHAPES_OF_BOXES,
    launch=launch,
    refuses=refuses,
    prim_func=prim_func,
)

if __name__ == "__main__":
    run_as_script(RUNG)
