"""One launch in place of two or more: the last block adds up the sums of all blocks.

The algorithm is two sums: that of each block, and that of these sums. Each is scheduled as in `vectorized`.
TVM would make two kernels of them. No primitive says that one block does the second sum when the other blocks
have finished the first. `last_block` adds this to the kernel. It is a pass: a function that changes TensorIR.
In this ladder Y has one sum for each block along x. Here all blocks share one sum, so they lie along y.

A block leaves its sum in memory, in one word of 64 bits together with a mark. The last block of the grid
reads each word until it finds the mark, and clears it for the next launch. Mark and sum are one word, so no
fence is needed.

`:fenced` is the form of textbooks: a fence (__threadfence) and a counter (atomicInc) say that a sum is there,
and the block that counts last adds the sums. Without the fence that block could see the count but not the
sum, and the CPU machine reports the race. The configuration for arrays of 2^26 elements or more is fenced
too: other blocks work while one waits at its fence, and the last block reads all sums at once and not one
after another.

On an H200 a sum of 2^20 takes 3.4 us, 4.3 with `:fenced`, 4.5 by `vectorized`, and 4.3 to 4.4 by CUB; on a
cold GPU these take 6.4, 7.3, 7.9 and 7.6.

The order of the additions is fixed: a sum of floats is the same in each run, and equals that of the twin bit
for bit. The sums of blocks are in global variables of the kernel's file, which are 0 before and after a
launch. So launches of one kernel must not overlap. Article 002 ("Unrolling the Warp") does not have this
step.

Measured on an H200 at 2^25 int32: 4205 GB/s, 1.03 times the 4082 of `vectorized`.
"""

# TVMScript has buffer types that are calls, and only a stub for tvm.script.tirx.
# pyright: reportInvalidTypeForm=false, reportMissingModuleSource=false

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

from tir_schedules.ladders.reduce import vectorized
from tir_schedules.ladders.reduce.cross_thread import sum_per_thread
from tir_schedules.ladders.reduce.steps import ceil_div, constant_zero
from tir_schedules.ladders.reduce.vectorized import blocks_needed, width
from tir_schedules.model.launch import Launch
from tir_schedules.model.rung import run_as_script
from tir_schedules.tir.schedule import PrimFunc, Schedule
from tir_schedules.workloads.reduction import Reduction


@dataclass(frozen=True)
class Config(vectorized.Config):
    """As of `vectorized`. fenced: 1 for a fence and a counter, 0 for marks."""

    unroll: int = 4
    most_blocks: int = 8 * 132
    fenced: int = 0


CONFIGS = {
    "512x16": Config(512, 16, 1 << 15, fenced=1),
    "512x8": Config(512, 8, 1 << 10),
    "256x4": Config(),
}
FROM = {"512x16": 1 << 26, "512x8": 1 << 22, "256x4": 1}
"""Elements from which on a configuration is taken."""


def choose(reduction: Reduction) -> str:
    """The first configuration for which there are enough elements."""
    return next(name for name in CONFIGS if reduction.n >= FROM[name])


def launch(reduction: Reduction, config: Config) -> Launch:
    """Blocks along y share a sum."""
    return Launch((1, min(blocks_needed(reduction, config), config.most_blocks), 1), (config.block, 1, 1))


def prim_func(reduction: Reduction, config: Config, name: str) -> PrimFunc:
    """As of `sum_of_sums`; one sum alone where one block of threads is enough."""
    from tvm.script import tirx as T

    n, zero = reduction.n, constant_zero(reduction.dtype)
    blocks, chunk = launch(reduction, config).grid[1], config.block * width(reduction)
    if blocks == 1:
        return reduction.partial_sums(name, 1, chunk)

    def read(X: Any, block: Any, iteration: Any, i: Any) -> Any:
        place = (iteration * blocks + block) * chunk + i
        return T.if_then_else(place < n, X[place], zero)

    extents = blocks, ceil_div(n, blocks * chunk), chunk
    return sum_of_sums(name, reduction.dtype, (n,), extents, config.block, read)


def sum_of_sums(
    name: str,
    dtype: str,
    shape: tuple[int, ...],
    extents: tuple[int, int, int],
    threads: int,
    read: Callable[..., Any],
) -> PrimFunc:
    """Blocks "part", which leaves a sum for each block of threads, and "sum", which adds these.

    shape: of X. extents: blocks, iterations of each, and elements of an iteration. threads: of a block. read:
    of X, a block, an iteration and an element, what is added.
    """
    from tvm.script import tirx as T

    zero, (blocks, iterations, chunk) = constant_zero(dtype), extents
    last_iterations = ceil_div(blocks, threads)

    @T.prim_func(s_tir=True)
    def reduce(X: T.Buffer(shape, dtype), Y: T.Buffer((1,), dtype)):
        T.func_attr({"global_symbol": name, "tirx.noalias": True})
        P = T.sblock_alloc_buffer((blocks,), dtype)
        for b, iteration, i in T.grid(blocks, iterations, chunk):
            with T.sblock("part"):
                vb, vt, vi = T.axis.remap("SRR", [b, iteration, i])
                with T.init():
                    P[vb] = zero
                P[vb] = P[vb] + read(X, vb, vt, vi)
        for b, iteration, i in T.grid(1, last_iterations, threads):
            with T.sblock("sum"):
                vb, vt, vi = T.axis.remap("SRR", [b, iteration, i])
                with T.init():
                    Y[vb] = zero
                Y[vb] = Y[vb] + T.if_then_else(vt * threads + vi < blocks, P[vt * threads + vi], zero)

    return reduce


def schedule(sch: Schedule, reduction: Reduction, config: Config) -> None:
    blocks = launch(reduction, config).grid[1]
    vectorized.sum_shares(sch, reduction, config, "part" if blocks > 1 else "sum", "blockIdx.y")
    if blocks > 1:
        add_in_last_block(sch, config.block, config.fenced)


def add_in_last_block(sch: Schedule, block: int, fenced: int) -> None:
    """The last block adds up the sums of "part": the last of the grid, or if fenced the last to finish."""
    partial, iteration, _ = sum_per_thread(sch, block, 1, "sum", "blockIdx.y")
    sch.decompose_reduction(partial, iteration)
    sch.continue_in_last_block(sch.get_loops(sch.get_sblock("part"))[0], bool(fenced))


RUNG = vectorized.RUNG.followed_by(
    "single_pass",
    "one launch in place of two: the last block adds up the sums of all blocks",
    schedule,
    config=CONFIGS["256x4"],
    configs={**CONFIGS, "fenced": Config(fenced=1)},
    choose=choose,
    launch=launch,
    prim_func=prim_func,
)

if __name__ == "__main__":
    run_as_script(RUNG)
