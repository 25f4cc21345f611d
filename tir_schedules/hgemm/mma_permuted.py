"""XOR permutation."""
from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.hgemm import mma_ldmatrix, steps, wmma_swizzled_grid
from tir_schedules.rung import Rung
from tir_schedules.workloads.half_gemm import HalfGemm


@dataclass(frozen=True)
class Config(mma_ldmatrix.Config):
    skew: int = 0


launch = mma_ldmatrix.launch


def schedule(sch, gemm: HalfGemm, config: Config) -> steps.Parts:
    parts = wmma_swizzled_grid.schedule(sch, gemm, config, cores="mma", permuted=True)
    for copy in parts.copies:
        sch.annotate(copy, "permuted_layout", 1)
    return parts


RUNG = Rung(
    family="hgemm",
    name="mma_permuted",
    summary="mma",
    article="001",
    config=Config(),
    schedule=schedule,
    launch=launch,
    min_arch=80,
    pass_config=mma_ldmatrix.RUNG.pass_config,
    passes=mma_ldmatrix.RUNG.passes,
)
