"""Stripes of blocks, walked to and fro."""
from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.hgemm import steps, wmma_staged_epilogue
from tir_schedules.hgemm.wmma_staged_epilogue import RESULT_SKEW
from tir_schedules.rung import Launch, Rung
from tir_schedules.workloads.half_gemm import HalfGemm


@dataclass(frozen=True)
class Config(wmma_staged_epilogue.Config):
    stripe: int = 16


def launch(gemm: HalfGemm, config: Config) -> Launch:
    shared = steps.shared_bytes(gemm, config, config.skew, config.stages, True, RESULT_SKEW)
    return steps.launch_stripes(gemm, config, config.stripe, shared)


def schedule(sch, gemm: HalfGemm, config: Config, **how) -> steps.Parts:
    return wmma_staged_epilogue.schedule(sch, gemm, config, stripe=config.stripe, **how)


RUNG = Rung(
    family="hgemm",
    name="wmma_swizzled_grid",
    summary="swizzled",
    article="001",
    config=Config(),
    schedule=schedule,
    launch=launch,
    min_arch=80,
    pass_config=wmma_staged_epilogue.RUNG.pass_config,
    passes=("boustrophedon", *wmma_staged_epilogue.RUNG.passes),
)
