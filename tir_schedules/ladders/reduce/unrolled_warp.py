"""When 64 partial sums are left, one warp adds them up by itself, without barriers of the block.

The lanes of a warp need no __syncthreads among themselves, but they do need __syncwarp: since Volta they may
run apart. A level is therefore read, __syncwarp, write, __syncwarp. The configuration `volatile` is the idiom
of article 002 ("Unrolling the Warp", section 2.1) and of older tutorials, which leaves both out and marks the
memory volatile. It works only as long as a warp happens to run in lockstep; the CPU machine reports the
missing __syncwarp. No primitive makes a __syncwarp, so the whole kernel is a script.
"""

# TVMScript has buffer types that are calls, and only a stub for tvm.script.tirx.
# pyright: reportInvalidTypeForm=false, reportMissingModuleSource=false

from __future__ import annotations

from dataclasses import dataclass

from tir_schedules.ladders.reduce import first_add, steps
from tir_schedules.ladders.reduce.in_place import folding, keep_loop
from tir_schedules.ladders.reduce.steps import WARP, added, ceil_div, log2, reader
from tir_schedules.model.rung import run_as_script
from tir_schedules.tir.schedule import PrimFunc, Schedule
from tir_schedules.workloads.reduction import Reduction


@dataclass(frozen=True)
class Config(steps.Config):
    """volatile: 1 for the outdated idiom without __syncwarp."""

    volatile: int = 0


def prim_func(reduction: Reduction, config: Config, name: str) -> PrimFunc:
    """The tree of `first_add` down to 64 sums, then a block "tail" that one warp executes."""
    from tvm.script import tirx as T

    n, dtype, block = reduction.n, reduction.dtype, config.block
    blocks, level = ceil_div(n, 2 * block), folding(block)
    halvings = log2(2 * WARP)
    rounds = log2(block) - halvings
    read, volatile = reader(n, dtype, 2 * block), bool(config.volatile)
    annotations = {"tirx.volatile": True} if volatile else {}

    @T.prim_func(s_tir=True)
    def reduce(X: T.Buffer((n,), dtype), Y: T.Buffer((blocks,), dtype)):
        T.func_attr({"global_symbol": name, "tirx.noalias": True})
        for b in T.thread_binding(blocks, thread="blockIdx.x"):
            tile = T.alloc_buffer((block,), dtype, scope="shared", annotations=annotations)
            for t in T.thread_binding(block, thread="threadIdx.x"):
                with T.sblock("load"):
                    vb, vt = T.axis.remap("SS", [b, t])
                    tile[vt] = added(read, X, vb, vt, block, 2)
            for k in T.serial(rounds):
                for t in T.thread_binding(block, thread="threadIdx.x"):
                    with T.sblock("level"):
                        vt = T.axis.spatial(block, t)
                        vk = T.axis.opaque(rounds, k)
                        T.where(level.works(t, k))
                        T.reads(tile[0:block])
                        T.writes(tile[0:block])
                        tile[vt] = tile[vt] + tile[level.source(vt, vk)]
            for t in T.thread_binding(block, thread="threadIdx.x"):
                with T.sblock("tail"):
                    vb, vt = T.axis.remap("SS", [b, t])
                    T.reads(tile[0:block])
                    T.writes(Y[vb], tile[0:block])
                    T.tvm_storage_sync("shared")
                    with T.attr(0, "hand_threaded", 1):  # from here on TVM inserts no barriers
                        if vt < WARP:
                            if volatile:
                                for j in T.unroll(halvings):
                                    tile[vt] = tile[vt] + tile[vt + (WARP >> j)]
                            else:
                                total = T.alloc_buffer((1,), dtype, scope="local")
                                total[0] = tile[vt]
                                for j in T.unroll(halvings):
                                    total[0] = total[0] + tile[vt + (WARP >> j)]
                                    T.cuda.warp_sync()
                                    tile[vt] = total[0]
                                    T.cuda.warp_sync()
                        if vt == 0:
                            Y[vb] = tile[0]

    return reduce


def schedule(sch: Schedule, reduction: Reduction, config: Config) -> None:
    keep_loop(sch)


RUNG = first_add.RUNG.followed_by(
    "unrolled_warp",
    "the last 64 sums are one warp's work: __syncwarp instead of __syncthreads",
    schedule,
    article="002, last warp unrolled",
    config=Config(),
    configs={"volatile": Config(volatile=1)},
    flawed={"volatile": "lockstep"},
    prim_func=prim_func,
)

if __name__ == "__main__":
    run_as_script(RUNG)
