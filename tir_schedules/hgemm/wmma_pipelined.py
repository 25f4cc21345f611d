"""Three stages, one barrier per tile."""
from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.hgemm import steps, wmma_async, wmma_padded
from tir_schedules.rung import Launch, Rung
from tir_schedules.workloads.half_gemm import HalfGemm


@dataclass(frozen=True)
class Config(wmma_async.Config):
    stages: int = 3


launch = wmma_async.launch


def schedule(sch, gemm: HalfGemm, config: Config) -> None:
    parts = wmma_padded.schedule(sch, gemm, config)
    steps.merge_copies(sch, parts)
    steps.pipeline(sch, parts.k_tile, [0, config.stages - 1], [1, 0], asynchronous=[0])


RUNG = Rung(
    family="hgemm",
    name="wmma_pipelined",
    summary="3 stages",
    article="001",
    config=Config(),
    schedule=schedule,
    launch=launch,
    min_arch=80,
    pass_config=wmma_async.RUNG.pass_config,
    passes=("copies_before_barriers",),
)
