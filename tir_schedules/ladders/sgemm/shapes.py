"""Which configuration a shape should take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tir_schedules.model.launch import ceil_div
from tir_schedules.workloads.gemm import Gemm

if TYPE_CHECKING:
    from tir_schedules.ladders.sgemm import multistage

SMS = 132


def splits(gemm: Gemm, config: multistage.Config) -> int:
    tiles = ceil_div(gemm.m, config.bm) * ceil_div(gemm.n, config.bn)
    return max(1, min(2 * SMS // tiles, gemm.k // (4 * config.bk)))


def choose_split(gemm: Gemm) -> str:
    if gemm.n <= 16:
        return "128x16"
    if gemm.m <= 16:
        return "16x128"
    return "32x32"
