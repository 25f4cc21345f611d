"""C through shared memory.

A warp that stores a fragment of float16 writes 16 rows of 32 bytes. Now warps store their fragments to shared
memory, in the place of the tiles of A and B, which are used up, and then all threads copy C to global memory,
16 bytes each and whole rows at a time. Rows of C in shared memory are padded like those of A and B. Look for
`store_matrix_sync` to shared memory with the row length 136, and 16-byte stores to global memory.
"""

from __future__ import annotations

from tir_schedules.ladders.hgemm import steps, wmma_register_pipelined
from tir_schedules.model.launch import Launch
from tir_schedules.model.rung import Rung, run_as_script
from tir_schedules.tir.schedule import Schedule
from tir_schedules.workloads.half_gemm import HalfGemm

Config = wmma_register_pipelined.Config
RESULT_PADDING = 8
"""Elements that pad each row of C in shared memory."""


def shared_bytes(gemm: HalfGemm, config: Config) -> int:
    return steps.shared_bytes(
        gemm, config, config.padding, config.stages, staged=True, result_padding=RESULT_PADDING
    )


def launch(gemm: HalfGemm, config: Config) -> Launch:
    return steps.launch_columns_by_rows(gemm, config, shared_bytes(gemm, config))


def schedule(sch: Schedule, gemm: HalfGemm, config: Config) -> None:
    parts = steps.split_up(sch, gemm, config, staged=True)
    steps.share_copies(sch, gemm, config, parts)
    steps.use_tensor_cores(sch, gemm, parts, "wmma", padding=RESULT_PADDING)
    steps.copy_result(sch, gemm, config, parts)
    sch.unroll(parts.k_step)
    steps.pad_rows(sch, parts, config.padding)
    steps.pipeline_fragments(sch, parts, config.stages)


RUNG = Rung(
    family="hgemm",
    name="wmma_staged_epilogue",
    summary="C through shared memory, written in rows of 16-byte stores",
    article="001, the write-back",
    config=Config(),
    shapes=(
        "any; 16-byte accesses where K % 8 == 0 and N % 8 == 0, else one element at a time, and copies that"
        " are not asynchronous"
    ),
    schedule=schedule,
    launch=launch,
    min_arch=80,
    pass_config=wmma_register_pipelined.RUNG.pass_config,
    passes=wmma_register_pipelined.RUNG.passes,
)

if __name__ == "__main__":
    run_as_script(RUNG)
