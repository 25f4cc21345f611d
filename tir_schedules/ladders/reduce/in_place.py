"""The tree of the article as a script: one array, a loop over the levels.

A level reads what another thread wrote to the same array at the level before. Primitives cannot make that
from a sum, see `tree.py`, so the tree is written with its threads; primitives still decide how its loop
becomes CUDA.
"""

# TVMScript has buffer types that are calls, and only a stub for tvm.script.tirx.
# pyright: reportInvalidTypeForm=false, reportMissingModuleSource=false

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

from tir_schedules.ladders.reduce.steps import added, ceil_div, log2, reader
from tir_schedules.tir.schedule import Loop, PrimFunc, Schedule
from tir_schedules.workloads.reduction import Reduction


@dataclass(frozen=True)
class TreeLevel:
    """Level k of a tree, as functions of thread t and k: whether t works, and tile[into] += tile[source].

    t, k and what is made of them are integers of Python or expressions of TVM.
    """

    works: Callable[[Any, Any], Any]
    into: Callable[[Any, Any], Any]
    source: Callable[[Any, Any], Any]


def script(reduction: Reduction, block: int, name: str, level: TreeLevel, loads: int = 1) -> PrimFunc:
    """Blocks "load", "level" (in a loop over k) and "store" of a tree in shared memory.

    loads: elements a thread adds at first.
    """
    from tvm.script import tirx as T

    n, dtype, chunk, levels = reduction.n, reduction.dtype, block * loads, log2(block)
    blocks, read = ceil_div(n, chunk), reader(n, dtype, chunk)

    @T.prim_func(s_tir=True)
    def reduce(X: T.Buffer((n,), dtype), Y: T.Buffer((blocks,), dtype)):
        T.func_attr({"global_symbol": name, "tirx.noalias": True})
        tile = T.sblock_alloc_buffer((blocks, block), dtype, scope="shared")
        for b in T.thread_binding(blocks, thread="blockIdx.x"):
            for t in T.thread_binding(block, thread="threadIdx.x"):
                with T.sblock("load"):
                    vb, vt = T.axis.remap("SS", [b, t])
                    tile[vb, vt] = added(read, X, vb, vt, block, loads)
            for k in T.serial(levels):
                for t in T.thread_binding(block, thread="threadIdx.x"):
                    with T.sblock("level"):
                        vb, vt = T.axis.remap("SS", [b, t])
                        vk = T.axis.opaque(levels, k)
                        T.where(level.works(t, k))
                        T.reads(tile[vb, 0:block])
                        T.writes(tile[vb, 0:block])
                        tile[vb, level.into(vt, vk)] = (
                            tile[vb, level.into(vt, vk)] + tile[vb, level.source(vt, vk)]
                        )
            for t in T.thread_binding(block, thread="threadIdx.x"):
                with T.sblock("store"):
                    vb, vt = T.axis.remap("SS", [b, t])
                    T.where(t == 0)
                    Y[vb] = tile[vb, 0]

    return reduce


def folding(block: int) -> TreeLevel:
    """s = block/2 >> k; threads below s add what lies s further."""
    half = block // 2
    return TreeLevel(
        works=lambda t, k: t < (half >> k), into=lambda t, k: t, source=lambda t, k: t + (half >> k)
    )


def level_loop(sch: Schedule) -> Loop:
    """The loop over the levels of a tree."""
    return sch.get_loops(sch.get_sblock("level"))[1]


def keep_loop(sch: Schedule) -> None:
    """Neither TVM nor nvcc unrolls the loop over the levels."""
    sch.annotate(level_loop(sch), "disable_unroll", 1)
