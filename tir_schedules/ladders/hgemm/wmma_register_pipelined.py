"""Fragments double buffered in registers.

There are two sets of fragments: while the tensor cores multiply one, the other is loaded for the next 16 of
K, the first ones of a tile while the last ones of the tile before are multiplied. Two loops are pipelined,
the one over k steps within the one over tiles. The order of a turn is the article's: second fragments of the
tile, first mma, copy of the tile two ahead, wait, barrier, first fragments of the next tile, last mma. Look
for fragment arrays of 8, of which 0 to 3 and 4 to 7 take turns.

InjectSoftwarePipeline offers no order that is both right and this one: see passes/copies_after_compute.py.
And it finds a tile's stage by a division, for every address anew. Here the loop is unrolled by the number of
stages, so that each stage is a constant: look for `k_0_turn` in the loop over rounds, and see
passes/unroll_stages.py. With float32 accumulators, which leave few registers for addresses, that is worth a
tenth of the time.
"""

from __future__ import annotations

from tir_schedules.ladders.hgemm import steps, wmma_pipelined
from tir_schedules.model.rung import Rung, run_as_script
from tir_schedules.tir.schedule import Schedule
from tir_schedules.workloads.half_gemm import HalfGemm

Config = wmma_pipelined.Config
launch = wmma_pipelined.launch


def schedule(sch: Schedule, gemm: HalfGemm, config: Config) -> None:
    parts = steps.split_up(sch, gemm, config)
    steps.share_copies(sch, gemm, config, parts)
    steps.use_tensor_cores(sch, gemm, parts, "wmma")
    steps.copy_result(sch, gemm, config, parts)
    sch.unroll(parts.k_step)
    steps.pad_rows(sch, parts, config.padding)
    steps.pipeline_fragments(sch, parts, config.stages)


RUNG = Rung(
    family="hgemm",
    name="wmma_register_pipelined",
    summary="two sets of fragments: one is loaded while the other is multiplied",
    article="001, three-level pipeline",
    config=Config(),
    shapes=wmma_pipelined.RUNG.shapes,
    schedule=schedule,
    launch=launch,
    min_arch=80,
    pass_config=wmma_pipelined.RUNG.pass_config,
    passes=("copies_after_compute", "unroll_stages", *wmma_pipelined.RUNG.passes),
)

if __name__ == "__main__":
    run_as_script(RUNG)
