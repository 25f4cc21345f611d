"""An XOR swizzle in place of the padding.

A row of a tile in shared memory is again as long as what it holds. Within a row the pieces of 16 bytes are
swizzled: piece c of row r lies where c xor r says (of r its last three bits, for rows of 64 halves or more;
for rows of 32 bits 1 and 2). The 8 rows that ldmatrix reads at once are then in 8 different groups of 4
banks, and so are the 8 pieces of a row that are written at once: conflict free on both sides, without a byte
lost. It is what article 004 says of the best libraries. Look for `^` in the addresses.

The schedule says "permuted_layout", TVM's name for it; InjectPermutedLayout rewrites the addresses of copies
and of ldmatrix, but not of wmma.
"""

from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.ladders.hgemm import mma_ldmatrix, steps
from tir_schedules.ladders.hgemm.wmma_staged_epilogue import RESULT_PADDING
from tir_schedules.model.rung import Rung, run_as_script
from tir_schedules.tir.schedule import Schedule
from tir_schedules.workloads.half_gemm import HalfGemm


@dataclass(frozen=True)
class Config(mma_ldmatrix.Config):
    """padding: none. bk, and bn of a B stored as K x N, must be multiples of 32."""

    padding: int = 0


launch = mma_ldmatrix.launch


def schedule(sch: Schedule, gemm: HalfGemm, config: Config) -> None:
    parts = steps.split_up(sch, gemm, config, staged=True, swizzle=config.threadblock_swizzle)
    steps.share_copies(sch, gemm, config, parts)
    steps.use_tensor_cores(sch, gemm, parts, "mma", padding=RESULT_PADDING, xor_swizzle=True)
    steps.copy_result(sch, gemm, config, parts)
    sch.unroll(parts.k_step)
    steps.pad_rows(sch, parts, config.padding)
    steps.pipeline_fragments(sch, parts, config.stages)
    steps.xor_swizzle(sch, parts)


RUNG = Rung(
    family="hgemm",
    name="mma_xor_swizzle",
    summary="XOR swizzle of 16-byte pieces instead of padding: no bank conflicts of loads or of stores",
    article="004, the better way",
    config=Config(),
    shapes=mma_ldmatrix.RUNG.shapes,
    schedule=schedule,
    launch=launch,
    min_arch=80,
    pass_config=mma_ldmatrix.RUNG.pass_config,
    passes=mma_ldmatrix.RUNG.passes,
)

if __name__ == "__main__":
    run_as_script(RUNG)
