"""The instructions below wmma: ldmatrix and mma.

The instructions that wmma hides are written out. `ldmatrix.x4` reads a 16x16 fragment of A or B, and each
lane gives the address of one row of 8 elements. Two `mma.m16n8k16` multiply two fragments. Now it is known
which lane holds which elements. So fragments can be read from any layout in which rows of 8 are whole, and
the next rung uses this. Everything else is as in `wmma_swizzled_grid`. nvcc makes the same instructions of
wmma, but wmma's loads need more addresses. With ldmatrix the stages need not be unrolled, and the kernel is
faster if they are not.

Look for `ldmatrix` with .trans for a B that is stored as K x N, and for accumulators that are plain numbers,
which lanes write to shared memory in pairs. "Why does padding resolve bank conflicts?" (article 004) looks
into wmma in the same way, with its table of a fragment's banks.

On an H200 the kernel is a few percent faster without unrolled stages.

Configuration `article` is the form of the program that article 004 links to: padded tiles of 128x256x32, mma
in place of wmma, one stage, and C written from registers. There B is stored as K x N, `--layout nn`, and sums
are fp16.

Measured on an H200 at 4096 nt float16: 400 TFLOPS, 1.01 times the 396 of `wmma_swizzled_grid`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.ladders.hgemm import steps, wmma_swizzled_grid
from tir_schedules.model.launch import Launch
from tir_schedules.model.rung import run_as_script
from tir_schedules.tir.schedule import Schedule
from tir_schedules.workloads.half_gemm import HalfGemm


@dataclass(frozen=True)
class Config(steps.Staged):
    """threadblock_swizzle: most columns of blocks in a group; a group has as many of them as divide both this
    and the number of all columns.
    """

    threadblock_swizzle: int = 16


@dataclass(frozen=True)
class OneStage(steps.Padded):
    """For `wmma_padded` with these instructions: no pipeline, a plain grid, C straight from registers.

    stages: 1.
    """

    stages: int = 1


def launch(gemm: HalfGemm, config: Config | OneStage) -> Launch:
    if isinstance(config, OneStage):
        shared = steps.shared_bytes(gemm, config, config.padding)
        return steps.launch_columns_by_rows(gemm, config, shared)
    width = steps.swizzle_width(gemm, config, config.threadblock_swizzle)
    return steps.launch_swizzled(gemm, config, width, steps.staged_bytes(gemm, config))


def one_stage(sch: Schedule, gemm: HalfGemm, config: OneStage) -> None:
    tiles = steps.split_into_tiles(sch, config)
    steps.bind_blocks(sch, tiles)
    steps.multiply_tiles(sch, gemm, config, tiles, "mma")
    sch.unroll(tiles.k_step)
    steps.pad_rows(sch, tiles.copies, config.padding)


def schedule(sch: Schedule, gemm: HalfGemm, config: Config | OneStage) -> None:
    if isinstance(config, OneStage):
        one_stage(sch, gemm, config)
        return
    tiles = steps.split_into_tiles(sch, config, staged=True)
    tiles = steps.swizzle_blocks(sch, tiles, steps.swizzle_width(gemm, config, config.threadblock_swizzle))
    _, store = steps.multiply_tiles(sch, gemm, config, tiles, "mma")
    sch.unroll(tiles.k_step)
    steps.pad_rows(sch, tiles.copies, config.padding)
    steps.pad_rows(sch, [store], config.result_padding)
    steps.pipeline_fragments(sch, tiles, config.stages)
    sch.prefetch_l2()


RUNG = wmma_swizzled_grid.RUNG.followed_by(
    "mma_ldmatrix",
    "ldmatrix and mma.m16n8k16 in place of wmma: known fragments",
    schedule,
    article="004, what wmma is made of",
    config=Config(),
    configs={"article": OneStage(bm=128, bn=256)},
    launch=launch,
)

if __name__ == "__main__":
    run_as_script(RUNG)
