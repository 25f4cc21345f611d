"""The instructions below wmma: ldmatrix and mma.

What wmma hides is written out. `ldmatrix.x4` reads a 16x16 fragment of A or B, each lane handing over the
address of one row of 8 elements; two `mma.m16n8k16` multiply two fragments. Now it is known which lane holds
which elements, so that fragments can be read from any layout whose rows of 8 are whole: the next rung makes
use of that. Everything else is as in `wmma_swizzled_grid`, and wmma becomes the same instructions. But its
loads need more addresses: ldmatrix does well without unrolled stages, and a little better (a few percent on
an H200). Look for `ldmatrix` with .trans for a B that is stored as K x N, and for accumulators that are plain
numbers, which lanes write to shared memory in pairs. "Why does padding resolve bank conflicts?" (article 004)
looks into wmma in the same way, with its table of a fragment's banks.
"""

from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.ladders.hgemm import steps, wmma_swizzled_grid
from tir_schedules.model.launch import Launch
from tir_schedules.model.rung import run_as_script
from tir_schedules.tir.schedule import Schedule
from tir_schedules.workloads.half_gemm import HalfGemm


@dataclass(frozen=True)
class Config(steps.Tiling):
    """Block tile bm x bn, bk of its tiles along K; warp tile wm x wn.

    padding: halves after each row of the tiles of A and B; a multiple of 8 for 16-byte accesses.
    stages: tiles of A and of B in shared memory at a time, at least 3.
    result_padding: elements after each row of C in shared memory.
    threadblock_swizzle: most columns of blocks in a group; a group has as many of them as divide both this
    and the number of all columns.
    """

    bm: int = 256
    bn: int = 128
    bk: int = 32
    wm: int = 64
    wn: int = 64
    padding: int = 8
    stages: int = 3
    result_padding: int = 8
    threadblock_swizzle: int = 16


def shared_bytes(gemm: HalfGemm, config: Config) -> int:
    return steps.shared_bytes(
        gemm, config, config.padding, config.stages, staged=True, result_padding=config.result_padding
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
    steps.load_fragments(sch, gemm, fragments)
    steps.multiply_fragments(sch, gemm, tiles, fragments)
    steps.store_fragments(sch, gemm, fragments, result, config.result_padding)
    sch.keep_buffers_apart()
    sch.unroll(tiles.k_step)
    steps.pad_rows(sch, copies, config.padding)
    steps.pipeline_fragments(sch, tiles, config.stages)
    sch.prefetch_l2()


RUNG = wmma_swizzled_grid.RUNG.followed_by(
    "mma_ldmatrix",
    "ldmatrix and mma.m16n8k16 in place of wmma: known fragments",
    schedule,
    article="004, what wmma is made of",
    config=Config(),
    launch=launch,
)

if __name__ == "__main__":
    run_as_script(RUNG)
