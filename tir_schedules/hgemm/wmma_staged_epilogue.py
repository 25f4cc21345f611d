"""C through shared memory."""
from __future__ import annotations

from tir_schedules.hgemm import steps, wmma_register_pipelined
from tir_schedules.rung import Launch, Rung
from tir_schedules.workloads.half_gemm import HalfGemm

Config = wmma_register_pipelined.Config
RESULT_SKEW = 8


def launch(gemm: HalfGemm, config: Config) -> Launch:
    shared = steps.shared_bytes(gemm, config, config.skew, config.stages, True, RESULT_SKEW)
    return steps.launch_columns_by_rows(gemm, config, shared)


def schedule(sch, gemm: HalfGemm, config: Config, **how) -> steps.Parts:
    return wmma_register_pipelined.schedule(sch, gemm, config, staged=True, result_skew=RESULT_SKEW, **how)


RUNG = Rung(
    family="hgemm",
    name="wmma_staged_epilogue",
    summary="staged",
    article="001",
    config=Config(),
    schedule=schedule,
    launch=launch,
    min_arch=80,
    pass_config=wmma_register_pipelined.RUNG.pass_config,
    passes=wmma_register_pipelined.RUNG.passes,
)
