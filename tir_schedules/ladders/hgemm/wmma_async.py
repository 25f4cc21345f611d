"""Asynchronous copies.

`cp.async` copies 16 bytes from global to shared memory without a register in between, and the thread does not
wait for them. Copies are committed in groups, and `wait_group N` waits until at most N groups are under way.
Now there are two tiles of A and of B in shared memory: while one is multiplied, the next is copied. In
TensorIR this is software pipelining: the copies are stage 0, asynchronous, and the mma stage 1. Look for the
copy of tile k + 1, `wait_group 1`, and two barriers per tile. At the barrier before the copy all threads are
done with the tile that it replaces. After the wait, the second barrier makes the copies of all threads
visible to all. The copies ask the L2 cache to fetch whole lines, see passes/l2_prefetch.py. The copy is
CP_ASYNC_CG of "Optimizing Half-Precision GEMM with Tensor Cores" (article 001), "Instructions".

Padding costs more for cp.async than for stores: a copy of 32 lanes takes 15 wavefronts, although 4 would do.

With float16 accumulators two blocks share an SM. Copies issued in a row then fill the queue to shared memory,
and the other block's loads of fragments wait behind them. So the loop over a thread's copies of A is not
unrolled, which leaves time between them. With float32 accumulators a block has its SM for itself. Then the
unrolled loop is better, because a block is faster with all its copies under way at once. It is also better if
rows are not a multiple of 16 bytes and single elements are loaded, because the loop would wait for each of
them.

With float16 accumulators an H200 is a sixth faster if the loop is not unrolled.

Measured on an H200 at 4096 nt float16: 387 TFLOPS, 1.26 times the 306 of `wmma_padded`.
"""

from __future__ import annotations

from tir_schedules.ladders.hgemm import steps, wmma_padded
from tir_schedules.model.rung import run_as_script
from tir_schedules.tir.schedule import Block, Schedule, pipeline
from tir_schedules.workloads.half_gemm import HalfGemm

Config = steps.Pipelined


def schedule(sch: Schedule, gemm: HalfGemm, config: Config) -> None:
    tiles = steps.split_into_tiles(sch, config)
    steps.bind_blocks(sch, tiles)
    steps.multiply_tiles(sch, gemm, config, tiles)
    sch.unroll(tiles.k_step)
    steps.pad_rows(sch, tiles.copies, config.padding)
    sch.unroll_drain()
    copy_a, copy_b, compute = 0, 0, config.stages - 1
    stage = [copy_a, copy_b, compute]
    pipeline(sch, tiles.k_tile, stage, order=[0, 1, 2], asynchronous=[0])
    sch.async_copies()
    sch.prefetch_l2()
    if gemm.accumulate == "float16" and gemm.aligned:
        keep_rolled(sch, tiles, tiles.copies[0])


def keep_rolled(sch: Schedule, tiles: steps.Tiles, copy: Block) -> None:
    """Loops over what a thread copies are not unrolled: `#pragma unroll 1`."""
    from tvm.tirx import For, ForKind, IntImm

    for loop in steps.own_loops(sch, tiles, copy):
        found = sch.get(loop)
        assert isinstance(found, For) and isinstance(found.extent, IntImm)
        if found.kind == ForKind.SERIAL and found.extent.value > 1:
            sch.annotate(loop, "disable_unroll", True)


RUNG = wmma_padded.RUNG.followed_by(
    "wmma_async",
    "cp.async: copies that take no registers, the next tile under way while one is multiplied",
    schedule,
    article="001",
    config=Config(stages=2),
    shapes=steps.SHAPES_ASYNC,
    launch=steps.launch_pipelined,
    min_arch=80,
    outputs=(),
)

if __name__ == "__main__":
    run_as_script(RUNG)
