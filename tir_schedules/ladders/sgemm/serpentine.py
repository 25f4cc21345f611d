"""A thread's products in serpentine order."""

from __future__ import annotations

from dataclasses import replace

from tir_schedules.ladders.sgemm import pipelined
from tir_schedules.model.rung import run_as_script
from tir_schedules.tir.passes import TURNS
from tir_schedules.tir.schedule import Schedule
from tir_schedules.workloads.gemm import Gemm


def schedule(sch: Schedule, gemm: Gemm, config: pipelined.Config) -> None:
    parts = pipelined.double_buffered(sch, gemm, config)
    _, _, inner_i, sub_i = parts.fmas
    sch.annotate(inner_i, TURNS, 1)
    sch.annotate(sub_i, TURNS, 2)


RUNG = replace(
    pipelined.RUNG,
    name="serpentine",
    summary="a thread's products in serpentine order: neighbouring FMA share a register",
    schedule=schedule,
    passes=(*pipelined.RUNG.passes, "turning_products"),
)

if __name__ == "__main__":
    run_as_script(RUNG)
