"""Padding against bank conflicts.

storage_align lengthens each row of the tiles in shared memory by 8 halves, to 80 bytes: now 8 rows that a
fragment takes at once start in 8 different groups of 4 banks, and its loads have no conflicts. The price is
paid where the tiles are written: the rows of one 128-byte write no longer follow each other, and the stores
have conflicts. Each value is stored once and loaded several times, so the trade is good (article 004). Look
for the row length 40 in `load_matrix_sync`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.ladders.hgemm import steps, wmma_shared
from tir_schedules.model.launch import Launch
from tir_schedules.model.rung import Rung, run_as_script
from tir_schedules.tir.schedule import Schedule
from tir_schedules.workloads.half_gemm import HalfGemm


@dataclass(frozen=True)
class Config(wmma_shared.Config):
    """padding: halves after each row of the tiles of A and B; a multiple of 8 for 16-byte accesses."""

    padding: int = 8


def launch(gemm: HalfGemm, config: Config) -> Launch:
    return steps.launch_columns_by_rows(gemm, config, steps.shared_bytes(gemm, config, config.padding))


def schedule(sch: Schedule, gemm: HalfGemm, config: Config) -> None:
    parts = steps.split_up(sch, gemm, config)
    steps.share_copies(sch, gemm, config, parts)
    steps.use_tensor_cores(sch, gemm, parts, "wmma")
    steps.copy_result(sch, gemm, config, parts)
    sch.unroll(parts.k_step)
    steps.pad_rows(sch, parts, config.padding)


RUNG = Rung(
    family="hgemm",
    name="wmma_padded",
    summary="rows in shared memory padded by 8 halves: no more bank conflicts of loads, some of stores",
    article="004; 001",
    config=Config(),
    configs={"padded": Config(bm=128, bn=256)},
    shapes=wmma_shared.RUNG.shapes,
    schedule=schedule,
    launch=launch,
    pass_config=steps.PASS_CONFIG,
)

if __name__ == "__main__":
    run_as_script(RUNG)
