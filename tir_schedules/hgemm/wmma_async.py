"""Asynchronous copies."""
from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.hgemm import steps, wmma_padded
from tir_schedules.rung import Launch, Rung
from tir_schedules.workloads.half_gemm import HalfGemm


@dataclass(frozen=True)
class Config(wmma_padded.Config):
    """stages: tiles of A and B in shared memory at a time."""

    stages: int = 2


def launch(gemm: HalfGemm, config: Config) -> Launch:
    return steps.launch_columns_by_rows(gemm, config, steps.shared_bytes(gemm, config, config.skew, config.stages))


def schedule(sch, gemm: HalfGemm, config: Config) -> None:
    parts = wmma_padded.schedule(sch, gemm, config)
    steps.pipeline(sch, parts.k_tile, [0, 0, config.stages - 1], [0, 1, 2], asynchronous=[0])


RUNG = Rung(
    family="hgemm",
    name="wmma_async",
    summary="cp.async",
    article="001",
    config=Config(),
    schedule=schedule,
    launch=launch,
    min_arch=80,
    pass_config=steps.PASS_CONFIG | {"tirx.use_async_copy": True},
)
