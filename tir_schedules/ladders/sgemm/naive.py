"""One thread per element of C.

The three loops of the algorithm, two of them spread over threads: rows of C over threadIdx.x, columns over
threadIdx.y. In the emitted CUDA each thread runs the loop over K with two global reads per FMA.
Neighbouring threads are in different rows, so that each read of A and each write of C touches 32 sectors:
article 003 ("choiBLAMS"), kernel 1. On a ragged shape a guard stands around the loop over K.
"""

from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.ladders.sgemm.steps import hoist_guards, launch_rows_by_columns
from tir_schedules.model.launch import Launch
from tir_schedules.model.rung import Rung, run_as_script
from tir_schedules.tir.schedule import Loop, Schedule, bind
from tir_schedules.workloads.gemm import Gemm

ROWS_ON_X = ("blockIdx.x", "blockIdx.y", "threadIdx.x", "threadIdx.y")


@dataclass(frozen=True)
class Config:
    """ts: edge of the square of C that a block computes, one thread per element."""

    ts: int = 32


def launch(gemm: Gemm, config: Config) -> Launch:
    return launch_rows_by_columns(gemm, config.ts, config.ts, (config.ts, config.ts))


def schedule(sch: Schedule, gemm: Gemm, config: Config) -> None:
    one_element_per_thread(sch, config.ts, ROWS_ON_X)
    hoist_guards(sch, gemm, config.ts)


def one_element_per_thread(sch: Schedule, ts: int, axes: tuple[str, ...]) -> Loop:
    """Squares of ts x ts elements over blocks, elements over threads; returns the loop over k.

    axes: of block row, block column, row, column.
    """
    block = sch.get_sblock("C")
    result = sch.cache_write(block, 0, "local")
    i, j, k = sch.get_loops(block)
    block_i, thread_i = sch.split(i, [None, ts])
    block_j, thread_j = sch.split(j, [None, ts])
    sch.reorder(block_i, block_j, thread_i, thread_j, k)
    bind(sch, (block_i, block_j, thread_i, thread_j), axes)
    sch.reverse_compute_at(result, thread_j, preserve_unit_loops=True)
    sch.decompose_reduction(block, k)
    return k


RUNG = Rung(
    family="sgemm",
    name="naive",
    summary="one thread per element of C, neighbouring threads in different rows",
    article="003, kernel 1",
    config=Config(),
    schedule=schedule,
    launch=launch,
)

if __name__ == "__main__":
    run_as_script(RUNG)
