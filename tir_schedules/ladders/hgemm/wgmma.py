"""wgmma: a warpgroup, four warps, multiplies 64x256 at once, straight from shared memory.

With mma every warp loads what it multiplies into registers: a 64x64 warp tile reads 128 elements from shared
memory for 64x64 products, and ldmatrix has to keep up with the tensor cores. wgmma takes both operands from
shared memory by itself. Registers hold only sums: for 64x256 sums in float32, each thread of the warpgroup
takes 128 registers. A thread that has started a product goes on, and later waits for a group of products.

Operands must lie in shared memory as the instruction reads them: in rows of 128 bytes whose 16-byte pieces
are swizzled, piece p of row r at p ^ (r % 8). That is the XOR swizzle of `mma_xor_swizzle`, which TVM applies
to the stores of an annotated copy. Now the hardware reads this layout, and a descriptor tells the hardware
which layout it is.

Tensor cores read shared memory by the async proxy, and barriers do not order this path with the stores of
threads. So a fence (`fence_async_proxy`) is needed between the stores of threads and the products.

This rung has one K tile of each operand, 64 deep, and nothing overlaps: copy, barrier, multiply, wait,
barrier. Two things are new in the schedule: sums of scope "warp" with a layout that says which thread holds
which element (`transform_layout`), and one intrinsic for the products of a K tile.

Measured on an H200 at 4096 nt float16: 355 TFLOPS, 0.65 times the 547 of `mma_multistage`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.ladders.hgemm import hopper, mma_multistage, tile_choice
from tir_schedules.model.launch import Launch
from tir_schedules.model.rung import run_as_script
from tir_schedules.tir.schedule import PrimFunc, Schedule
from tir_schedules.workloads import OPERANDS, RESULTS
from tir_schedules.workloads.half_gemm import HalfGemm


@dataclass(frozen=True)
class Config(hopper.Tiling):
    """Fields: those of hopper.Tiling."""


def refuses(gemm: HalfGemm, config: Config) -> str:
    return hopper.reason_against(gemm, config, config.stage_bytes)


def launch(gemm: HalfGemm, config: Config) -> Launch:
    hopper.check(refuses(gemm, config))
    return Launch(hopper.grid_of(gemm, config), (hopper.WARPGROUP, config.consumers, 1), config.stage_bytes)


def prim_func(gemm: HalfGemm, config: Config, name: str) -> PrimFunc:
    return hopper.tiled_gemm(gemm, config, name)


def schedule(sch: Schedule, gemm: HalfGemm, config: Config) -> None:
    tiles = hopper.split_into_tiles(sch, config)
    hopper.lay_out_operands(sch, gemm, config, tiles)
    hopper.copy_by_threads(sch, gemm, config, tiles)
    hopper.store_from_registers(sch, gemm, config, tiles)
    hopper.multiply(sch, gemm, config, tiles, "copied")


CONFIGS = {"128x256": Config(), "256x256": Config(bm=256), "128x128": Config(bn=128)}

RUNG = mma_multistage.RUNG.followed_by(
    "wgmma",
    "wgmma: warpgroups multiply 64x256 straight from shared memory; registers hold only sums",
    schedule,
    article="beyond 001 and 004",
    configs=CONFIGS,
    choose=tile_choice.chooser(CONFIGS, launch, among=tile_choice.FOR_ALL_SUMS),
    shapes=hopper.SHAPES,
    launch=launch,
    refuses=refuses,
    prim_func=prim_func,
    arch=hopper.ARCH,
    dtypes=OPERANDS,
    outputs=RESULTS,
)

if __name__ == "__main__":
    run_as_script(RUNG)
