"""Tensor cores, straight from global memory.

A warp computes one 16x16 tile of C. For each 16 of K it loads a fragment of A and one of B from global memory
and multiplies them with one `mma_sync`. Look for the leading dimension K in `load_matrix_sync`, and for the
32 threads on threadIdx.x, which no index uses, because fragments belong to a warp as a whole.

This fragment is the "MMA Tile" of "Optimizing Half-Precision GEMM with Tensor Cores" (article 001).

`load_matrix_sync` cannot have guards. If tiles do not cover the matrices exactly (a ragged shape), A and B go
through shared memory as in `wmma_shared`, with these small tiles.

Measured on an H200 at 4096 nt float16: 29.7 TFLOPS.
"""

from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.ladders.hgemm import steps
from tir_schedules.model.launch import Launch
from tir_schedules.model.rung import Rung, run_as_script
from tir_schedules.tir.schedule import Schedule
from tir_schedules.workloads.half_gemm import HalfGemm


@dataclass(frozen=True)
class Config(steps.Tiling):
    """Block tile bm x bn, bk along K; a warp computes wm x wn, one fragment."""

    bm: int = 32
    bn: int = 64
    bk: int = 16
    wm: int = 16
    wn: int = 16


def launch(gemm: HalfGemm, config: Config) -> Launch:
    shared = 0 if steps.is_whole(gemm, config) else steps.shared_bytes(gemm, config)
    return steps.launch_columns_by_rows(gemm, config, shared)


def schedule(sch: Schedule, gemm: HalfGemm, config: Config) -> None:
    tiles = steps.split_into_tiles(sch, config, copied=not steps.is_whole(gemm, config))
    steps.bind_blocks(sch, tiles)
    steps.multiply_tiles(sch, gemm, config, tiles)


RUNG = Rung(
    family="hgemm",
    name="wmma_naive",
    summary="one 16x16 tile of C per warp, fragments loaded from global memory",
    article="001, the fragment",
    config=Config(),
    shapes="any; through shared memory with guards where M % 32, N % 64 or K % 16 is not 0",
    schedule=schedule,
    launch=launch,
)

if __name__ == "__main__":
    run_as_script(RUNG)
