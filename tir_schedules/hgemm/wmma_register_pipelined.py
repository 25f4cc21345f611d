"""Fragments double buffered."""
from __future__ import annotations

from tir_schedules.hgemm import steps, wmma_padded, wmma_pipelined
from tir_schedules.rung import Rung
from tir_schedules.workloads.half_gemm import HalfGemm

Config = wmma_pipelined.Config
launch = wmma_pipelined.launch


def schedule(sch, gemm: HalfGemm, config: Config, **how) -> steps.Parts:
    parts = wmma_padded.schedule(sch, gemm, config, **how)
    pipeline_fragments(sch, parts, config.stages)
    return parts


def pipeline_fragments(sch, parts, stages):
    s = stages - 2
    steps.pipeline(sch, parts.k_step, [0, 0, 1], [0, 1, 2])
    steps.pipeline(sch, parts.k_tile, [0, 0, s, s + 1, s + 1], [0, 1, 3, 2, 4], asynchronous=[0])


RUNG = Rung(
    family="hgemm",
    name="wmma_register_pipelined",
    summary="fragments double buffered",
    article="001",
    config=Config(),
    schedule=schedule,
    launch=launch,
    min_arch=80,
    pass_config=wmma_pipelined.RUNG.pass_config,
    passes=("copies_after_products", "copies_before_barriers"),
)
