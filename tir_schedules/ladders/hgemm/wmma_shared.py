"""Block tiles in shared memory.

Eight warps compute 256x128 of C together, 64x64 each, in 16 fragments. At the head of each turn of the loop
over K all threads copy a tile of A and one of B, 16 bytes at a time; from there each warp loads 4 + 4
fragments for 16 mma. Look for `load_matrix_sync` with the row length of the tile, 32: rows of 64 bytes
put every second row into the same banks, and a fragment takes 4 times the wavefronts it needs (article 004;
tile of article 001).

On a ragged shape C goes through shared memory, too: `store_matrix_sync` cannot leave out what lies beyond the
matrix.
"""

from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.ladders.hgemm import steps
from tir_schedules.model.launch import Launch
from tir_schedules.model.rung import Rung, run_as_script
from tir_schedules.tir.schedule import Schedule
from tir_schedules.workloads.half_gemm import HalfGemm


@dataclass(frozen=True)
class Config(steps.Tiling):
    """Block tile bm x bn, bk of its tiles along K; warp tile wm x wn."""


def launch(gemm: HalfGemm, config: Config) -> Launch:
    return steps.launch_columns_by_rows(gemm, config, steps.shared_bytes(gemm, config))


def schedule(sch: Schedule, gemm: HalfGemm, config: steps.Tiling) -> None:
    parts = steps.split_up(sch, gemm, config)
    steps.share_copies(sch, gemm, config, parts)
    steps.use_tensor_cores(sch, gemm, parts, "wmma")
    steps.copy_result(sch, gemm, config, parts)
    sch.unroll(parts.k_step)


RUNG = Rung(
    family="hgemm",
    name="wmma_shared",
    summary="256x128 tiles in shared memory, a warp multiplies 64x64 of it from fragments in registers",
    article="001; 004, without padding",
    config=Config(),
    configs={"unpadded": Config(bm=128, bn=256)},
    shapes=(
        "any; 16-byte copies where K % 8 == 0 and N % 8 == 0, else one element at a time; C through shared"
        " memory unless tiles divide it"
    ),
    schedule=schedule,
    launch=launch,
    pass_config=steps.PASS_CONFIG,
)

if __name__ == "__main__":
    run_as_script(RUNG)
