"""A multistage pipeline of cp.async, and a group of products always in flight.

In `wgmma` tensor cores rest while K tiles are copied. Here copies run some K tiles ahead, as in the rungs
before Hopper's. The kernel no longer waits for the products of a K tile (a group) at once. It waits for them
in the next iteration, right before it starts the next group. So tensor cores have work during the waits, the
barrier and the copies of an iteration.

The schedule says so by the stages of TVM's software pipeline. The intrinsic for the products of a K tile has
three statements: wait for the operands; start the products; wait for the products. The last of them is one
stage behind the others. An iteration is then: wait for the oldest copies, barrier, fence; copies of a later K
tile; wait for the products of the K tile before; start those of this one. Copies run `stages - 2` K tiles
ahead. `stages - 2` stages in shared memory are being filled, one is multiplied, and one was multiplied in the
iteration before.

Rows that do not start on a multiple of 16 bytes are copied element by element. cp.async cannot copy single
elements of 2 bytes, so these copies are synchronous, but they have the same place in the pipeline. Later
rungs refuse matrices with these rows, except `repacked`.

Measured on an H200 at 4096 nt float16: 694 TFLOPS, 1.95 times the 355 of `wgmma`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.ladders.hgemm import hopper, tile_choice, wgmma
from tir_schedules.model.launch import Launch
from tir_schedules.model.rung import run_as_script
from tir_schedules.tir.schedule import Schedule
from tir_schedules.workloads.half_gemm import HalfGemm


@dataclass(frozen=True)
class Config(hopper.Ring):
    """As Ring, with at least 3 stages."""


def refuses(gemm: HalfGemm, config: Config) -> str:
    return hopper.reason_against_ring(gemm, config, 3)


def launch(gemm: HalfGemm, config: Config) -> Launch:
    hopper.check(refuses(gemm, config))
    return hopper.grid_and_stages(gemm, config)


def schedule(sch: Schedule, gemm: HalfGemm, config: Config) -> None:
    tiles = hopper.split_into_tiles(sch, config)
    hopper.lay_out_operands(sch, gemm, config, tiles)
    hopper.copy_by_threads(sch, gemm, config, tiles)
    hopper.store_from_registers(sch, gemm, config, tiles)
    hopper.multiply(sch, gemm, config, tiles, "fenced")
    sch.unroll_drain()
    hopper.pipeline_products(sch, tiles, config.stages, asynchronous=[0])
    sch.async_copies()
    sch.relax_prologue_wait()


CONFIGS = {
    "128x256": Config(),
    "256x256": Config(bm=256, stages=3),
    "128x128": Config(bn=128, stages=6),
}

RUNG = wgmma.RUNG.followed_by(
    "wgmma_async",
    "a multistage cp.async pipeline, and a group of products always in flight",
    schedule,
    configs=CONFIGS,
    choose=tile_choice.chooser(CONFIGS, launch, among=tile_choice.FOR_ALL_SUMS),
    shapes=f"{hopper.SHAPES}, which is not asynchronous",
    launch=launch,
    refuses=refuses,
)

if __name__ == "__main__":
    run_as_script(RUNG)
