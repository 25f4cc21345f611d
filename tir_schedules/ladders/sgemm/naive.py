"""One thread per element of C.

The algorithm has three loops. Two of them are spread over threads: rows of C over threadIdx.x, columns over
threadIdx.y. In the emitted CUDA each thread runs the loop over K with two global reads per FMA (a fused
multiply-add). Neighbouring threads are in different rows. So each read of A and each write of C by a warp
touches 32 sectors (pieces of 32 bytes, the least that memory moves). A read of B touches one sector, because
all lanes read the same element. So the two reads touch 16.5 sectors on average.

This is article 003 ("choiBLAMS"), kernel 1. If blocks do not cover C exactly (a ragged shape), a guard stands
around the loop over K.

Measured on an H200 at 4096: 0.498 TFLOPS.
"""

from __future__ import annotations

from tir_schedules.ladders.sgemm.steps import Squares, hoist_guards, launch_squares, one_element_per_thread
from tir_schedules.model.rung import Rung, run_as_script
from tir_schedules.tir.schedule import Schedule
from tir_schedules.workloads.gemm import Gemm

ROWS_ON_X = ("blockIdx.x", "blockIdx.y", "threadIdx.x", "threadIdx.y")


def schedule(sch: Schedule, gemm: Gemm, config: Squares) -> None:
    one_element_per_thread(sch, config.ts, ROWS_ON_X)
    hoist_guards(sch, gemm, config.ts)


RUNG = Rung(
    family="sgemm",
    name="naive",
    summary="one thread per element of C, neighbouring threads in different rows",
    article="003, kernel 1",
    config=Squares(),
    schedule=schedule,
    launch=launch_squares,
)

if __name__ == "__main__":
    run_as_script(RUNG)
