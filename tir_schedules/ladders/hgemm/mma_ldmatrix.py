"""The instructions below wmma: ldmatrix and mma.

What wmma hides is written out. `ldmatrix.x4` reads a 16x16 fragment of A or B, each lane handing over the
address of one row of 8 elements; two `mma.m16n8k16` multiply two fragments. Now it is known which lane holds
which elements, so that fragments can be read from any layout whose rows of 8 are whole: the next rung makes
use of that. Everything else is as in `wmma_swizzled_grid`, and wmma becomes the same instructions. But its
loads need more addresses: ldmatrix does well without unrolled stages, and a little better (a few percent on
an H200). Look for `ldmatrix` with .trans for a B that is stored as K x N, and for accumulators that are plain
numbers, which lanes write to shared memory in pairs.
"""

from __future__ import annotations

from tir_schedules.ladders.hgemm import steps, wmma_swizzled_grid
from tir_schedules.ladders.hgemm.wmma_staged_epilogue import RESULT_PADDING
from tir_schedules.model.rung import Rung, run_as_script
from tir_schedules.tir.schedule import Schedule
from tir_schedules.workloads.half_gemm import HalfGemm

Config = wmma_swizzled_grid.Config
launch = wmma_swizzled_grid.launch


def schedule(sch: Schedule, gemm: HalfGemm, config: Config) -> None:
    parts = steps.split_up(sch, gemm, config, staged=True, swizzle=config.threadblock_swizzle)
    steps.share_copies(sch, gemm, config, parts)
    steps.use_tensor_cores(sch, gemm, parts, "mma", padding=RESULT_PADDING)
    steps.copy_result(sch, gemm, config, parts)
    sch.unroll(parts.k_step)
    steps.pad_rows(sch, parts, config.padding)
    steps.pipeline_fragments(sch, parts, config.stages)


RUNG = Rung(
    family="hgemm",
    name="mma_ldmatrix",
    summary="ldmatrix and mma.m16n8k16 in place of wmma: known fragments",
    article="004, what wmma is made of",
    config=Config(),
    shapes=wmma_swizzled_grid.RUNG.shapes,
    schedule=schedule,
    launch=launch,
    min_arch=80,
    pass_config=wmma_swizzled_grid.RUNG.pass_config,
    passes=tuple(name for name in wmma_swizzled_grid.RUNG.passes if name != "unroll_stages"),
)

if __name__ == "__main__":
    run_as_script(RUNG)
