"""four stages."""
from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.hgemm import mma_permuted, steps
from tir_schedules.rung import Rung
from tir_schedules.workloads.half_gemm import HalfGemm


@dataclass(frozen=True)
class Config(mma_permuted.Config):
    stages: int = 4


launch = mma_permuted.launch
schedule = mma_permuted.schedule


RUNG = Rung(
    family="hgemm",
    name="mma_multistage",
    summary="mma",
    article="001",
    config=Config(),
    configs={
        "64": Config(bk=64, stages=3), "64x4": Config(bk=64, stages=4), "n256": Config(bm=128, bn=256), "wide": Config(wm=128, wn=64),
        "wide64": Config(wm=128, wn=64, bk=64, stages=3), "128": Config(bm=128, bn=128),
        "128x64": Config(bm=128, bn=128, bk=64, stages=3), "n256x64": Config(bm=128, bn=256,bk=64, stages=4),
    },
    schedule=schedule,
    launch=launch,
    min_arch=80,
    pass_config=mma_permuted.RUNG.pass_config,
    passes=mma_permuted.RUNG.passes,
)
