"""Asynchronous copies.

`cp.async` copies 16 bytes from global to shared memory without a register in between, and without the thread
waiting for them: copies are committed in groups, and `wait_group N` waits until at most N groups are under
way. So there are two tiles of A and of B in shared memory now, and while one is multiplied the next is
copied. In TensorIR this is software pipelining: the copies are stage 0, asynchronous, and the mma stage 1.
Look for the copy of tile k + 1, `wait_group 1`, and two barriers per tile: before the copy all must be
done with the tile whose place it takes, after the wait all must see what the others have copied. The copies
ask the L2 cache to fetch whole lines, see passes/whole_lines.py.

With float16 accumulators two blocks share an SM. Copies issued at a stroke then fill its queue to shared
memory, and the other block's loads of fragments wait behind them. So the loop over a thread's copies of A is
not unrolled, which spaces them: on an H200 the kernel is a sixth faster. Alone on its SM, as with float32
accumulators, a block is better off with its copies under way at once.
"""

from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.ladders.hgemm import steps, wmma_padded
from tir_schedules.model.launch import Launch
from tir_schedules.model.rung import Rung, run_as_script
from tir_schedules.tir.schedule import Schedule, pipeline
from tir_schedules.workloads.half_gemm import HalfGemm


@dataclass(frozen=True)
class Config(wmma_padded.Config):
    """stages: tiles of A and of B in shared memory at a time."""

    stages: int = 2


def launch(gemm: HalfGemm, config: Config) -> Launch:
    shared = steps.shared_bytes(gemm, config, config.padding, config.stages)
    return steps.launch_columns_by_rows(gemm, config, shared)


def schedule(sch: Schedule, gemm: HalfGemm, config: Config) -> None:
    parts = steps.split_up(sch, gemm, config)
    steps.share_copies(sch, gemm, config, parts)
    steps.use_tensor_cores(sch, gemm, parts, "wmma")
    steps.copy_result(sch, gemm, config, parts)
    sch.unroll(parts.k_step)
    steps.pad_rows(sch, parts, config.padding)
    copy_a, copy_b, compute = 0, 0, config.stages - 1
    pipeline(sch, parts.k_tile, stage=[copy_a, copy_b, compute], order=[0, 1, 2], asynchronous=[0])
    if gemm.accumulate == "float16":
        steps.keep_rolled(sch, parts, parts.copies[0])


RUNG = Rung(
    family="hgemm",
    name="wmma_async",
    summary="cp.async: copies that take no registers, the next tile under way while one is multiplied",
    article="001",
    config=Config(),
    shapes=f"{wmma_padded.RUNG.shapes}; copies of single elements are not asynchronous",
    schedule=schedule,
    launch=launch,
    min_arch=80,
    pass_config=steps.PASS_CONFIG | {"tirx.use_async_copy": True},
    passes=("whole_lines",),
)

if __name__ == "__main__":
    run_as_script(RUNG)
