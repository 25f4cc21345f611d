"""mma and ldmatrix."""
from __future__ import annotations

from tir_schedules.hgemm import steps, wmma_swizzled_grid
from tir_schedules.rung import Rung
from tir_schedules.workloads.half_gemm import HalfGemm

Config = wmma_swizzled_grid.Config
launch = wmma_swizzled_grid.launch


def schedule(sch, gemm: HalfGemm, config: Config) -> steps.Parts:
    return wmma_swizzled_grid.schedule(sch, gemm, config, cores="mma")


RUNG = Rung(
    family="hgemm",
    name="mma_ldmatrix",
    summary="mma",
    article="001",
    config=Config(),
    schedule=schedule,
    launch=launch,
    min_arch=80,
    pass_config=wmma_swizzled_grid.RUNG.pass_config,
    passes=wmma_swizzled_grid.RUNG.passes,
)
