"""Tiles 64 deep, as many stages as fit: the best of the ladder before Hopper's own instructions.

A row of a tile is now 128 bytes: a line of global memory and all banks of shared memory. The 8 pieces that 8
lanes copy come from one line and go to one line, where rows of 64 bytes fill each line of shared memory from
two of global memory, in twice the wavefronts. Now neither loads nor copies have bank conflicts. And there are
half as many waits and barriers. Three stages of such tiles take 144 KiB, the most that an A100 has room for.
The stages are unrolled again.

And copies come first in an iteration, not after the work: the barrier of the iteration before stands between
them and the last read of the stage they refill. The wait for the next tile is at the end of the iteration,
right before its first fragments. So a copy has the time of two tiles, where in the rungs before it has that
of one.

Configuration "256x256": what limits 64x64 warp tiles is reading shared memory. A warp tile of 128x64 needs
3/4 of the reads per mma, and has room in registers when the accumulators are float16; its tiles are 32 deep
again, so its copies take twice the wavefronts again. Its copies come after the work: at 4096 an H200 was 4 %
slower with them first. "128x128": less shared memory, for GPUs that have 99 KiB of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.ladders.hgemm import mma_xor_swizzle, steps
from tir_schedules.model.launch import Launch
from tir_schedules.model.rung import run_as_script
from tir_schedules.tir.schedule import Schedule
from tir_schedules.workloads.half_gemm import HalfGemm


@dataclass(frozen=True)
class Config(steps.Tiling):
    """Block tile bm x bn, bk of its tiles along K; warp tile wm x wn. bk, and bn of a B stored as K x N,
    must be multiples of 32.

    stages: tiles of A and of B in shared memory at a time, at least 3. result_padding: elements after each
    row of C in shared memory. threadblock_swizzle: most columns of blocks in a group; a group has as many of
    them as divide both this and the number of all columns. copies_first: 1 when an iteration begins with its
    copies, 0 when the work comes first, as in the rungs before.
    """

    bm: int = 256
    bn: int = 128
    bk: int = 64
    wm: int = 64
    wn: int = 64
    stages: int = 3
    result_padding: int = 8
    threadblock_swizzle: int = 16
    copies_first: int = 1


def shared_bytes(gemm: HalfGemm, config: Config) -> int:
    return steps.shared_bytes(
        gemm, config, stages=config.stages, staged=True, result_padding=config.result_padding
    )


def launch(gemm: HalfGemm, config: Config) -> Launch:
    return steps.launch_swizzled(gemm, config, config.threadblock_swizzle, shared_bytes(gemm, config))


def schedule(sch: Schedule, gemm: HalfGemm, config: Config) -> None:
    copies = steps.stage_operands(sch, config)
    result = steps.stage_result(sch)
    tiles = steps.split_into_tiles(sch, config)
    block = steps.swizzle_blocks(sch, gemm, config, tiles, config.threadblock_swizzle)
    steps.share_copies(sch, gemm, config, tiles, copies)
    fragments = steps.hold_fragments(sch, gemm, tiles, "mma")
    steps.share_result(sch, gemm, config, block, result)
    loads = steps.load_fragments(sch, gemm, fragments)
    steps.multiply_fragments(sch, gemm, tiles, fragments)
    steps.store_fragments(sch, gemm, fragments, result, config.result_padding)
    sch.keep_buffers_apart()
    sch.unroll(tiles.k_step)
    steps.xor_swizzle(sch, copies, loads)
    steps.pipeline_fragments(sch, tiles, config.stages)
    sch.prefetch_l2()
    sch.unroll_stages(tiles.k_tile, config.stages)
    if config.copies_first:
        sch.keep_copies_first(tiles.k_tile)


RUNG = mma_xor_swizzle.RUNG.followed_by(
    "mma_multistage",
    "tiles 64 deep: copies of whole lines, half the barriers; configurations for other GPUs",
    schedule,
    article="beyond 001 and 004",
    config=Config(),
    configs={"256x256": Config(bn=256, wm=128, bk=32, stages=4, copies_first=0), "128x128": Config(bm=128)},
    launch=launch,
)

if __name__ == "__main__":
    run_as_script(RUNG)
